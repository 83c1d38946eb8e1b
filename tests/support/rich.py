"""A small ledger in which everything has happened once: allowed, denied, invalid, held, expired, in doubt, late, …

Made through the public face where there is a command for it, and through a `Draft`, as a command will, where there
is none yet (votes, questions). The file is copied from inside the last effect, so that something executes.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import agentgate
from agentgate import Held, Keyring, Limits, NoEffect, PolicyRequest, Proposal, Refused, Reserve, Run, sign_addition
from agentgate.approval import Requirement, Verdict, approval_digest, requirement_digest, vote_digest
from agentgate.canonical import Json
from agentgate.clock import to_datetime
from agentgate.gate.ledger import Transaction
from agentgate.policy.decision import Decision
from agentgate.store import sqlite
from agentgate.testing import CollectingChannel, FakeClock, ScriptedPolicy
from agentgate.tools.decorator import AnyTool
from support.signers import DAY_US, FROM_US, public, signer
from support.worlds import World, made, named

PERSON = "person:ada"
NONCE = bytes(range(16))


def rich(folder: Path) -> Path:
    """Make the ledger; return its file."""
    for part in ("work", "copy"):
        (folder / part).mkdir()
    story = Story(made(folder / "work", journal="delete"), folder / "copy" / "agent.db")
    with story.gate, story.other:
        story.tell()
    return story.copied


class Story:
    """What happens, in order.

    Args:
        world: the ledger it happens in.
        copied: where the finished file goes.
    """

    def __init__(self, world: World, copied: Path) -> None:
        self.world, self.copied = world, copied
        self.clock = FakeClock()
        self.moods: list[str] = []
        self.resume, self.entered = threading.Event(), threading.Event()
        options: dict[str, Any] = {"clock": self.clock, "facts": {"freeze": lambda _request: {"on": False}}}
        self.gate = world.gate(*self.tools(), policy=_policy("the policy"), **options)
        # Another policy at a claim: what was allowed may be asked about, or denied.
        self.other = world.gate(*self.tools(), policy=_policy("another policy", at_claim=_stricter), **options)
        limits = Limits(actions=500, wall=timedelta(days=90))
        self.run = self.gate.run("main", tenant="acme", principal="agent:a", goal="do everything once", limits=limits)

    def tools(self) -> list[AnyTool]:
        resource = {"resource": "account:{account}"}
        return [
            named("pay", self.pay, **resource),
            named("look", look, risk="read_only", **resource),
            named("slow", self.slow, timeout=timedelta(seconds=0.05), **resource),
        ]

    def pay(self, account: str, cents: int = 5) -> dict[str, Json]:
        """Pay, in the mood that is next."""
        mood = self.moods.pop(0) if self.moods else "well"
        if mood == "clean":
            raise NoEffect("the bank was closed")
        if mood == "doubt":
            raise RuntimeError("connection lost")
        if mood == "stuck":
            self.entered.set()
            self.resume.wait(30)
        if mood == "copy":
            self.copy()
        return {"account": account, "cents": cents}

    def slow(self, account: str) -> str:
        """Take longer than is allowed."""
        self.entered.set()
        self.resume.wait(30)
        return account

    def copy(self) -> None:
        module: Any = sqlite.module()
        with closing(module.connect(self.world.path)) as one, closing(module.connect(self.copied)) as other:
            one.backup(other)

    # --- commands -----------------------------------------------------------------------------------------

    def call(
        self,
        account: str,
        *moods: str,
        run: Run | None = None,
        tool: str = "pay",
        cents: int | None = None,
        **given: Any,
    ) -> Any:
        self.moods = list(moods)
        arguments: dict[str, Json] = {"account": account} if cents is None else {"account": account, "cents": cents}
        return self.gate.call(run or self.run, tool, arguments, **given)

    def propose(self, account: str, **given: Any) -> Proposal:
        return self.gate.propose(self.run, "pay", {"account": account}, **given)

    def add(self, action: str, kind: str, body: dict[str, Json], run: Run | None = None) -> None:
        """Add an event as a command of a later version will."""

        def added(transaction: Transaction) -> None:
            transaction.file(action)
            transaction.draft.add(kind, body, action=action)

        self.gate._shop.ledger.change((run or self.run).id, added)

    @contextmanager
    def stuck(self, account: str, tool: str = "pay") -> Iterator[str]:
        """Have an effect under way while the block runs; gives its action's id."""
        self.entered.clear()
        self.resume.clear()
        proposal = self.gate.propose(self.run, tool, {"account": account})
        self.moods = ["stuck"]
        worker = threading.Thread(target=self.gate.execute, args=(proposal,))
        worker.start()
        assert self.entered.wait(30)
        try:
            yield proposal.action
        finally:
            self.resume.set()
            worker.join()

    # --- the story ----------------------------------------------------------------------------------------

    def tell(self) -> None:
        self.bounds()
        self.plain_calls()
        self.spending()
        self.people()
        self.time_passes()
        self.doubts()
        self.late_answers()
        self.runs_end()
        self.another_tenant()
        self.switches()
        self.keys()
        self.standing_grants()
        self.policies()
        assert self.call("last", "copy")

    def bounds(self) -> None:
        bound = partial(self.gate.limit, tenant="acme", by=PERSON)
        bound({"actions": 900, "parallel": 90, "pending": 90, "tokens": 10_000, "money": 10_000}, note="to begin with")
        bound({"actions": 800, "failures": 90, "pending": 80}, tool="pay")
        bound({"actions": 1}, tool="look")
        bound({}, tool="look")
        bound({"amount": 1_000}, account="refunds")
        bound({"amount": 1}, account="never used")

    def spending(self) -> None:
        self.call("spends", cents=7)
        self.call("spends", "clean", cents=7)
        self.call("spends again", "doubt", cents=7)
        self.gate.limit({"actions": 700, "tokens": 10_000}, tenant="acme", by=PERSON)
        self.gate._shop.ledger.change(
            self.run.id, lambda transaction: transaction.draft.add("charged", {"charges": CHARGES, "by": PERSON})
        )

    def plain_calls(self) -> None:
        gate, run = self.gate, self.run
        gate.call(run, "pay", b'{ "account": "a1", "cents": 1e1 }', key="k1", provenance={"thread": 7})
        gate.call(run, "pay", {"account": "a1", "cents": 10}, key="k1")
        for word in ("confirmed", "contradicted"):
            done = self.call("checked", tool="pay", cents=11, key=word)
            self.add(done.action, word, {"attempt": 1, "name": "is_paid", "version": "1"})
        self.call("a1", tool="look")
        gate.call(run, "pay", {"account": "a1", "cents": 600})
        gate.call(run, "pay", b'{"account": "a1", "cents": "many"}', key="k2")
        gate.call(run, "pay", b'{"account": ')
        gate.call(run, "nothing", {})
        gate.cancel(self.propose("a2", key="k3"), by=PERSON, note="not wanted")
        self.propose("a3", key="k4")
        gate.propose(run, "pay", {"account": "a3", "cents": 6}, key="k4", supersede=True)
        self.other.execute(self.gate.propose(run, "pay", {"account": "claimed", "cents": 70}))
        self.other.execute(self.gate.propose(run, "pay", {"account": "claimed", "cents": 80}))
        failed = self.call("a4", "clean", key="k5")
        gate.execute(failed.action, tenant="acme", retry=True)
        self.call("a4", "clean", key="k6")
        self.call("a4", "clean", key="k6")

    def held(self, account: str) -> Held:
        outcome = self.gate.call(self.run, "pay", {"account": account, "cents": 2000}, key=f"held-{account}")
        assert isinstance(outcome, Held)
        return outcome

    def vote(self, action: str, id_: str, shown: bytes, verdict: Verdict, approver: str) -> str:
        digest = vote_digest(approval=shown, verdict=verdict, approver=approver, key=None, nonce=NONCE).hex()
        body: dict[str, Json] = {"approval": id_, "shown": shown.hex(), "vote": digest, "verdict": verdict}
        self.add(action, "voted", body | {"approver": approver, "roles": ["lead"], "nonce": NONCE.hex()})
        return digest

    def answer(self, held: Held, verdict: str, by: str) -> None:
        asked = held.approval
        say = self.gate.approvals.approve if verdict == "approve" else self.gate.approvals.reject
        say(asked.id, digest=asked.digest, by=by, roles=["ops"], note=f"{by} has looked", tenant="acme")

    def people(self) -> None:
        pending = self.held("pending").approval
        changed = {"account": "edited", "cents": 2001}
        self.gate.approvals.edit(
            pending.id, digest=pending.digest, arguments=changed, by=PERSON, note="less", tenant="acme"
        )
        self.gate.deliver(CollectingChannel())
        granted = self.held("granted")
        for name in ("eve", "ada", "bob"):
            self.answer(granted, "approve", name)
            if name == "eve":
                asked = granted.approval
                self.gate.approvals.revoke(asked.id, digest=asked.digest, by=name, note="not sure", tenant="acme")
        self.gate.execute(granted.action, tenant="acme")
        self.answer(self.held("rejected"), "reject", "ada")

    def time_passes(self) -> None:
        expiring, held = self.propose("a5", key="k7"), self.held("expiring")
        self.clock.advance(timedelta(hours=25))
        self.gate.execute(expiring)
        self.gate.execute(held.action, tenant="acme")
        self.call("a5", key="k7")

    def doubts(self) -> None:
        in_doubt = self.call("b1", "doubt")
        assert isinstance(self.call("b1"), Refused)
        self.ask_operator(in_doubt.action)
        happened, not_yet = (self.call(account, "doubt", key=account) for account in ("b2", "b3"))
        given: dict[str, Any] = {"by": PERSON, "evidence": "bank statement", "tenant": "acme"}
        self.gate.reconcile(happened.action, applied=True, result={"seen": True}, **given)
        self.gate.reconcile(not_yet.action, applied=False, **given)
        self.gate.execute(not_yet.action, tenant="acme")
        given_up = self.call("b4", "doubt")
        self.gate.abandon(given_up.action, by=PERSON, note="the bank is gone", tenant="acme")
        self.call("b4", "doubt", key="fails-later")

    def ask_operator(self, action: str) -> None:
        """Hang a question on an unknown outcome."""
        digest = self.world.value("SELECT digest FROM agentgate_actions WHERE id = ?", action)
        required = requirement_digest(Requirement(kind="question"), action=digest, attempt=1)
        payload = self.gate._shop.ledger.payload("presentation", b"did it happen?")
        expires_at_us = self.clock.now_us() + 3_600_000_000
        asked = approval_digest(
            ledger=self.gate.ledger,
            id=QUESTION,
            requirement=required,
            presentation=payload.digest,
            expires_at_us=expires_at_us,
        )
        approval: dict[str, Json] = {
            "id": QUESTION,
            "requirement": required.hex(),
            "presentation": payload.digest.hex(),
            "digest": asked.hex(),
            "expires_at_us": expires_at_us,
            "grant_us": 900_000_000,
        }

        def add(transaction: Transaction) -> None:
            transaction.file(action)
            requirement = Requirement(kind="question").to_json()
            body: dict[str, Json] = {"approval": approval, "requirement": requirement, "attempt": 1}
            transaction.draft.add("question_asked", body, action=action, payloads=(payload,))

        self.gate._shop.ledger.change(self.run.id, add)
        self.vote(action, QUESTION, asked, "not_applied", "ada")

    def late_answers(self) -> None:
        with self.stuck("c1") as lost:
            self.clock.advance(timedelta(minutes=2))
            self.gate.execute(lost, tenant="acme")
        with self.stuck("c2") as answered:
            self.clock.advance(timedelta(minutes=2))
            self.gate.reconcile(answered, applied=False, by=PERSON, evidence="nothing there", tenant="acme")
        self.entered.clear()
        self.resume.clear()
        overran = self.call("c3", tool="slow")
        self.resume.set()
        until(lambda: self.world.words(overran.action)[-1] == "late")

    def runs_end(self) -> None:
        halted = self.gate.run("halted", tenant="acme", principal="agent:a")
        self.gate.propose(halted, "pay", {"account": "d1"})
        self.gate.call(halted, "pay", {"account": "d2", "cents": 9000})
        self.gate.call(halted, "pay", {"account": "d3"})
        closed = self.gate.run("closed", tenant="acme", principal="agent:a", limits=Limits(actions=3))
        self.gate.propose(closed, "pay", {"account": "e1"})
        self.gate._shop.ledger.change(
            closed.id, lambda transaction: transaction.draft.add("charged", {"charges": [], "by": PERSON})
        )
        self.gate.close_run(closed, by=PERSON)

    def another_tenant(self) -> None:
        other = self.gate.run("main", tenant="umbrella", principal="agent:b")
        self.gate.call(other, "pay", {"account": "a1", "cents": 10}, key="k1", provenance="elsewhere")
        self.call("a1", "doubt", run=other)

    def switches(self) -> None:
        self.gate.pause(by=PERSON, reason="everything is on fire")
        self.gate.pause(by=PERSON, reason="too curious", tenant="umbrella", tool="look")
        self.gate.resume(by=PERSON)

    def standing_grants(self) -> None:
        about: dict[str, Any] = {"by": PERSON, "why": "small ones", "tenant": "acme", "until": timedelta(days=9)}
        self.gate.grants.add(tool="pay", where={"where": [], "rest": "any"}, uses=7, principal="agent:a", **about)
        like = self.propose("like this").action
        taken_back = self.gate.grants.add(action=like, uses=1, **about)
        self.gate.grants.revoke(taken_back.id, by=PERSON, why="not any more", tenant="acme")

    def keys(self) -> None:
        file = Keyring([public("admin", trusted_to_add=True)])
        added = public("ada", roles=("finance", "legal"), until_us=FROM_US + DAY_US), public("eve"), public("bob")
        for key in added:
            signed = sign_addition(signer("admin"), key, ledger=self.gate.ledger)
            self.gate.keys.add(signed, keyring=file, by=PERSON, note="came to us")
        self.gate.keys.revoke(signer("eve").hash, by=PERSON, note="left us")
        self.gate.keys.revoke(signer("elsewhere").hash, by=PERSON, since=to_datetime(FROM_US + 7))
        self.gate.keys.revoke(signer("elsewhere").hash, by=PERSON, since=to_datetime(FROM_US))

    def policies(self) -> None:
        self.gate.activate_policy(by=PERSON, note="to begin with")
        self.other.activate_policy(by=PERSON)
        self.other.activate_policy(by=PERSON, tenant="umbrella")
        self.gate.activate_policy(by=PERSON)


CHARGES: list[Json] = [{"account": "tokens", "amount": 90}, {"account": "money", "amount": 9}]
QUESTION = "00000000-0000-7000-8000-000000000009"


def look(account: str) -> dict[str, Json]:
    """Look at an account."""
    return {"account": account}


def _policy(name: str, at_claim: Callable[[PolicyRequest], Decision | None] | None = None) -> ScriptedPolicy:
    def decide(request: PolicyRequest) -> Decision:
        stricter = None if at_claim is None else at_claim(request)
        return stricter or _decision(request)

    return ScriptedPolicy(otherwise=decide, name=name, facts=("freeze",))


def _cents(request: PolicyRequest) -> int:
    arguments = request.arguments
    cents = arguments.get("cents", 0) if type(arguments) is dict else 0
    assert type(cents) is int
    return cents


def _decision(request: PolicyRequest) -> Decision:
    cents = _cents(request)
    if cents >= 9000:
        return agentgate.abort("far_too_much", "end it")
    if cents >= 2000:
        return agentgate.require_approval(
            "much", "a person must look", requirement=Requirement(quorum=2, roles=("ops",))
        )
    if cents == 7:
        return agentgate.allow("spends", reserves=[Reserve(account="refunds", amount=7)])
    return agentgate.deny("too_much", "over the limit") if cents >= 500 else agentgate.allow("small")


def _stricter(request: PolicyRequest) -> Decision | None:
    return {70: agentgate.require_approval("now_much"), 80: agentgate.deny("now_too_much")}.get(_cents(request))


def until(there: Callable[[], bool]) -> None:
    """Wait for something that another thread does."""
    waited = threading.Event()
    for _ in range(1_000):
        if there():
            return
        waited.wait(0.01)
    raise AssertionError("it did not come")
