"""Whatever goes wrong while a policy is asked denies, with a code that stays and no argument in a text."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from agentgate.clock import SystemClock
from agentgate.errors import PolicyRefused
from agentgate.policy.deadline import Threads
from agentgate.policy.decision import Decision, Reason, Reserve, allow, deny, require_approval
from agentgate.policy.evaluation import Policy, PythonPolicy, evaluate, python_policy
from agentgate.policy.identity import PolicyIdentity
from agentgate.policy.request import PolicyRequest
from agentgate.policy.rules import parse_rules
from support.asking import Watch, request

SECRET = "the-secret-argument"
LONG = timedelta(seconds=10)
CLOSED = PolicyIdentity(kind="closed", engine="test", engine_version="1", documents=())
TRACE: ContextVar[str] = ContextVar("TRACE", default="")


def asked(function: Callable[..., Any], *, within: timedelta = LONG, **fields: Any) -> Decision:
    """Ask an open policy in threads of its own."""
    policy = PythonPolicy(identity=python_policy(plain).identity, function=function)
    return evaluate(policy, request(**fields), within=within, clock=SystemClock(), threads=Threads())


def plain(_request: PolicyRequest) -> Decision:
    return allow("fine")


def codes(decision: Decision) -> list[str]:
    return [reason.code for reason in decision.reasons]


@pytest.fixture
def hang() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_a_decision_comes_back_as_it_was_made() -> None:
    decision = require_approval("ask", "why", rule="r", reserves=(Reserve(account="a", amount=1),))
    assert asked(lambda _: decision) == decision


# --- each way of going wrong ---------------------------------------------------------------------


class Lying(Decision):
    pass


class Waits:
    def __await__(self) -> Generator[None, None, None]:
        yield


async def coroutine(_request: PolicyRequest) -> Decision:
    return allow()


async def generator(_request: PolicyRequest) -> AsyncIterator[Decision]:
    yield allow()


def raising(error: Callable[[], BaseException]) -> Callable[[PolicyRequest], Decision]:
    def decide(_request: PolicyRequest) -> Decision:
        raise error()

    return decide


def future(_request: PolicyRequest) -> Awaitable[Decision]:
    loop = asyncio.new_event_loop()
    try:
        return loop.create_future()
    finally:
        loop.close()


def unbuilt(_request: PolicyRequest) -> Decision:
    return Decision.__new__(Decision)


def changed_after(_request: PolicyRequest) -> Decision:
    decision = deny("no")
    object.__setattr__(decision, "outcome", "maybe")
    return decision


def hollow_reason(_request: PolicyRequest) -> Decision:
    decision = deny("no")
    object.__setattr__(decision, "reasons", (Reason.__new__(Reason),))
    return decision


def recursing(request: PolicyRequest) -> Decision:
    return recursing(request)


WRONG: dict[str, tuple[Callable[..., Any], str]] = {
    "raises": (raising(lambda: ValueError(SECRET)), "policy_raised"),
    "raises SystemExit": (raising(lambda: SystemExit(SECRET)), "policy_raised"),
    "raises KeyboardInterrupt": (raising(KeyboardInterrupt), "policy_raised"),
    "raises CancelledError": (raising(asyncio.CancelledError), "policy_raised"),
    "recurses": (recursing, "policy_raised"),
    "builds an unknown word": (lambda _: Decision(outcome="maybe", rule="r"), "policy_raised"),  # type: ignore[arg-type]
    "None": (lambda _: None, "policy_no_answer"),
    "a coroutine": (coroutine, "policy_awaitable"),
    "an awaitable": (lambda _: Waits(), "policy_awaitable"),
    "a future": (future, "policy_awaitable"),
    "a word": (lambda _: "allow", "policy_bad_answer"),
    "an unknown word": (lambda _: "maybe", "policy_bad_answer"),
    "True": (lambda _: True, "policy_bad_answer"),
    "a dict": (lambda _: {"outcome": "allow", "rule": "r"}, "policy_bad_answer"),
    "the constructor": (lambda _: allow, "policy_bad_answer"),
    "a subclass": (lambda _: Lying(outcome="allow", rule="r"), "policy_bad_answer"),
    "a generator": (lambda _: (allow() for _ in "x"), "policy_bad_answer"),
    "an async generator": (generator, "policy_bad_answer"),
    "a decision never built": (unbuilt, "policy_bad_answer"),
    "a decision changed after": (changed_after, "policy_bad_answer"),
    "a hollow reason": (hollow_reason, "policy_bad_answer"),
}


@pytest.mark.parametrize("way", WRONG)
def test_what_is_no_decision_denies_with_its_code(way: str) -> None:
    function, code = WRONG[way]
    decision = asked(function)

    assert (decision.outcome, decision.rule, codes(decision)) == ("deny", "gate", [code])
    assert SECRET not in decision.reasons[0].text


def test_a_raise_is_told_by_its_type() -> None:
    assert asked(raising(lambda: KeyError(SECRET))).reasons[0].text == "the policy raised KeyError"


def test_a_policy_that_hangs_is_left_behind_and_denies(hang: threading.Event) -> None:
    began = time.monotonic()
    decision = asked(lambda _: hang.wait() and allow(), within=timedelta(milliseconds=30))

    assert codes(decision) == ["policy_timeout"]
    assert time.monotonic() - began < 5


@dataclass(frozen=True)
class Slow:
    """A policy during which the clock goes on."""

    watch: Watch
    takes_us: int
    identity: PolicyIdentity
    facts: tuple[str, ...] = ()

    def decide(self, _request: PolicyRequest) -> Decision:
        self.watch.at_us += self.takes_us
        return allow()


@pytest.mark.parametrize("kind", ["open", "closed"])
@pytest.mark.parametrize(("takes_us", "outcome"), [(1_000, "allow"), (1_001, "deny")])
def test_an_answer_past_the_deadline_is_no_answer(kind: Any, takes_us: int, outcome: str) -> None:
    watch = Watch()
    policy = Slow(watch, takes_us, PolicyIdentity(kind=kind, engine="t", engine_version="1", documents=()))

    decision = evaluate(policy, request(), within=timedelta(milliseconds=1), clock=watch, threads=Threads())

    # Its thread may also be slower than a millisecond: then it is denied for that.
    assert decision.outcome == outcome or codes(decision) == ["policy_timeout"]


def test_our_own_rules_answer_in_the_callers_thread() -> None:
    threads = Threads()
    rules = parse_rules(b"version: 1\nrules: [{name: all, match: {}, outcome: allow}]", source="p.yaml")
    assert evaluate(rules, request(), within=LONG, clock=SystemClock(), threads=threads).outcome == "allow"
    assert not threads._idle


def test_a_policy_of_the_callers_that_says_it_is_closed_is_held_to_the_deadline_all_the_same(
    hang: threading.Event,
) -> None:
    @dataclass(frozen=True)
    class Closed:
        identity: PolicyIdentity = CLOSED
        facts: tuple[str, ...] = ()

        def decide(self, _request: PolicyRequest) -> Decision:
            hang.wait(60)
            return allow()

    short = timedelta(milliseconds=20)
    decision = evaluate(Closed(), request(), within=short, clock=SystemClock(), threads=Threads())
    assert codes(decision) == ["policy_timeout"]


@pytest.mark.parametrize("attribute", ["identity", "facts"])
def test_a_policy_that_cannot_say_what_it_is_denies(attribute: str) -> None:
    class Broken:
        identity = CLOSED
        facts = ()

        def decide(self, _request: PolicyRequest) -> Decision:
            return allow()

        def __getattribute__(self, name: str) -> Any:
            if name == attribute:
                raise RuntimeError(SECRET)
            return object.__getattribute__(self, name)

    decision = evaluate(Broken(), request(), within=LONG, clock=SystemClock())
    assert codes(decision) == ["policy_raised"]


def test_a_declared_fact_that_is_not_in_the_request_denies() -> None:
    policy = python_policy(plain, facts=("freeze",))

    assert codes(evaluate(policy, request(), within=LONG, clock=SystemClock())) == ["fact_unavailable"]
    given = request(facts={"freeze": None})
    assert evaluate(policy, given, within=LONG, clock=SystemClock()).outcome == "allow"


# --- pure: nothing that a policy does to its request is seen by anybody ----------------------------


def test_a_policy_that_changes_its_request_changes_nothing() -> None:
    given = request(arguments={"cents": 1, "to": ["a"]}, facts={"freeze": [1]})

    def decide(own: Any) -> Decision:
        own.arguments["cents"] = 10**6
        own.arguments["to"].append("mallory")
        own.facts.clear()
        return allow()

    policy = PythonPolicy(identity=python_policy(plain).identity, function=decide)
    assert evaluate(policy, given, within=LONG, clock=SystemClock()).outcome == "allow"
    assert given.arguments == {"cents": 1, "to": ["a"]}
    assert given.facts == {"freeze": [1]}


def test_each_asking_gets_a_copy_of_its_own() -> None:
    seen: list[Any] = []
    given = request()

    def decide(own: PolicyRequest) -> Decision:
        seen.append(own)
        return allow()

    policy = PythonPolicy(identity=python_policy(plain).identity, function=decide)
    for _ in range(2):
        evaluate(policy, given, within=LONG, clock=SystemClock())
    assert len({id(own.arguments) for own in seen} | {id(given.arguments)}) == 3


def test_the_callers_context_variables_are_visible_to_a_policy() -> None:
    token = TRACE.set("trace-1")
    try:
        assert codes(asked(lambda _: allow(TRACE.get()))) == ["trace-1"]
    finally:
        TRACE.reset(token)


# --- a function as a policy ---------------------------------------------------------------------


def test_a_plain_function_becomes_an_open_policy() -> None:
    policy = python_policy(plain, facts=["freeze", "freeze"])

    assert isinstance(policy, Policy)
    assert (policy.identity.kind, policy.facts) == ("open", ("freeze",))
    assert policy.decide(request()) == allow("fine")


def test_a_closure_becomes_a_policy_under_a_stated_identity() -> None:
    decision = deny("no")
    with pytest.raises(PolicyRefused):
        python_policy(lambda _: decision)
    assert python_policy(lambda _: decision, identity="mine-1").decide(request()) == decision
    assert python_policy(lambda _: decision, identity=CLOSED).identity is CLOSED


def test_a_facts_name_is_a_stable_word() -> None:
    with pytest.raises(PolicyRefused) as caught:
        python_policy(plain, facts=["on call"])
    assert caught.value.path == "/facts/0"
