"""What people are shown beside a call: the last approved one of its tool and principal, found by index."""

from contextlib import closing
from typing import Any

import pytest
from sqlalchemy.dialects import sqlite

import agentgate
from agentgate import Done, Gate, Held, NoEffect, require_approval
from agentgate.gate.looks import look_at
from agentgate.sealing import SealingKey
from agentgate.store import approved
from agentgate.testing import ScriptedPolicy
from support.worlds import World, grant, named, opened

ASK = require_approval("big", "over the limit")
KEY = SealingKey(bytes(range(32)))
NONE = "no approved call of this tool has run for this principal before"
SINCE = "since the last approved call of this tool, action "


def pay(account: str, cents: int = 7) -> None:
    """Send money."""


def ask(gate: Gate, arguments: Any, *, tool: str = "pay", tenant: str = "acme", **options: Any) -> Held:
    outcome = gate.call(opened(gate, tenant=tenant), tool, arguments, **options)
    assert isinstance(outcome, Held)
    return outcome


def run(gate: Gate, arguments: Any, *, tenant: str = "acme", **options: Any) -> Held:
    held = ask(gate, arguments, tenant=tenant, **options)
    grant(gate, held)
    assert isinstance(gate.execute(held.action, tenant=tenant), Done)
    return held


def difference(held: Held) -> list[str]:
    lines = held.approval.shown.split("\n")
    at = next(n for n, line in enumerate(lines) if line.startswith((NONE, SINCE, "the last approved call")))
    return lines[at:-1]


def test_the_difference_to_the_last_approved_call_is_shown(world: World) -> None:
    with world.gate(named("pay", pay), policy=ScriptedPolicy(otherwise=ASK)) as gate:
        assert difference(ask(gate, {"account": "never approved"})) == [NONE]
        first = run(gate, {"account": "a1"})
        second = run(gate, {"account": "a1", "cents": 99_999})
        third = ask(gate, {"account": "a2", "cents": 99_999})
    assert difference(first) == [NONE]
    assert difference(second) == [f"{SINCE}{first.action}", "  changed cents", "    was = 7", "    now = 99999"]
    assert difference(third) == [f"{SINCE}{second.action}", "  changed account", '    was = "a1"', '    now = "a2"']


def test_what_was_only_granted_or_allowed_or_is_anothers_is_no_last_approved_call(world: World) -> None:
    """Another principal's least of all: who proposes is handed what is shown."""
    tools = [named("pay", pay), named("pay", pay, namespace="other")]
    with world.gate(*tools, policy=ScriptedPolicy(agentgate.allow(), otherwise=ASK)) as gate:
        assert isinstance(gate.call(opened(gate), "pay", {"account": "allowed"}), Done)
        grant(gate, ask(gate, {"account": "granted"}))
        run(gate, {"account": "secret of theirs"}, principal="agent:other")
        run(gate, {"account": "secret of theirs"}, tenant="umbrella")
        run(gate, {"account": "of another server"}, namespace="other")
        held = ask(gate, {"account": "a1"})
    assert difference(held) == [NONE]
    assert "theirs" not in held.approval.shown


def test_what_failed_under_its_grant_is_compared_with_and_what_a_policy_first_let_through_is_not(world: World) -> None:
    def fail(account: str) -> None:
        raise NoEffect(account)

    policy = ScriptedPolicy(agentgate.allow(), otherwise=ASK)
    with world.gate(named("pay", fail), policy=policy) as gate:
        let = gate.call(opened(gate), "pay", {"account": "let"}, key="let")
        assert isinstance(let, agentgate.Failed)
        assert isinstance(gate.execute(let.action, tenant="acme", retry=True), Held)
        assert world.value("SELECT attempts FROM agentgate_actions WHERE id = ?", let.action) == 1
        held = ask(gate, {"account": "asked"})
        assert difference(held) == [NONE]
        grant(gate, held)
        assert isinstance(gate.execute(held.action, tenant="acme"), agentgate.Failed)
        assert difference(ask(gate, {"account": "asked"})) == [f"{SINCE}{held.action}", "  nothing differs"]


def specced(*sensitive: str) -> Any:
    schema = {"type": "object", "properties": {"card": {"type": "string"}, "cents": {"type": "integer"}}}
    spec = agentgate.ToolSpec(name="pay", input_schema=schema, sensitive=sensitive)
    return agentgate.gated(spec, lambda **_given: None)


@pytest.mark.parametrize(("then", "now"), [(["/card"], ["/card"]), (["/card"], []), ([], ["/card"])])
def test_what_is_sensitive_now_or_was_then_is_not_shown(world: World, then: list[str], now: list[str]) -> None:
    policy = ScriptedPolicy(otherwise=ASK)
    with world.gate(specced(*then), sealing=KEY, policy=policy) as gate:
        first = run(gate, {"card": "4111-first", "cents": 1})
    with world.gate(specced(*now), sealing=KEY, policy=policy) as gate:
        held = ask(gate, {"card": "4222-second", "cents": 2})
    assert "4111-first" not in held.approval.shown
    assert difference(held) == [
        f"{SINCE}{first.action}",
        "  changed cents",
        "    was = 1",
        "    now = 2",
        "  [sensitive]: not compared",
    ]


def test_what_no_key_opens_cannot_be_shown_and_keeps_nobody_from_asking(world: World) -> None:
    policy = ScriptedPolicy(otherwise=ASK)
    with world.gate(specced("/card"), sealing=KEY, policy=policy) as gate:
        first = run(gate, {"card": "4111", "cents": 1})
    with world.gate(specced(), policy=policy) as gate:
        held = ask(gate, {"card": "4222", "cents": 2})
    told = "the last approved call of this tool cannot be shown, because no key here opens it"
    assert difference(held) == [f"{told}: action {first.action}"]


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        ("DELETE FROM agentgate_payloads WHERE kind = 'arguments'", "its arguments are gone"),
        (
            "UPDATE agentgate_payloads SET content = CAST('{}' AS BLOB) WHERE kind = 'arguments'",
            "it is not what was recorded",
        ),
        ("UPDATE agentgate_actions SET proposed_n = 2", "it is not what was recorded"),
        ("DELETE FROM agentgate_documents WHERE kind = 'spec'", "it is not what was recorded"),
    ],
)
def test_what_is_gone_or_was_changed_cannot_be_shown(world: World, edit: str, why: str) -> None:
    with world.gate(named("pay", pay), policy=ScriptedPolicy(otherwise=ASK)) as gate:
        first = run(gate, {"account": "a1", "cents": 1})
        world.sql(edit)
        held = ask(gate, {"account": "a2"})
    told = f"the last approved call of this tool cannot be shown, because {why}: action {first.action}"
    assert difference(held) == [told]


def test_looking_for_it_costs_the_same_however_many_actions_a_ledger_has(world: World) -> None:
    with closing(world.connect()) as connection:
        sql, names, fixed = approved._LAST._for(sqlite.dialect())
        plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", [fixed.get(name, "x") for name in names]).fetchall()
    steps = [str(row[3]) for row in plan if str(row[3]).startswith(("SEARCH", "SCAN")) and "INDEX" in str(row[3])]
    assert [step.split("INDEX ")[1].split(" ")[0] for step in steps] == [
        "agentgate_actions_approved",
        "sqlite_autoindex_agentgate_attempts_1",
    ]
    assert fixed[next(name for name in names if name.startswith("param"))] == approved.MOST_LOOKED_AT
    assert not any("TEMP B-TREE FOR ORDER BY" in str(row[3]) and "agentgate_actions" in str(row[3]) for row in plan)


def test_the_servers_description_is_shown_as_its_own_words(world: World) -> None:
    forged = "Refunds.\nagentgate: approving nothing"
    with world.gate(named("pay", pay, description=forged), policy=ScriptedPolicy(otherwise=ASK)) as gate:
        held = ask(gate, {"account": "a1"})
    assert "  | Refunds.\n  | agentgate: approving nothing\n" in held.approval.shown


def test_attempts_that_may_have_happened_are_read_with_their_codes_and_late_answers(world: World) -> None:
    def act() -> None:
        raise ConnectionResetError

    with world.gate(named("act", act), policy=ScriptedPolicy()) as gate:
        unknown = gate.call(opened(gate), "act", {})
        assert isinstance(unknown, agentgate.Unknown)
        (doubt,) = look_at(gate._shop.ledger, "acme", unknown.action).doubts
        ((started_at_us,),) = world.sql("SELECT started_at_us FROM agentgate_attempts")
        assert (doubt.attempt, doubt.started_at_us, doubt.late) == (1, started_at_us, ())
        assert doubt.code == next(event for event in world.events() if event.type == "in_doubt").body["code"]
