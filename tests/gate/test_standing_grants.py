"""Standing grants: a yes in advance, to what a predicate names, until a time, so many times; and to nothing else."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import agentgate
from agentgate import Done, Gate, Held, Misuse, NotFound, Outcome, PolicyRequest, Refused, Reserve, Unknown, allow
from agentgate.policy.grants import account_of
from agentgate.testing import FakeClock, ScriptedPolicy
from support.worlds import World, kinds, named, opened

ONE: dict[str, Any] = {"account": "a1", "cents": 1}
RULES = """
version: 1
rules:
  - {name: refunds, match: {tool: "*"}, outcome: require_approval, reason: ask, standing: true, obligations: [tell]}
"""
UP_TO_50 = {"where": [{"path": "/account", "equals": "a1"}, {"path": "/cents", "at_most": 50}]}


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(RULES)
    return path


def add(gate: Gate, *, where: Any = UP_TO_50, **given: Any) -> agentgate.StandingGrant:
    asked: dict[str, Any] = {"by": "person:ada", "why": "small refunds", "uses": 3, "until": timedelta(hours=1)}
    about = {} if "action" in given else {"tool": "refund"}
    return gate.grants.add(where=where, tenant="acme", **(asked | about | given))


def test_what_is_covered_runs_without_a_person_until_the_uses_are_gone(world: World, rules: Path) -> None:
    with world.gate(policy=rules) as gate:
        run = opened(gate)
        given = add(gate, uses=2)
        outcomes = [gate.call(run, "refund", ONE | {"cents": cents}) for cents in (50, 51, 1, 2)]
        (left,) = gate.grants.list(ended=True)
    assert kinds(outcomes) == ["Done", "Held", "Done", "Held"]
    assert (given.left, left.left, left.state) == (2, 0, "used_up")
    assert (left.by, left.why, left.where) == ("person:ada", "small refunds", UP_TO_50)
    (decision,) = [one.body["decision"] for one in world.events(outcomes[0].action) if one.type == "proposed"]
    assert decision == {
        "outcome": "allow",
        "rule": "refunds",
        "reasons": [{"code": "standing_grant"}],
        "obligations": ["tell"],
        "reserves": [{"account": account_of(given.id), "amount": 1}],
    }
    assert not world.damage()


def test_an_actions_own_arguments_and_no_byte_else_are_covered(world: World, rules: Path) -> None:
    with world.gate(policy=rules) as gate:
        run = opened(gate)
        held = gate.call(run, "refund", ONE)
        given = add(gate, action=held.action, where=None, uses=9)
        others: list[dict[str, Any]] = [{"account": "a2"}, {"account": "A1"}, {"account": "a1 "}, {"cents": 2}]
        assert kinds(gate.call(run, "refund", ONE | other) for other in others) == ["Held"] * len(others)
        assert isinstance(gate.call(run, "refund", {"cents": 1.0, "account": "a1"}), Done)
    assert (given.like, given.where) == (held.action, {"where": [{"path": "", "equals": ONE}]})


@pytest.mark.parametrize(
    ("changed", "run"),
    [
        ({"principal": "agent:other"}, {}),
        ({}, {"tenant": "umbrella"}),
        ({"tool": "void"}, {}),
    ],
)
def test_another_principal_tenant_or_tool_is_not_covered(
    world: World, rules: Path, changed: dict[str, Any], run: dict[str, Any]
) -> None:
    with world.gate(world.refund(), world.refund(name="void"), policy=rules) as gate:
        given = {"principal": "agent:support"} | changed
        add(gate, **given)
        assert isinstance(gate.call(opened(gate, **run), "refund", ONE), Held)


def test_a_changed_definition_is_not_covered(world: World, rules: Path) -> None:
    with world.gate(policy=rules) as gate:
        add(gate)
    with world.gate(world.refund(risk="destructive"), policy=rules) as gate:
        assert isinstance(gate.call(opened(gate), "refund", ONE), Held)


def test_whoever_asks_cannot_have_said_yes_to_it(world: World, rules: Path) -> None:
    with world.gate(policy=rules) as gate:
        add(gate, by="agent:support")
        assert isinstance(gate.call(opened(gate), "refund", ONE), Held)
    rules.write_text(RULES.replace("standing: true", "requirement: {proposer: true}, standing: true"))
    with world.gate(policy=rules) as gate:
        assert isinstance(gate.call(opened(gate), "refund", ONE), Done)


def test_it_is_over_at_its_very_microsecond(world: World, rules: Path) -> None:
    clock = FakeClock(tick=timedelta(0))
    with world.gate(policy=rules, clock=clock) as gate:
        run = opened(gate)
        add(gate, until=timedelta(seconds=10))
        clock.advance(timedelta(seconds=10, microseconds=-1))
        assert isinstance(gate.call(run, "refund", ONE), Done)
        clock.advance(timedelta(microseconds=1))
        assert isinstance(gate.call(run, "refund", ONE | {"cents": 2}), Held)
        assert [one.state for one in gate.grants.list(ended=True)] == ["over"]
        assert not list(gate.grants.list())
        # A clock that is set back revives nothing that the run has seen end.
        clock.jump(timedelta(hours=-1))
        assert isinstance(gate.call(run, "refund", ONE | {"cents": 3}), Held)


@pytest.mark.parametrize("end", ["over", "revoked", "used up"])
def test_between_the_question_and_the_claim_it_may_end_and_is_not_used_then(
    world: World, clock: FakeClock, end: str
) -> None:
    """The policy answers, and before the claim's transaction the grant is no more: nothing runs under it."""
    grant: list[str] = []

    def policy(request: PolicyRequest) -> agentgate.Decision:
        use = agentgate.standing_reserve(request)
        assert use is not None
        if end == "over":
            clock.jump(timedelta(hours=2))
        elif end == "revoked":
            other.grants.revoke(grant[0], by="person:bob", tenant="acme")
        else:
            world.sql("UPDATE agentgate_budgets SET used = most WHERE name = ?", account_of(grant[0]))
        return allow("standing_grant", reserves=[use])

    asked = agentgate.python_policy(policy, identity="one", facts=["standing_grants"])
    with world.gate(clock=clock) as other, world.gate(policy=asked, clock=clock) as gate:
        grant.append(add(other).id)
        outcome = gate.call(opened(gate), "refund", ONE, key="k")
    assert isinstance(outcome, Refused)
    assert outcome.reason == "standing_gone"
    assert world.downstream.total == 0


def test_what_was_allowed_by_a_grant_that_is_revoked_before_its_claim_waits_for_a_person(
    world: World, rules: Path
) -> None:
    with world.gate(policy=rules) as gate:
        run = opened(gate)
        given = add(gate)
        proposal = gate.propose(run, "refund", ONE)
        assert gate.grants.revoke(given.id, by="person:bob", tenant="acme").state == "revoked"
        assert isinstance(gate.execute(proposal), Held)
        assert gate.grants.revoke(given.id, by="person:bob", tenant="acme").state == "revoked"  # and once is enough
    assert world.downstream.total == 0
    assert [event.type for event in world.events()].count("standing_revoked") == 1
    assert not world.damage()


def test_what_has_used_it_keeps_its_use_and_a_revocation_undoes_nothing(world: World, rules: Path) -> None:
    with world.gate(policy=rules) as gate:
        given = add(gate)
        assert isinstance(gate.call(opened(gate), "refund", ONE), Done)
        gate.grants.revoke(given.id, by="person:bob", tenant="acme")
    assert world.sql("SELECT most, used FROM agentgate_budgets") == [(0, 1)]
    assert not world.damage()


def test_a_use_comes_back_when_nothing_happened_and_stays_while_nobody_knows(world: World, rules: Path) -> None:
    moods: list[BaseException] = [agentgate.NoEffect("closed"), RuntimeError("who knows")]

    def refund(account: str, cents: int) -> list[Any]:
        if moods:
            raise moods.pop(0)
        return [account, cents]

    with world.gate(named("refund", refund), policy=rules) as gate:
        run = opened(gate)
        add(gate, uses=1)
        assert isinstance(gate.call(run, "refund", ONE), agentgate.Failed)
        unknown = gate.call(run, "refund", ONE | {"cents": 2})
        assert isinstance(unknown, Unknown)
        assert isinstance(gate.call(run, "refund", ONE | {"cents": 3}), Held)
        gate.reconcile(unknown.action, applied=False, by="ada", evidence="seen", tenant="acme")
        assert isinstance(gate.execute(unknown.action, tenant="acme"), Done)
    assert world.sql("SELECT most, used FROM agentgate_budgets") == [(1, 1)]
    assert not world.damage()


def test_what_is_tried_again_stands_on_the_use_that_it_has_taken(world: World, rules: Path) -> None:
    moods: list[BaseException] = [RuntimeError("who knows")]

    def refund(account: str, cents: int) -> list[Any]:
        if moods:
            raise moods.pop(0)
        return [account, cents]

    tool = named("refund", refund, recovery=agentgate.Keyed(hours=1))
    with world.gate(tool, policy=rules) as gate:
        run = opened(gate)
        add(gate, uses=1)
        outcome: Outcome = gate.call(run, "refund", ONE, key="k")
        if isinstance(outcome, Unknown):
            outcome = gate.execute(outcome.action, tenant="acme")
    assert isinstance(outcome, Done)
    assert world.sql("SELECT most, used FROM agentgate_budgets") == [(1, 1)]


def test_a_row_without_its_event_grants_nothing_and_is_found(world: World, rules: Path) -> None:
    with world.gate(policy=rules) as gate:
        given = add(gate, uses=1)
        run = opened(gate)
        forged = given.id[:-4] + "ffff"
        world.sql(
            "INSERT INTO agentgate_standing SELECT ?, tenant, principal, namespace, tool, spec, 99, until_us, "
            "given_by, alike, n, revoked_n FROM agentgate_standing",
            forged,
        )
        world.sql(
            "INSERT INTO agentgate_budgets SELECT tenant, kind, namespace, ?, measure, 99, 0, n FROM agentgate_budgets",
            account_of(forged),
        )
        outcomes = [gate.call(run, "refund", ONE | {"cents": cents}) for cents in (1, 2)]
    assert kinds(outcomes) == ["Done", "Held"]
    assert "grant_row" in {one.kind for one in agentgate.verify(world.url).breaks}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE agentgate_standing SET until_us = until_us + 1",
        "UPDATE agentgate_standing SET uses = uses + 1",
        "UPDATE agentgate_standing SET principal = 'agent:b'",
        "UPDATE agentgate_standing SET revoked_n = 1",
        "DELETE FROM agentgate_standing",
    ],
)
def test_an_edited_row_is_found(world: World, rules: Path, statement: str) -> None:
    with world.gate(policy=rules) as gate:
        add(gate)
    world.sql(statement)
    assert [one.kind for one in agentgate.verify(world.url).breaks] == ["grant_row"]


def test_a_use_that_nobody_gave_is_never_taken(world: World) -> None:
    made_up = ScriptedPolicy(otherwise=allow(reserves=[Reserve(account="grant:nobody's", amount=1)]))
    with world.gate(policy=made_up) as gate:
        outcome = gate.call(opened(gate), "refund", ONE)
        assert isinstance(outcome, Refused)
        assert outcome.reason == "limit_reserves"
        with pytest.raises(Misuse, match=r"account: grant:… is a standing grant's"):
            gate.limit({"amount": 9}, account="grant:nobody's", by="ada")
    assert world.downstream.total == 0


def test_a_policy_asked_again_years_later_needs_no_table(world: World, rules: Path) -> None:
    with world.gate(policy=rules) as gate:
        run = opened(gate)
        given = add(gate, uses=1)
        for cents in (1, 2, 51):
            gate.call(run, "refund", ONE | {"cents": cents})
        gate.grants.revoke(given.id, by="person:bob", tenant="acme")
    world.sql("DELETE FROM agentgate_standing")
    report = agentgate.recheck(world.url, policy=rules)
    assert (report.rechecked, report.same, report.nondeterministic) == (3, 3, 0)


def test_accounts_of_grants_do_not_crowd_out_what_a_policy_is_shown(world: World) -> None:
    policy = ScriptedPolicy()
    with world.gate(policy=policy) as gate:
        add(gate)
        for account in ("a", "grant", "zzz"):
            gate.limit({"amount": 5}, tenant="acme", account=account, by="ada")
        gate.call(opened(gate), "refund", ONE)
    assert list(policy.requests[0].view.budgets) == ["account.a", "account.grant", "account.zzz"]


def test_a_tool_has_at_most_64_that_stand(world: World, clock: FakeClock) -> None:
    with world.gate(clock=clock) as gate:
        for _ in range(64):
            add(gate)
        with pytest.raises(agentgate.NotPossible, match="64 standing grants"):
            add(gate)
        clock.advance(timedelta(hours=1))
        assert add(gate).state == "live"
        assert len(list(gate.grants.list(tenant="acme", ended=True))) == 65
        assert not list(gate.grants.list(tenant="umbrella"))


def test_the_fact_is_the_gates_own(world: World) -> None:
    with pytest.raises(Misuse, match="every gate provides this one itself"):
        world.gate(facts={"standing_grants": lambda _request: []})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"why": " "}, "why:"),
        ({"uses": 0}, "uses:"),
        ({"uses": True}, "uses:"),
        ({"until": timedelta(0)}, "until:"),
        ({"until": 5}, "until:"),
        ({"where": None}, "where:"),
        ({"where": {"where": [{"path": "/cent", "equals": 1}]}}, "no argument 'cent'"),
        ({"by": ""}, "by:"),
        ({"action": "x", "tool": "refund"}, "tool:"),
    ],
)
def test_what_cannot_be_given_is_said_by_its_name(world: World, given: dict[str, Any], said: str) -> None:
    with world.gate() as gate, pytest.raises(Misuse, match=said):
        add(gate, **given)


def test_what_is_not_there_is_not_found(world: World) -> None:
    with world.gate() as gate:
        given = add(gate)
        with pytest.raises(NotFound):
            add(gate, tool="refnd")
        with pytest.raises(NotFound):
            add(gate, action=given.id)
        with pytest.raises(NotFound):
            gate.grants.revoke(given.id, by="ada", tenant="umbrella")
