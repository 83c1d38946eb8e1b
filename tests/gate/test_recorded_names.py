"""Whatever a caller or a model calls things, the record holds nothing that its own readers would refuse."""

import pytest

from agentgate import Key, Misuse, Refused
from support.worlds import PRINCIPAL, World, opened

ARGUMENTS = {"account": "a1", "cents": 5}
UNFIT = ["x" * 257, "x" * 2_000_000, "a\x00b", "a\x9bb", "a\ud800b", "\ud800" * 300]


@pytest.mark.parametrize("name", UNFIT, ids=range(len(UNFIT)))
def test_a_name_that_no_tool_can_have_is_refused_as_unknown_and_recorded_escaped(world: World, name: str) -> None:
    with world.gate() as gate:
        named = gate.call(opened(gate), name, ARGUMENTS)
        elsewhere = gate.call(opened(gate), "refund", ARGUMENTS, namespace=name)
    for outcome, field in ((named, "tool"), (elsewhere, "namespace")):
        assert isinstance(outcome, Refused)
        assert outcome.reason == "unknown_tool"
        (proposed,) = world.events(outcome.action)
        recorded = proposed.body[field]
        assert isinstance(recorded, str)
        assert recorded.startswith("$unfit:")
        assert recorded.isascii()
        assert recorded.isprintable()
        assert len(recorded) <= 256


@pytest.mark.parametrize("name", ["", "refund ", "Refünd", "\u202erefund", "x" * 256, "$unfit:x"])
def test_any_other_unknown_name_is_recorded_as_it_came(world: World, name: str) -> None:
    with world.gate() as gate:
        outcome = gate.call(opened(gate), name, ARGUMENTS)
    (proposed,) = world.events(outcome.action)
    assert (proposed.body["tool"], proposed.body["reason"]) == (name, "unknown_tool")


class Name(str):
    def __str__(self) -> str:
        return "another"


def test_a_name_of_a_subclass_of_str_is_what_it_holds(world: World) -> None:
    with world.gate() as gate:
        outcome = gate.call(opened(gate), Name("refund"), ARGUMENTS, namespace=Name(""))
    assert world.events(outcome.action)[0].body["tool"] == "refund"
    assert world.downstream.total == 1


@pytest.mark.parametrize("name", [None, 7, b"refund"])
def test_a_name_that_is_no_text_is_misuse_and_writes_nothing(world: World, name: object) -> None:
    with world.gate() as gate:
        run = opened(gate)
        before = world.events()
        with pytest.raises(Misuse, match="tool: give a text"):
            gate.propose(run, name, ARGUMENTS)  # type: ignore[arg-type]
        with pytest.raises(Misuse, match="namespace: give a text"):
            gate.propose(run, "refund", ARGUMENTS, namespace=name)  # type: ignore[arg-type]
    assert world.events() == before


# formats.md: "scope: the principal for outside, else ''".
@pytest.mark.parametrize(
    ("key", "principal", "scope"),
    [
        (Key(source="outside", text="k"), None, PRINCIPAL),
        (Key(source="outside", text="k"), "agent:other", "agent:other"),
        (Key(source="outside", scope=PRINCIPAL, text="k"), None, PRINCIPAL),
        (Key(source="adapter", text="k"), "agent:other", ""),
        (Key(source="caller", text="k"), None, ""),
    ],
)
def test_a_key_from_outside_is_scoped_by_its_principal_and_no_other_is(
    world: World, key: Key, principal: str | None, scope: str
) -> None:
    with world.gate() as gate:
        proposal = gate.propose(opened(gate), "refund", ARGUMENTS, key=key, principal=principal)
    recorded = {"source": key.source, "scope": scope, "text": "k"}
    assert world.events(proposal.action)[0].body["key"] == recorded


@pytest.mark.parametrize(
    "key",
    [
        Key(source="outside", scope="agent:other", text="k"),
        Key(source="adapter", scope=PRINCIPAL, text="k"),
        Key(source="caller", scope="x", text="k"),
        Key(source="mine", text="k"),  # type: ignore[arg-type]
    ],
)
def test_a_key_that_no_reader_would_accept_is_misuse_and_writes_nothing(world: World, key: Key) -> None:
    with world.gate() as gate:
        run = opened(gate)
        before = world.events()
        with pytest.raises(Misuse, match=r"^key"):
            gate.propose(run, "refund", ARGUMENTS, key=key)
    assert world.events() == before


@pytest.mark.parametrize("text", [5, b"words", "\ud800", ["words"]])
def test_what_is_kept_as_a_text_is_one(world: World, text: object) -> None:
    with world.gate() as gate:
        proposal = gate.propose(opened(gate), "refund", ARGUMENTS)
        before = world.events()
        with pytest.raises(Misuse, match="goal: give a text"):
            gate.run("another", principal=PRINCIPAL, goal=text)  # type: ignore[arg-type]
        with pytest.raises(Misuse, match="note: give a text"):
            gate.cancel(proposal, by="person:ada", note=text)  # type: ignore[arg-type]
    assert world.events() == before
