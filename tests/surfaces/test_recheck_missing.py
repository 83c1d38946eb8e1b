"""Whatever is taken from the record, what rests on it cannot be evaluated: it is never the same."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import agentgate
from agentgate.event import event_hash
from support.rechecks import Story, Witness, by_word, deny

INPUTS = ("raw", "supplied", "arguments", "provenance", "facts")
TOLD, ABORTED = 13, 1  # decisions in each of the two runs
Event: TypeAlias = dict[str, Any]


class Copy:
    """A copy of the story's database, and a way to it past every check."""

    def __init__(self, story: Story, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.path = Path(shutil.copy(story.path, folder / "agent.db"))
        self.run = self.rows("SELECT id FROM agentgate_runs WHERE name = 'told'")[0][0]

    def rows(self, sql: str, *values: Any) -> list[Any]:
        with sqlite3.connect(self.path) as database:
            found = database.execute(sql, values).fetchall()
        database.close()
        return found

    def change(self, sql: str, *values: Any) -> None:
        with sqlite3.connect(self.path) as database:
            assert database.execute(sql, values).rowcount == 1, sql
        database.close()

    def events(self, run: str) -> list[Event]:
        rows = self.rows("SELECT event FROM agentgate_events WHERE run = ? ORDER BY n", run)
        return [json.loads(row[0]) for row in rows]

    def rewrite(self, event: Event, *, rehash: bool) -> None:
        encoded = json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        where = (event["run"], event["n"])
        self.change("UPDATE agentgate_events SET event = ? WHERE run = ? AND n = ?", encoded, *where)
        if rehash:
            sql = "UPDATE agentgate_events SET hash = ? WHERE run = ? AND n = ?"
            self.change(sql, event_hash(encoded), *where)

    def recheck(self) -> agentgate.Recheck:
        return agentgate.recheck(f"sqlite:///{self.path}", Witness(by_word))


@pytest.fixture
def copied(story: Story, tmp_path: Path) -> Callable[[], Copy]:
    return lambda: Copy(story, tmp_path)


def resting_on(copy: Copy, run: str, n: int, kind: str) -> int:
    """Count the decisions that a payload was an input of, as the events tell it."""
    decided = [event for event in copy.events(run) if "decision" in event["body"]]
    if kind == "facts":
        return sum(event["n"] == n for event in decided)
    return sum(n in {event["n"], event["body"].get("proposed")} for event in decided)


def test_each_input_that_is_gone_is_missed_wherever_it_was_used(copied: Callable[[], Copy]) -> None:
    there = copied().rows("SELECT run, n, kind FROM agentgate_payloads ORDER BY run, n, kind")
    assert set(INPUTS) <= {kind for _, _, kind in there}
    for run, n, kind in there:
        copy = copied()
        copy.change("DELETE FROM agentgate_payloads WHERE run = ? AND n = ? AND kind = ?", run, n, kind)
        missed = resting_on(copy, run, n, kind) if kind in INPUTS else 0
        report = copy.recheck()
        assert report.reasons == ({f"payload_missing:{kind}": missed} if missed else {}), (n, kind)
        assert (report.same, report.differences) == (TOLD + ABORTED - missed, ()), (n, kind)


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("content", b"{}", "payload_damaged"),
        ("salt", bytes(32), "payload_damaged"),
        ("salt", bytes(31), "payload_damaged"),
        ("salt", None, "payload_damaged"),
    ],
)
def test_an_input_that_is_not_what_the_event_names_is_not_used(
    copied: Callable[[], Copy], kind: str, column: str, value: bytes | None, reason: str
) -> None:
    copy = copied()
    run, n = copy.rows("SELECT run, n FROM agentgate_payloads WHERE kind = ? ORDER BY run, n", kind)[0]
    sql = f"UPDATE agentgate_payloads SET {column} = ? WHERE run = ? AND n = ? AND kind = ?"
    copy.change(sql, value, run, n, kind)
    report = copy.recheck()
    assert set(report.reasons) == {f"{reason}:{kind}"}
    assert report.same == TOLD + ABORTED - report.cannot_evaluate


@pytest.mark.parametrize("column", ["content", "kind", "gone"])
def test_a_spec_that_is_gone_or_another_is_missed_by_all_its_decisions(copied: Callable[[], Copy], column: str) -> None:
    copy = copied()
    told = copy.events(copy.run)
    spec = next(event["body"]["spec"] for event in told if event["body"].get("tool") == "doubt")
    if column == "gone":
        copy.change("DELETE FROM agentgate_documents WHERE digest = ?", bytes.fromhex(spec))
    else:
        value = "policy" if column == "kind" else b"{}"
        copy.change(f"UPDATE agentgate_documents SET {column} = ? WHERE digest = ?", value, bytes.fromhex(spec))
    report = copy.recheck()
    word = "document_missing:spec" if column == "gone" else "document_damaged:spec"
    assert report.reasons == {word: 3}  # proposed, waited, started
    assert report.same == TOLD + ABORTED - 3
    assert report.executed_not_evaluated == 1


def test_the_documents_of_the_policy_that_decided_are_not_needed_to_ask_another(copied: Callable[[], Copy]) -> None:
    copy = copied()
    copy.change("DELETE FROM agentgate_documents WHERE kind = 'policy'")
    assert copy.recheck().verdict == "same"


def broken(report: agentgate.Recheck) -> None:
    """The long run cannot be evaluated, all of it; the other one is as it was."""
    assert set(report.reasons) == {"chain_broken"}
    assert report.cannot_evaluate >= TOLD - 1  # the event that is gone may have been a decision
    assert (report.rechecked, report.same, report.verdict) == (ABORTED, ABORTED, "incomplete")
    assert report.executed_now_denied == 0
    (whole,) = report.not_evaluated
    assert (whole.action, bool(whole.detail)) == (None, True)


def test_an_event_that_is_gone_leaves_nothing_of_its_run_to_be_evaluated(copied: Callable[[], Copy]) -> None:
    for event in copied().events(copied().run):
        copy = copied()
        copy.change("DELETE FROM agentgate_events WHERE run = ? AND n = ?", copy.run, event["n"])
        broken(copy.recheck())


@pytest.mark.parametrize("rehash", [False, True])
def test_an_event_that_was_rewritten_leaves_nothing_of_its_run_to_be_evaluated(
    copied: Callable[[], Copy], *, rehash: bool
) -> None:
    for event in copied().events(copied().run):
        copy = copied()
        copy.rewrite(event | {"at_us": event["at_us"] + 1}, rehash=rehash)
        broken(copy.recheck())


def test_every_recorded_part_of_a_decision_is_bound_by_the_chain(copied: Callable[[], Copy]) -> None:
    proposed = copied().events(copied().run)[1]
    for field in ("view", "asked_at_us", "decision", "policy", "principal", "tool", "key", "revision", "spec"):
        copy = copied()
        body: Event = dict(proposed["body"])
        other = copy.events(copy.run)[7]["body"]
        body[field] = body[field] + 1 if isinstance(body[field], int) else other[field]
        body[field] = "act2" if field == "tool" else "agent:b" if field == "principal" else body[field]
        body[field] = "00" * 32 if field in {"spec", "policy"} else body[field]
        copy.rewrite(proposed | {"body": body}, rehash=True)
        broken(copy.recheck())


def test_events_that_changed_places_are_found(copied: Callable[[], Copy]) -> None:
    copy = copied()
    for place, new in ((1, 900), (4, 1), (900, 4)):
        copy.change("UPDATE agentgate_events SET n = ? WHERE run = ? AND n = ?", new, copy.run, place)
    broken(copy.recheck())


def test_a_chain_that_does_not_end_where_its_row_says_is_found(copied: Callable[[], Copy]) -> None:
    for column, step in (("n", -1), ("n", 1), ("head", None)):
        copy = copied()
        value = bytes(32) if step is None else len(copy.events(copy.run)) - 1 + step
        copy.change(f"UPDATE agentgate_runs SET {column} = ? WHERE id = ?", value, copy.run)
        broken(copy.recheck())


def test_a_run_that_hides_whose_it_is_is_reported_to_everybody(copied: Callable[[], Copy]) -> None:
    copy = copied()
    opening = copy.events(copy.run)[0]
    copy.rewrite(opening | {"body": opening["body"] | {"tenant": "elsewhere"}}, rehash=False)
    copy.change("UPDATE agentgate_runs SET tenant = 'elsewhere' WHERE id = ?", copy.run)
    report = agentgate.recheck(f"sqlite:///{copy.path}", Witness(by_word), tenant="acme")
    broken(report)


def test_a_row_that_names_another_tenant_hides_nothing(copied: Callable[[], Copy]) -> None:
    copy = copied()
    for tenant in ("elsewhere", "$ledger"):
        copy.change("UPDATE agentgate_runs SET tenant = ? WHERE id = ?", tenant, copy.run)
        report = agentgate.recheck(f"sqlite:///{copy.path}", Witness(by_word), tenant="acme")
        assert report.same == TOLD + ABORTED


def test_rows_of_the_state_tables_are_not_read(copied: Callable[[], Copy]) -> None:
    copy = copied()
    with sqlite3.connect(copy.path) as database:
        for table in ("actions", "attempts", "approvals"):
            database.execute(f"DELETE FROM agentgate_{table}")
        database.execute("UPDATE agentgate_runs SET limits = x'00', principal = 'nobody', refused = 99")
    database.close()
    assert copy.recheck().verdict == "same"
    report = agentgate.recheck(f"sqlite:///{copy.path}", Witness(deny, name="other"))
    assert report.executed_now_denied == 3


def test_a_chain_that_holds_can_still_name_no_proposal(copied: Callable[[], Copy]) -> None:
    """Who rewrites a run whole is not found until it is sealed; what does not fit together is all the same."""
    copy = copied()
    events = copy.events(copy.run)
    claim = next(event for event in events if event["type"] == "started" and "decision" in event["body"])
    claim["body"]["proposed"] = 2
    prev = None
    for event in events:
        event["prev"] = prev or event["prev"]
        copy.rewrite(event, rehash=True)
        prev = copy.rows("SELECT hash FROM agentgate_events WHERE run = ? AND n = ?", copy.run, event["n"])[0][0].hex()
    assert prev is not None
    copy.change("UPDATE agentgate_runs SET head = ? WHERE id = ?", bytes.fromhex(prev), copy.run)
    report = copy.recheck()
    assert report.reasons == {"proposal_missing": 1}
    assert report.same == TOLD + ABORTED - 1
