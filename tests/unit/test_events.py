"""Events: closed, canonical, and refused whole by a reader of another version."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from agentgate.bodies import ACTION_TYPES, BODIES, LEDGER_TYPES, RUN_TYPES
from agentgate.canonical import Json, canonical
from agentgate.digests import digest
from agentgate.errors import Damaged
from agentgate.event import Event, decode, event_hash, genesis, offence
from agentgate.tools.names import MAX_NAME
from agentgate.tools.recovery import FunctionName
from support.bodies import DECIDED, OPTIONAL, TYPES, WITHOUT_ACTION, document
from support.ids import ACTION, AT_US, LEDGER, RUN, a_hash

# formats.md, "types": a closed list.
WRITTEN = """
    run_opened run_halted run_closed
    proposed held approved voted vote_revoked rejected question_asked question_expired grant_expired grant_revoked
    action_expired cancelled superseded refused waited replayed started succeeded failed in_doubt late retried
    reconciled abandoned confirmed contradicted charged erased
    ledger_created spec_registered policy_activated switched limited standing_granted standing_revoked
    key_added key_revoked archived restored
"""
CLOSED_LIST = tuple(WRITTEN.split())
DECIDABLE = ("proposed", "started", "held", "refused", "waited")  # formats.md: these carry all a recheck needs
WRONG: tuple[Json, ...] = (None, -1, 1.5, "\x00", [[]], {"surprise": []})
OF_ITSELF = {"held": set(DECIDED)}  # always decided by a policy


def _objects(value: Json, path: str = "") -> Iterator[tuple[str, dict[str, Json]]]:
    """Yield every object inside a document, with where it stands."""
    if type(value) is dict:
        yield path, value
        for name, item in value.items():
            yield from _objects(item, f"{path}/{name}")
    elif type(value) is list:
        for index, item in enumerate(value):
            yield from _objects(item, f"{path}/{index}")


def _body(event: dict[str, Json]) -> dict[str, Json]:
    body = event["body"]
    assert type(body) is dict
    return body


def test_the_list_of_types_is_the_formats_and_closed() -> None:
    assert set(BODIES) == set(CLOSED_LIST) == set(TYPES)
    assert len(CLOSED_LIST) == len(set(CLOSED_LIST))
    assert offence(document("proposed") | {"type": "exploded"}) == "/type"


def test_every_type_belongs_to_an_action_a_run_or_the_ledger() -> None:
    assert set(CLOSED_LIST) == ACTION_TYPES | RUN_TYPES | LEDGER_TYPES
    assert set(CLOSED_LIST) - ACTION_TYPES == WITHOUT_ACTION
    in_both = RUN_TYPES & LEDGER_TYPES
    assert in_both == {"erased"}


@pytest.mark.parametrize("kind", CLOSED_LIST)
def test_the_samples_leave_no_field_of_a_body_out(kind: str) -> None:
    assert set(_body(document(kind))) == {name.removesuffix("?") for name in BODIES[kind]}


@pytest.mark.parametrize("kind", CLOSED_LIST)
def test_a_body_of_every_type_is_read_back_as_it_was(kind: str) -> None:
    event = document(kind)
    encoded = canonical(event)
    read = decode(encoded)
    assert read.encode() == encoded
    assert read.body == event["body"]
    assert (read.run, read.n, read.at_us, read.type) == (RUN, 4, AT_US, kind)
    assert read.action == (None if kind in WITHOUT_ACTION else ACTION)


@pytest.mark.parametrize("kind", CLOSED_LIST)
def test_an_unknown_field_is_refused_at_every_depth(kind: str) -> None:
    places = [path for path, _ in _objects(document(kind))]
    for place in places:
        for name in ("surprise", "spec?", "payloads?"):
            event = document(kind)
            found = dict(_objects(event))[place]
            found[name] = "x"
            assert offence(event) == f"{place}/{name}"


@pytest.mark.parametrize("kind", CLOSED_LIST)
def test_a_field_may_be_missing_only_where_the_shape_says_so(kind: str) -> None:
    for name in _body(document(kind)):
        event = document(kind)
        del _body(event)[name]
        assert (offence(event) is None) == (name in OPTIONAL.get(kind, ())), name


@pytest.mark.parametrize("kind", CLOSED_LIST)
def test_nothing_is_null_and_no_field_takes_another_kind_of_value(kind: str) -> None:
    for path, found in list(_objects(document(kind))):
        for name in found:
            for wrong in WRONG:
                event = document(kind)
                dict(_objects(event))[path][name] = wrong
                # Free text takes any string, a counter any integer.
                if not (type(wrong) is str and type(found[name]) is str) and not _is_amount(path, name, wrong):
                    assert offence(event) is not None, (path, name, wrong)


def _is_amount(path: str, name: str, wrong: object) -> bool:
    counted = name == "amount" and not path.endswith("/limits")  # a bound is never below nothing
    return wrong == -1 and (counted or path.endswith(("/counters", "/budgets")))


@pytest.mark.parametrize("version", [0, 2, 1.0, True, "1", None])
def test_another_version_is_refused(version: Any) -> None:
    assert offence(document("proposed") | {"v": version}) == "/v"
    event = document("proposed")
    _body(event)["v"] = version
    assert offence(event) == "/body/v"


@pytest.mark.parametrize("kind", DECIDABLE)
def test_half_a_decision_is_refused(kind: str) -> None:
    for name in DECIDED:
        event = document(kind)
        del _body(event)[name]
        assert offence(event) == f"/body/{name}"


@pytest.mark.parametrize("kind", DECIDABLE)
def test_no_decision_at_all_is_fine_where_no_policy_was_asked(kind: str) -> None:
    event = document(kind)
    for name in DECIDED:
        del _body(event)[name]
    assert (offence(event) is None) == (kind not in OF_ITSELF)


@pytest.mark.parametrize("kind", CLOSED_LIST)
def test_an_action_is_named_exactly_where_the_type_is_about_one(kind: str) -> None:
    event = document(kind)
    swapped = (
        event | {"action": ACTION} if kind in WITHOUT_ACTION else {k: v for k, v in event.items() if k != "action"}
    )
    assert offence(swapped) == "/action"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("run", "B" * 8 + RUN[8:]),
        ("run", RUN.replace("-", "")),
        ("n", -1),
        ("n", True),
        ("prev", a_hash("prev").hex().upper()),
        ("prev", a_hash("prev").hex()[:-1]),
        ("at_us", -1),
        ("at_us", "0"),
        ("type", None),
        ("action", 7),
        ("body", None),
        ("body", []),
    ],
)
def test_a_malformed_envelope_is_refused_by_its_field(field: str, value: Json) -> None:
    assert offence(document("proposed") | {field: value}) == f"/{field}"


@pytest.mark.parametrize("missing", ["v", "run", "n", "prev", "type", "at_us", "body"])
def test_an_envelope_without_a_field_is_refused(missing: str) -> None:
    event = document("proposed")
    del event[missing]
    assert offence(event) == f"/{missing}"


@pytest.mark.parametrize("value", [None, [], "event", 1])
def test_what_is_no_object_is_no_event(value: Json) -> None:
    assert offence(value) == ""


@pytest.mark.parametrize("encoded", [b"", b"{", b"\xff", b'{"v":1,"v":1}', b"[]", b"{}", b"null"])
def test_bytes_that_are_no_event_are_damage_and_name_it(encoded: bytes) -> None:
    with pytest.raises(Damaged) as caught:
        decode(encoded)
    assert caught.value.what == "event"


def test_a_refused_field_is_named_and_its_value_is_not() -> None:
    event = document("proposed")
    _body(event)["tool"] = ["hunter2"]
    with pytest.raises(Damaged, match="/body/tool") as caught:
        decode(canonical(event))
    assert "hunter2" not in str(caught.value)


def test_an_events_hash_is_the_digest_of_its_document() -> None:
    event = document("started")
    assert event_hash(canonical(event)) == digest("event", event)
    assert genesis(LEDGER, RUN) == digest("genesis", {"ledger": LEDGER, "run": RUN})


def test_an_event_without_an_action_has_no_such_field() -> None:
    event = Event(run=RUN, n=0, prev=bytes(32), type="charged", at_us=0, action=None, body={"v": 1})
    assert b"action" not in event.encode()


def test_the_sample_is_not_shared_between_tests() -> None:
    first = document("proposed")
    kept = deepcopy(first)
    _body(document("proposed"))["tool"] = "other"
    assert document("proposed") == kept


@pytest.mark.parametrize("kind", ["confirmed", "contradicted"])
def test_a_check_is_named_by_whatever_a_spec_may_call_it(kind: str) -> None:
    longest = FunctionName(name="n" * MAX_NAME, version="a\u00a0b")  # longer than a code, and not all printable
    event = document(kind)
    _body(event).update(longest.to_json())
    assert offence(event) is None
