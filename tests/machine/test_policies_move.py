"""Two gates whose policies change at random between proposal, votes and claim, beside a model of what may run.

The law: an action never executes unless the claiming policy allows it, or asks for exactly what people granted; and
what was rejected or refused stays so. The model knows of policies, votes and outcomes, and nothing of the core.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import agentgate
from agentgate import Decision, Done, Gate, Held, PolicyRequest, Refused, Requirement, VoteRefused
from agentgate.core.proposing import Chance, Thought
from agentgate.gate import claiming
from agentgate.gate.grounds import Grounds
from support.worlds import PRINCIPAL, World, made, named

STORIES = 60
PEOPLE = ("person:ada", "person:bob", "person:eve")
FEW = Requirement()
ANSWERS: dict[str, Decision] = {
    "allow": agentgate.allow(),
    "deny": agentgate.deny("no"),
    "ask one": agentgate.require_approval("ask", requirement=FEW),
    "ask one, otherwise": agentgate.require_approval(
        "other", "in other words", rule="renamed", requirement=Requirement(question=timedelta(hours=9))
    ),
    "ask two": agentgate.require_approval("ask", requirement=Requirement(quorum=2)),
    "ask an ops": agentgate.require_approval("ask", requirement=Requirement(roles=("ops",))),
}
Verb = Literal["policy", "propose", "call", "execute", "approve", "reject"]


@dataclass(frozen=True)
class Step:
    """Something that a gate, its policy's author, or a person does."""

    verb: Verb
    gate: int
    answer: str = "allow"
    person: str = PEOPLE[0]


@dataclass
class Scene:
    """Two gates on one file, and what their policies say now."""

    world: World
    gates: tuple[Gate, Gate]
    said: list[str]
    effects: list[str]
    keys: Iterator[int] = field(default_factory=count)
    tally: dict[str, int] = field(default_factory=dict)


@contextmanager
def scene(folder: Path) -> Iterator[Scene]:
    world, effects, said = made(folder), [], ["allow", "allow"]  # type: tuple[World, list[str], list[str]]

    def act(key: str) -> str:
        effects.append(key)
        return key

    def policy(n: int) -> Any:
        def decide(_request: PolicyRequest) -> Decision:
            return ANSWERS[said[n]]

        return agentgate.python_policy(decide, identity=f"policy {n}")

    first, second = (world.gate(named("act", act), policy=policy(n)) for n in range(2))
    with first, second:
        yield Scene(world, (first, second), said, effects)


class Story:
    """One key, and what a model that knows only what people and policies said lets happen under it."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.key = scene, f"k{next(scene.keys)}"
        self.run = scene.gates[0].run(self.key, principal=PRINCIPAL, tenant="acme")
        self.action: str | None = None
        self.asked: dict[str, tuple[Requirement, set[str]]] = {}
        self.question: Any = None
        self.ended: tuple[str, str] | None = None

    def take(self, step: Step) -> None:
        gate, said = self.scene.gates[step.gate], self.scene.said
        if step.verb == "policy":
            said[step.gate] = step.answer
        elif step.verb in {"approve", "reject"}:
            self.vote(gate, step)
        elif step.verb == "propose":
            proposal = gate.propose(self.run, "act", {"key": self.key}, key=self.key)
            self.action = proposal.action
            if proposal.outcome is not None:
                self.look(proposal.outcome, ANSWERS[said[step.gate]])
        elif step.verb == "call" or self.action is not None:
            self.claim(gate, step, ANSWERS[said[step.gate]])
        assert self.scene.effects.count(self.key) <= 1

    def claim(self, gate: Gate, step: Step, says: Decision) -> None:
        before = self.scene.effects.count(self.key)
        if step.verb == "call":
            outcome = gate.call(self.run, "act", {"key": self.key}, key=self.key)
        else:
            assert self.action is not None
            outcome = gate.execute(self.action, tenant="acme")
        self.action = outcome.action
        if self.scene.effects.count(self.key) > before:
            self.count("ran")
            assert self.ended is None, f"it had ended: {self.ended}"
            self.check_allowed(says)
        self.look(outcome, says)

    def check_allowed(self, says: Decision) -> None:
        """The law, for an effect that has just happened."""
        if says.outcome == "allow":
            return
        assert says.requirement is not None, f"it ran, and the policy says {says.outcome}"
        assert self.question is not None, "it ran, and nobody was asked"
        requirement, voters = self.asked[self.question.id]
        assert requirement.bound() == says.requirement.bound(), "something else was granted than is asked for"
        assert len(voters) >= requirement.quorum, "not enough people have agreed"
        self.count("ran under a grant")

    def look(self, outcome: agentgate.Outcome, says: Decision) -> None:
        if isinstance(outcome, Held):
            if outcome.approval.id not in self.asked:
                assert says.requirement is not None
                self.asked[outcome.approval.id] = says.requirement, set()
                self.count("asked" if len(self.asked) == 1 else "asked again")
            self.question = outcome.approval
        if self.ended is not None:  # for ever
            assert (type(outcome).__name__, outcome.reason) == self.ended
        elif isinstance(outcome, Done) or (isinstance(outcome, Refused) and not outcome.retryable):
            self.ended = (type(outcome).__name__, outcome.reason)
            self.count(outcome.reason)

    def vote(self, gate: Gate, step: Step) -> None:
        if self.question is None:
            return
        send = gate.approvals.approve if step.verb == "approve" else gate.approvals.reject
        question = self.question
        try:
            now = send(question.id, digest=question.digest, by=step.person, roles=("ops",), tenant="acme")
        except VoteRefused:
            return
        if step.verb == "approve":
            self.asked[question.id][1].add(step.person)
        else:
            assert now.state == "rejected"
            self.ended = ("Refused", "rejected")
            self.count("rejected")

    def count(self, what: str) -> None:
        self.scene.tally[what] = self.scene.tally.get(what, 0) + 1


def told(scene: Scene, steps: Sequence[Step]) -> None:
    story = Story(scene)
    scene.said[:] = ["ask one", "ask one"]
    for step in steps:
        story.take(step)
    story.take(Step("execute", 0))


VERBS: tuple[Verb, ...] = ("policy", "propose", "call", "execute", "execute", "approve", "approve", "reject")
gates_ = st.integers(min_value=0, max_value=1)
STEPS = st.builds(
    Step,
    verb=st.sampled_from(VERBS),
    gate=gates_,
    answer=st.sampled_from(sorted(ANSWERS)),
    person=st.sampled_from(PEOPLE),
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("policies")) as one:
        yield one
        assert not one.world.damage()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEPS, min_size=4, max_size=16))
def test_nothing_runs_that_the_claiming_policy_does_not_allow_or_ask_for_as_it_was_granted(
    shared: Scene, steps: list[Step]
) -> None:
    told(shared, steps)


def at_random(seed: int) -> list[Step]:
    """Draw a story that comes to a claim of what people granted, and goes on from there at random."""
    drawn = random.Random(seed)
    some = [
        Step(drawn.choice(VERBS), drawn.randrange(2), drawn.choice(sorted(ANSWERS)), drawn.choice(PEOPLE))
        for _ in range(9)
    ]
    gate, answer = drawn.randrange(2), drawn.choice(sorted(ANSWERS))
    return [Step("propose", 0), Step("approve", 0), Step("policy", gate, answer), Step("execute", gate), *some]


def test_the_stories_come_to_every_end_there_is(tmp_path: Path) -> None:
    """A law that nothing was near would hold of anything."""
    with scene(tmp_path) as one:
        for seed in range(STORIES):
            told(one, at_random(seed))
        print("\n", dict(sorted(one.tally.items())))
        assert one.tally.keys() >= {
            *("ran", "ran under a grant", "asked", "asked again", "succeeded"),
            *("rejected", "policy_denied"),
        }
        assert not one.world.damage()


def broken(folder: Path) -> bool:
    """Tell whether some story finds the law broken."""
    with scene(folder) as one:
        for seed in range(STORIES):
            try:
                told(one, at_random(seed))
            except AssertionError:
                return True
    return False


def test_a_claim_that_takes_any_grant_for_the_one_that_is_asked_for_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Grounds, "answers", lambda grounds, _wanted: grounds.history.file.question is not None)
    monkeypatch.setattr(Grounds, "proven", lambda *_any: None)
    assert broken(tmp_path)


def test_a_claim_that_does_not_ask_again_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unasked(transaction: Any, file: Any, claimant: Any, _thought: Thought, _chance: Chance, **_more: Any) -> Any:
        return claiming.claim(transaction, file, claimant, None)

    monkeypatch.setattr("agentgate.gate.executing.claim_again", unasked)
    assert broken(tmp_path)
