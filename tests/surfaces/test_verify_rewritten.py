"""Chains that were rewritten with fresh hashes: what contradicts the rest is found, and what does not is not."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agentgate
from agentgate import Done
from agentgate.chain import start
from agentgate.core.draft import Draft
from agentgate.store import committing
from agentgate.store.engine import Database
from support.edits import Copy
from support.rewriting import Document, events, forget, rewrite
from support.worlds import World, opened


def _run(copy: Copy, name: str, tenant: str = "acme") -> str:
    (found,) = (row["id"] for row in copy.rows("runs") if (row["name"], row["tenant"]) == (name, tenant))
    return str(found)


def _first(documents: list[Document], kind: str) -> Document:
    return next(document for document in documents if document["type"] == kind)


HEX = "00" * 32
AN_ID = "00000000-0000-7000-8000-00000000000f"

# event type, where in its body, what is written there, the kinds of break that must be among those found
REWRITTEN: list[tuple[str, str, Any, set[str]]] = [
    ("run_opened", "tenant", "umbrella", {"run_row", "digest"}),
    ("run_opened", "limits/actions", 1, {"run_row"}),
    ("run_opened", "payloads/texts", HEX, {"payload"}),
    ("proposed", "digest", HEX, {"digest", "action_row"}),
    ("proposed", "principal", "agent:mallory", {"digest"}),
    ("proposed", "namespace", "elsewhere", {"digest"}),
    ("proposed", "key/text", "another", {"digest"}),
    ("proposed", "revision", 2, {"digest", "forbidden"}),
    ("proposed", "spec", HEX, {"digest", "document"}),
    ("proposed", "request", HEX, {"fingerprint"}),
    ("proposed", "resource", HEX, {"fingerprint"}),
    ("proposed", "expires_at_us", 1, {"time"}),
    ("proposed", "payloads/arguments", HEX, {"digest", "payload"}),
    ("proposed", "payloads/provenance", HEX, {"digest", "payload"}),
    ("proposed", "policy", HEX, {"digest"}),
    ("proposed", "engine/version", "2", {"digest"}),
    ("proposed", "engine/documents/0/document", HEX, {"digest", "document"}),
    ("started", "digest", HEX, {"digest"}),
    ("started", "fence", 99, {"forbidden"}),
    ("started", "attempt", 2, {"forbidden"}),
    ("started", "proposed", 0, {"forbidden"}),
    ("started", "holder", "somebody", {"attempt_row"}),
    ("started", "lease_until_us", 1, {"time"}),
    ("started", "deadline_us", 1, {"time"}),
    ("started", "approval", AN_ID, {"forbidden"}),
    ("succeeded", "outcome", HEX, {"fingerprint"}),
    ("succeeded", "result_bytes", 1, {"payload"}),
    ("succeeded", "fence", 99, {"forbidden"}),
    ("failed", "code", "another", {"payload"}),
    ("in_doubt", "code", "another", {"payload", "action_row"}),
    ("in_doubt", "attempt", 2, {"forbidden"}),
    ("held", "approval/digest", HEX, {"digest"}),
    ("held", "approval/requirement", HEX, {"digest"}),
    ("held", "approval/presentation", HEX, {"digest"}),
    ("held", "approval/expires_at_us", 1, {"digest", "time"}),
    ("held", "decision/requirement/quorum", 9, {"digest"}),
    ("voted", "vote", HEX, {"digest"}),
    ("voted", "approver", "mallory", {"digest"}),
    ("voted", "verdict", "reject", {"digest"}),
    ("voted", "shown", HEX, {"forbidden"}),
    ("voted", "roles", ["lead"], {"vote", "vote_row"}),
    ("vote_revoked", "by", "mallory", {"vote"}),
    ("approved", "votes", [], {"vote"}),
    ("approved", "votes", [HEX, HEX], {"vote"}),
    ("approved", "until_us", 2**52, {"time", "approval_row"}),
    ("rejected", "vote", HEX, {"vote"}),
    ("vote_revoked", "vote", HEX, {"forbidden"}),
    ("approved", "approval", AN_ID, {"forbidden"}),
    ("approved", "until_us", 1, {"time"}),
    ("rejected", "approval", AN_ID, {"forbidden"}),
    ("question_asked", "attempt", 7, {"approval_row"}),
    ("late", "clean", True, {"forbidden"}),
    ("late", "status", "error", {"payload"}),
    ("late", "fence", 99, {"forbidden"}),
    ("reconciled", "attempts", [7], {"forbidden"}),
    ("reconciled", "verdict", "not_applied", {"action_row", "run_row"}),
    ("waited", "reason", "another", {"action_row"}),
    ("refused", "proposed", 0, {"forbidden"}),
]


@pytest.mark.parametrize(
    ("kind", "where", "value", "expected"), REWRITTEN, ids=[f"{kind}-{where}" for kind, where, *_ in REWRITTEN]
)
def test_an_event_that_was_rewritten_contradicts_the_rest(
    copy: Copy, kind: str, where: str, value: Any, expected: set[str]
) -> None:
    run = _run(copy, "main")
    documents = events(copy, run)
    _put(_first(documents, kind)["body"], where.split("/"), value)
    rewrite(copy, run, documents)
    found = {one.kind for one in copy.verify().breaks if one.run == run}
    assert expected <= found
    assert not found & {"hash", "prev", "gap", "event"}


def _put(value: Any, path: list[str], new: Any) -> None:
    for step in path[:-1]:
        value = value[int(step)] if isinstance(value, list) else value[step]
    value[path[-1]] = new


def test_an_event_before_the_one_it_follows_is_found(copy: Copy) -> None:
    run = _run(copy, "main")
    documents = events(copy, run)
    documents[5]["at_us"] = documents[4]["at_us"] - 1
    rewrite(copy, run, documents)
    assert "time" in {one.kind for one in copy.verify().breaks}


def test_an_event_that_was_taken_out_contradicts_the_rest(copy: Copy) -> None:
    run = _run(copy, "main")
    documents = events(copy, run)
    for n, document in enumerate(documents):
        if document["type"] in {"charged", "replayed"}:
            continue
        rewrite(copy.fresh(), run, documents[:n] + documents[n + 1 :])
        assert not copy.verify().ok, document["type"]


def test_two_events_that_changed_places_contradict_the_rest(copy: Copy) -> None:
    run = _run(copy, "main")
    documents = events(copy, run)
    for n in range(1, len(documents) - 1):
        swapped = [*documents[:n], documents[n + 1], documents[n], *documents[n + 2 :]]
        rewrite(copy.fresh(), run, swapped)
        assert not copy.verify().ok, n


def test_a_run_that_went_on_after_it_was_halted_is_found(copy: Copy) -> None:
    run = _run(copy, "halted")
    documents = events(copy, run)
    halted = _first(documents, "run_halted")
    documents.remove(halted)
    documents.insert(1, halted | {"at_us": documents[0]["at_us"]})
    rewrite(copy, run, documents)
    assert "forbidden" in {one.kind for one in copy.verify().breaks}


def test_the_ledgers_own_chain_is_no_other_runs(copy: Copy) -> None:
    run, (ledger,) = _run(copy, "closed"), (row["id"] for row in copy.rows("ledger"))
    documents = events(copy, ledger)
    documents[0]["body"]["origin"] = "agentgate/elsewhere"
    rewrite(copy, ledger, documents)
    assert {one.kind for one in copy.verify().breaks} == {"forbidden"}
    rewrite(copy.fresh(), run, [document | {"run": run} for document in events(copy, ledger)])
    assert "forbidden" in {one.kind for one in copy.verify().breaks}


@given(data=st.data())
@settings(max_examples=60)
def test_whatever_an_event_says_is_a_break_and_never_an_exception(
    data: st.DataObject, original: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy = Copy(original=original, path=tmp_path_factory.mktemp("copy") / "agent.db").fresh()
    run = _run(copy, "main")
    documents = events(copy, run)
    for _ in range(data.draw(st.integers(1, 3))):
        document = data.draw(st.sampled_from(documents))
        path, value = data.draw(st.sampled_from(list(_leaves(document["body"]))))
        _put(document["body"], path, data.draw(_like(value)))
    rewrite(copy, run, documents)
    for found in copy.verify().breaks:
        assert found.kind in agentgate.core.verification.KINDS


def _leaves(value: Any, *path: str) -> Any:
    for name, item in value.items():
        if isinstance(item, dict) and item:
            yield from _leaves(item, *path, name)
        else:
            yield [*path, name], item


def _like(value: Any) -> st.SearchStrategy[Any]:
    if isinstance(value, bool):
        return st.booleans()
    if isinstance(value, int):
        return st.sampled_from([0, 1, 2, value + 1, 2**53 - 1]) | st.integers(0, 2**53 - 1)
    if isinstance(value, str) and len(value) == 64:
        return st.sampled_from([HEX, "ff" * 32])
    return st.sampled_from(["", "x", AN_ID, "approve", "\x00", "REFUSED", [1, 1], [], {}, None])


# --- what only the log of a later version can see -------------------------------------------------------------


def test_a_run_that_is_gone_with_everything_of_its_own_is_not_seen(copy: Copy) -> None:
    forget(copy, _run(copy, "closed"))
    assert copy.verify().ok


def test_a_run_of_a_tenant_that_has_no_other_is_missed_by_its_tenant(copy: Copy) -> None:
    forget(copy, _run(copy, "main", tenant="umbrella"))
    assert [one.kind for one in copy.verify().breaks] == ["tenant_row"]


def test_a_ledger_that_was_set_back_to_what_it_was_is_not_seen(tmp_path: Path, world: World) -> None:
    with world.gate() as gate:
        gate.call(opened(gate), "refund", {"account": "a", "cents": 1})
    shutil.copyfile(world.path, tmp_path / "before.db")
    with world.gate() as gate:
        assert isinstance(gate.call(opened(gate), "refund", {"account": "a", "cents": 2}), Done)
    shutil.copyfile(tmp_path / "before.db", world.path)
    assert agentgate.verify(world.url).ok


def test_a_run_that_was_rewritten_whole_is_not_seen(copy: Copy) -> None:
    run = _run(copy, "closed")
    (was,) = (row for row in copy.rows("runs") if row["id"] == run)
    forget(copy, run)
    (ledger,) = (row["id"] for row in copy.rows("ledger"))
    draft = Draft(start(ledger, run), None, at_us=was["opened_at_us"])
    opened_: dict[str, Any] = {"tenant": "acme", "name": "closed", "principal": "agent:a", "limits": {}}
    draft.add("run_opened", opened_)
    database = Database(copy.url)
    database.open()
    with database.write() as connection:
        committing.write(connection, draft.plan())
    database.close()
    assert copy.verify().ok


def test_a_chain_that_was_rewritten_as_it_was_is_whole(copy: Copy) -> None:
    """The rewriting itself contradicts nothing: what the tests above find is what they changed."""
    for row in copy.rows("runs"):
        rewrite(copy, row["id"], events(copy, row["id"]))
    assert copy.verify().ok
