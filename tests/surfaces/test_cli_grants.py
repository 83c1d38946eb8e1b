"""grants add, list and revoke: they show, and what they give or take back is what they have shown, or nothing."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentgate import Done, Gate, Held, Requirement, SealingKey, require_approval
from agentgate.sealing import write_key
from agentgate.testing import ScriptedPolicy
from support.commands import Ran, ran, typed, unseen
from support.terminals import answered
from support.worlds import World, made, named, opened

TENANT = ("--tenant", "acme")
ADA = (*TENANT, "--by", "person:ada", "--why", "small refunds")
TERMS = (*ADA, "--uses", "2", "--for", "2h")
WHERE = {"where": [{"path": "/account", "one_of": ["a1", "a2"]}, {"path": "/cents", "at_most": 5000}]}
REFUNDS = ("--tool", "refund", "--where", json.dumps(WHERE))
RULES = """
version: 1
rules:
  - {name: refunds, match: {tool: "*"}, outcome: require_approval, reason: ask, standing: true}
"""
URL = "sqlite:////nowhere/at/all/agent.db"
ID = "01a22da7-df65-7537-b0b6-a897f9eab70a"


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = made(tmp_path)
    (tmp_path / "policy.yaml").write_text(RULES)
    with world.gate():
        return world


def call(world: World, *, cents: int, account: str = "a1") -> object:
    with world.gate(policy=world.folder / "policy.yaml") as gate:
        return gate.call(opened(gate), "refund", {"account": account, "cents": cents})


def given(world: World, *more: str) -> Any:
    done = ran("grants", "add", world.url, *REFUNDS, *TERMS, "--yes", "--json", *more)
    assert (done.code, done.err) == (0, "")
    return done.document


def count(world: World) -> int:
    return int(world.value("SELECT count(*) FROM agentgate_standing"))


def listed(world: World, *more: str) -> list[Any]:
    return ran("grants", "list", world.url, "--json", *more).documents


def test_what_is_given_is_shown_and_is_what_then_runs(world: World) -> None:
    done = ran("grants", "add", world.url, *REFUNDS, *TERMS, "--yes")
    assert (done.code, done.err) == (0, "")
    (grant,) = listed(world)
    lines = done.out.splitlines()
    assert lines[0] == "tool       refund"
    assert lines[1] == f"definition {grant['spec']}"
    assert lines[2:11] == [
        "for        everybody of tenant acme",
        "arguments",
        '  "/account" one of 2:',
        '    or = "a1"',
        '    or = "a2"',
        '  "/cents" at most 5000',
        "  and nothing else",
        "uses       2",
        lines[10],
    ]
    assert lines[10].startswith("until      ")
    assert lines[10].endswith("(2 h)")
    assert lines[11:] == [
        "by         person:ada",
        "why        small refunds",
        "",
        f"grant {grant['id']}: given by person:ada; it is live now",
    ]
    assert isinstance(call(world, cents=5001), Held)
    assert isinstance(call(world, cents=5000), Done)
    assert [(one["left"], one["state"]) for one in listed(world)] == [(1, "live")]
    assert not world.damage()


def test_an_actions_own_arguments_are_given_each_by_its_name(world: World) -> None:
    held = call(world, cents=900)
    assert isinstance(held, Held)
    done = ran("grants", "add", world.url, "--action", held.action, *TERMS, "--principal", "agent:support", "--yes")
    assert done.code == 0, done.err
    assert "for        agent:support of tenant acme" in done.out
    assert f"like       action {held.action}\narguments\n  exactly these:\n" in done.out
    assert '    account = "a1"\n    cents = 900\n  and nothing else\n' in done.out
    (grant,) = listed(world)
    assert (grant["like"], grant["principal"]) == (held.action, "agent:support")
    assert grant["where"] == {"where": [{"path": "", "equals": {"account": "a1", "cents": 900}}]}


def test_a_predicate_of_a_file_and_the_rest_left_open_are_shown_as_such(world: World, tmp_path: Path) -> None:
    file = tmp_path / "where.json"
    file.write_text(
        '{"where": [{"path": "/cents", "at_least": 7}, {"path": "/account", "equals": "a9"}], "rest": "any"}'
    )
    done = ran("grants", "add", world.url, "--tool", "refund", "--where", f"@{file}", *TERMS, "--yes")
    assert '  "/cents" at least 7\n  "/account" = "a9"\n  anything else may be anything\n' in done.out
    assert listed(world)[0]["where"]["rest"] == "any"


def test_on_a_terminal_it_shows_asks_and_takes_yes_alone(world: World) -> None:
    command = ("grants", "add", world.url, *REFUNDS, *TERMS)
    question = b"give this standing grant? Type yes to go on: "
    for answer in (b"y\n", b"\n", b"YES\n", b"\x04"):
        code, shown = answered(*command, answers={question: answer})
        assert (code, count(world)) == (1, 0), answer
        assert b"nothing was given" in shown
    code, shown = answered(*command, answers={question: b"yes\n"})
    assert (code, count(world)) == (0, 1)
    before = shown.decode().replace("\r\n", "\n").partition(question.decode())[0]
    assert '"/cents" at most 5000' in before
    grant = listed(world)[0]["id"]
    take = ("grants", "revoke", grant, world.url, *TENANT, "--by", "person:bob")
    question = b"take this standing grant back? Type yes to go on: "
    code, _ = answered(*take, answers={question: b"no\n"})
    assert (code, listed(world)[0]["state"]) == (1, "live")
    code, shown = answered(*take, answers={question: b"yes\n"})
    assert (code, listed(world)) == (0, [])
    assert b'"/cents" at most 5000' in shown.partition(question)[0]


def test_what_was_typed_before_the_question_stood_there_is_no_answer(world: World) -> None:
    answers = {b"Type yes to go on: ": b"no\n"}
    code, _ = answered("grants", "add", world.url, *REFUNDS, *TERMS, answers=answers, before=b"yes\n")
    assert (code, count(world)) == (1, 0)


def test_without_a_terminal_nothing_is_given_or_taken_back_that_nobody_said_yes_to(world: World) -> None:
    grant = given(world)["id"]
    for command in (("add", world.url, *REFUNDS, *TERMS), ("revoke", grant, world.url, *TENANT, "--by", "ops:ada")):
        done = typed("grants", *command)  # from /dev/null
        assert (done.code, done.out) == (2, "")
        assert "--yes: missing; there is no terminal to ask on" in done.err
        answer = ran("grants", *command, "--json")
        assert (answer.code, answer.document["error"]["code"]) == (2, "usage")
    assert [one["state"] for one in listed(world)] == ["live"]


def test_a_definition_that_changes_between_the_text_and_the_answer_is_not_given(world: World) -> None:
    def changed() -> bytes:
        def refund(account: str, cents: int, note: str = "") -> str:
            return f"{account} {cents} {note}"

        with world.gate(named("refund", refund, risk="external")) as gate:
            gate.call(opened(gate), "refund", {"account": "a1", "cents": 1})
        return b"yes\n"

    code, shown = answered("grants", "add", world.url, *REFUNDS, *TERMS, answers={b"Type yes to go on: ": changed})
    assert (code, count(world)) == (1, 0), shown
    assert b"look at it again" in shown


def test_a_list_tells_the_uses_and_the_time_that_are_left(world: World) -> None:
    first = given(world)
    second = given(world, "--principal", "agent:support")
    ran("grants", "revoke", second["id"], world.url, *TENANT, "--by", "person:bob", "--why", "enough", "--yes")
    call(world, cents=1)
    text = ran("grants", "list", world.url).out
    assert text.splitlines()[0].split() == ["uses", "time", "left", "state", "tool", "for", "tenant", "by", "grant"]
    (row,) = text.splitlines()[1:]
    assert row.startswith("1 of 2 left  1 h 59 min  live ")
    assert row.endswith(f"everybody  acme    person:ada  {first['id']}")
    assert [one["state"] for one in listed(world, "--ended")] == ["live", "revoked"]
    assert listed(world, "--tenant", "umbrella") == []
    assert not world.damage()


def test_a_grant_that_is_taken_back_is_shown_and_answers_no_more(world: World) -> None:
    grant = given(world)["id"]
    command = ("grants", "revoke", grant, world.url, *TENANT, "--by", "person:bob", "--yes")
    done = ran(*command)
    assert done.out.splitlines()[:2] == [f"grant      {grant}", "state      live; 2 of 2 left"]
    assert done.out.endswith(f"grant {grant}: taken back by person:bob; it is revoked now\n")
    assert isinstance(call(world, cents=1), Held)
    again = ran(*command)
    assert (again.code, again.out.splitlines()[-1]) == (0, f"grant {grant}: was taken back already; it is revoked now")
    told = ran(*command, "--json").document
    assert (told["changed"], told["state"], told["left"]) == (False, "revoked", 0)
    assert world.value("SELECT count(*) FROM agentgate_events WHERE instr(event, 'standing_revoked')") == 1


def test_nothing_of_the_record_moves_a_cursor(world: World) -> None:
    evil = "a1\u202e\x1b[2J\u200b\n; yes"
    held = call(world, cents=1, account=evil)
    assert isinstance(held, Held)
    done = ran("grants", "add", world.url, "--action", held.action, *TERMS, "--why", evil, "--yes")
    shown = ran("grants", "revoke", listed(world)[0]["id"], world.url, *TENANT, "--by", "ops:ada", "--yes")
    for one in (done, shown, ran("grants", "list", world.url)):
        assert one.code == 0, one.err
        assert not unseen(one.out)
    assert "a1\\u202e\\u001b[2J\\u200b" in done.out
    assert listed(world, "--ended")[0]["why"] == evil


def test_a_sealed_ledger_needs_its_key_and_shows_no_sensitive_argument(tmp_path: Path) -> None:
    def pay(card: str, cents: int) -> str:
        return f"{card} {cents}"

    world, key, file = made(tmp_path), SealingKey.new(), tmp_path / "key"
    write_key(file, key)
    asks = ScriptedPolicy(otherwise=require_approval("big", requirement=Requirement()))
    with world.gate(named("pay", pay, risk="external", sensitive=["/card"]), policy=asks, sealing=key) as gate:
        held = gate.call(opened(gate), "pay", {"card": "4929123", "cents": 5})
    assert isinstance(held, Held)
    command = ("grants", "add", world.url, "--action", held.action, *TERMS, "--yes")
    without = ran(*command)
    assert (without.code, without.out) == (2, "")
    assert "key" in without.err
    done = ran(*command, "--sealing-key", str(file))
    assert done.code == 0, done.err
    assert '    card = "[sensitive]"\n    cents = 5\n' in done.out
    where = {"where": [{"path": "/card", "equals": "4929123"}, {"path": "/cents", "at_most": 5}]}
    more = ("--tool", "pay", "--where", json.dumps(where), *TERMS, "--yes", "--sealing-key", str(file))
    assert '"/card" = "[sensitive]"' in ran("grants", "add", world.url, *more).out
    opened_ = ran("grants", "list", world.url, "--json", "--sealing-key", str(file))
    assert [one["where"] for one in opened_.documents] == [
        {"where": [{"path": "", "equals": {"card": "[sensitive]", "cents": 5}}]},
        {"where": [{"path": "/card", "equals": "[sensitive]"}, {"path": "/cents", "at_most": 5}]},
    ]
    sealed = listed(world)
    assert [(one["where"], one["why"]) for one in sealed] == [(None, None)] * 2
    shown = ran("grants", "revoke", sealed[0]["id"], world.url, *TENANT, "--by", "ops:ada", "--yes")
    assert shown.code == 0, shown.err
    assert "sealed" in shown.out
    assert "4929123" not in done.out + opened_.out + shown.out + without.err


def test_what_is_not_there_is_not_found(world: World) -> None:
    grant = given(world)["id"]
    for command in (
        ("add", world.url, "--tool", "refnd", "--where", json.dumps(WHERE), *TERMS),
        ("add", world.url, "--action", ID, *TERMS),
        ("revoke", ID, world.url, *TENANT, "--by", "ops:ada"),
        ("revoke", grant, world.url, "--tenant", "umbrella", "--by", "ops:ada"),
    ):
        done = ran("grants", *command, "--yes", "--json")
        assert (done.code, done.document["error"]["code"]) == (2, "not_found"), command
    assert count(world) == 1


def test_the_65th_grant_of_a_tool_is_refused_as_the_ledger_says(world: World) -> None:
    with world.gate() as gate:
        fill(gate)
    done = ran("grants", "add", world.url, *REFUNDS, *TERMS, "--yes", "--json")
    assert (done.code, done.document["error"]["code"]) == (1, "not_possible")


def fill(gate: Gate) -> None:
    for _ in range(64):
        gate.grants.add(
            tool="refund", where=WHERE, by="ada", why="w", uses=1, until=datetime(2200, 1, 1, tzinfo=UTC), tenant="acme"
        )


def where(stated: str, *more: str) -> tuple[str, ...]:
    return ("add", URL, "--tool", "refund", "--where", stated, *TERMS, "--yes", *more)


WRONG = {
    "no uses": (("add", URL, *REFUNDS, *ADA, "--for", "2h"), "--uses: missing; say how many"),
    "no use": (("add", URL, *REFUNDS, *ADA, "--for", "2h", "--uses", "0"), "--uses"),
    "no end": (("add", URL, *REFUNDS, *ADA, "--uses", "1"), "--until|--for: one of them is needed"),
    "two ends": (("add", URL, *REFUNDS, *TERMS, "--until", "2040-01-01T00:00:00Z"), "--until|--for: one of them"),
    "an end in the past": (
        ("add", URL, *REFUNDS, *ADA, "--uses", "1", "--until", "2020-01-01T00:00:00Z"), "--until: it is over already",
    ),
    "no span": (("add", URL, *REFUNDS, *ADA, "--uses", "1", "--for", "soon"), "--for: no span of time; give a whole"),
    "an empty span": (("add", URL, *REFUNDS, *ADA, "--uses", "1", "--for", "0h"), "--for: it is over already"),
    "no time": (("add", URL, *REFUNDS, *ADA, "--uses", "1", "--until", "2040"), "--until: no time; write a time"),
    "nobody": (("add", URL, *REFUNDS, "--why", "w", "--uses", "1", "--for", "2h"), "--by: missing; name who"),
    "no reason": (("add", URL, *REFUNDS, "--by", "a", "--uses", "1", "--for", "2h"), "--why: missing; say why"),
    "no tool": (("add", URL, *TERMS), "--tool|--action: one of them is needed"),
    "a tool and an action": (("add", URL, *REFUNDS, "--action", ID, *TERMS), "--tool|--action: one of them"),
    "a server beside an action": (("add", URL, "--action", ID, "--namespace", "x", *TERMS), "--namespace: the action"),
    "no principal": (("add", URL, *REFUNDS, *TERMS, "--principal", "", "--yes"), "--principal: "),
    "no action": (("add", URL, "--action", "x", *TERMS, "--yes"), "--action: no action's id; give the 36 characters"),
    "a tool and nothing of its arguments": (("add", URL, "--tool", "refund", *TERMS), "--where: missing; give JSON"),
    "no JSON": (where("cents<5"), "--where at /: no JSON"),
    "twice the same member": (where('{"where": [{"path": "/a", "path": "/b"}]}'), "--where at /where/0"),
    "no predicate": (where("[]"), '--where: give {"where": [...]}'),
    "no condition": (where('{"where": [{"path": "/a"}]}'), "--where at where[0]: give a path and one of"),
    "a test that is none": (
        where('{"where": [{"path": "/a", "equals": 1}, {"path": "/b", "like": 1}]}'),
        "--where at where[1]: 'like' is no test; use one of",
    ),
    "no pointer": (where('{"where": [{"path": "a", "equals": 1}]}'), "--where at where[0].path: no JSON Pointer"),
    "no number": (where('{"where": [{"path": "/a", "at_most": "1"}]}'), "--where at where[0].at_most: give a number"),
    "another rest": (where('{"where": [], "rest": "all"}'), '--where at rest: write "any"'),
    "no file": (where("@/no/where"), "--where: /no/where cannot be read"),
    "a grant's id that is none": (("revoke", "x", URL, "--by", "a"), "ID: no standing grant's id; give the 36"),
    "the URL first": (("revoke", URL, ID, "--by", "a"), "ID: this is a URL; give ID first"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_argument_is_named_in_one_line_before_anything_is_opened(
    arguments: tuple[str, ...], words: str
) -> None:
    done: Ran = ran("grants", *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert done.err.count("\n") == 1
