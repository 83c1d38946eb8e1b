"""JSONTestSuite through the front door: raw bytes proposed to a real gate, answered by outcomes, never by a raise."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import agentgate
from agentgate import Gate, Refused, Run, Settings, ToolSpec
from agentgate.canonical import canonical, parse
from agentgate.digests import payload_digest
from agentgate.errors import NotCanonical
from agentgate.event import Event, decode
from support.jsontestsuite import DUPLICATE_KEYS, IMPLEMENTATION_DEFINED, TRANSFORMED, files
from support.worlds import World, made, opened

TOOL = agentgate.gated(ToolSpec(name="keep", input_schema=True, undeclared="allow"), lambda value: value)


@dataclass(frozen=True, kw_only=True)
class Door:
    """A gate that takes any JSON value, and the record behind it."""

    gate: Gate
    run: Run
    world: World

    def knock(self, raw: bytes | str) -> bytes | str:
        """Propose raw input; return the arguments as recorded, or the word for which they were refused."""
        proposal = self.gate.propose(self.run, "keep", raw)
        event = self._last(proposal.run)
        assert event.action == proposal.action
        payloads = self._payloads(event.run, event.n, event.body["payloads"])
        if proposal.state == "READY":
            assert proposal.outcome is None
            return self._taken(payloads, raw)
        assert isinstance(proposal.outcome, Refused)
        assert (proposal.state, proposal.outcome.reason) == ("REFUSED", "invalid_arguments")
        assert payloads["raw"] == (raw if isinstance(raw, bytes) else raw.encode("utf-8", "surrogatepass"))
        assert "arguments" not in payloads
        details = proposal.outcome.error.details
        assert isinstance(details, list)
        assert isinstance(details[0], dict)
        return str(details[0]["keyword"])

    def _taken(self, payloads: dict[str, bytes], raw: bytes | str) -> bytes:
        arguments = payloads["arguments"]
        assert arguments == canonical(parse(raw))
        assert "supplied" not in payloads  # nothing was filled in
        sent = raw if isinstance(raw, bytes) else raw.encode()
        assert payloads.get("raw", arguments) == sent
        return arguments

    def _last(self, run: str) -> Event:
        encoded = self.world.value("SELECT event FROM agentgate_events WHERE run = ? ORDER BY n DESC LIMIT 1", run)
        return decode(encoded)

    def _payloads(self, run: str, n: int, named: object) -> dict[str, bytes]:
        rows = self.world.sql("SELECT kind, salt, content FROM agentgate_payloads WHERE run = ? AND n = ?", run, n)
        assert named == {kind: payload_digest(kind, salt, content).hex() for kind, salt, content in rows}
        return {kind: content for kind, _, content in rows}


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    world = made(tmp_path_factory.mktemp("ledger"))
    with world.gate(TOOL) as gate:
        yield Door(gate=gate, run=opened(gate), world=world)


def test_188_of_188_broken_texts_are_refused_and_nothing_is_raised(corpora: Path, door: Door) -> None:
    broken = files(corpora, "n_")
    assert len(broken) == 188
    answers = {path.name: door.knock(path.read_bytes()) for path in broken}
    assert {name: answer for name, answer in answers.items() if isinstance(answer, bytes)} == {}


def test_93_of_95_good_texts_are_taken_and_the_two_have_duplicate_keys(corpora: Path, door: Door) -> None:
    good = files(corpora, "y_")
    assert len(good) == 95
    answers = {path.name: door.knock(path.read_bytes()) for path in good}
    refused = {name: answer for name, answer in answers.items() if isinstance(answer, str)}
    assert refused == dict.fromkeys(DUPLICATE_KEYS, "duplicate_key")


def test_what_the_suite_leaves_open_is_answered_as_the_table_says(corpora: Path, door: Door) -> None:
    assert {path.name: door.knock(path.read_bytes()) for path in files(corpora, "i_")} == IMPLEMENTATION_DEFINED


def test_texts_that_parsers_transform_are_answered_as_the_table_says(corpora: Path, door: Door) -> None:
    room = files(corpora, room="test_transform")
    assert {path.name: door.knock(path.read_bytes()) for path in room} == TRANSFORMED


def test_text_is_answered_as_its_bytes_are(corpora: Path, door: Door) -> None:
    for path in files(corpora, "y_") + files(corpora, "n_")[::6]:
        try:
            text = path.read_bytes().decode()
        except UnicodeDecodeError:
            continue
        assert door.knock(text) == _alone(text), path.name


def _alone(text: str) -> bytes | str:
    try:
        return canonical(parse(text))
    except NotCanonical as error:
        return error.reason


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"[" * 100_000, "depth"),
        (b"9" * 5_000, "integer_range"),
        (b'"' + b"\\ud800" * 1_000 + b'"', "surrogate"),
        (b"[" + b"0," * 10_000 + b"0]", "nodes"),
        ('"\ud800"', "surrogate"),
        (b"", "syntax"),
    ],
)
def test_what_no_suite_holds_is_refused_alike(door: Door, raw: bytes | str, reason: str) -> None:
    assert door.knock(raw) == reason


def test_of_an_input_over_the_limit_only_its_length_is_kept(tmp_path: Path) -> None:
    world = made(tmp_path)
    with world.gate(TOOL, settings=Settings(bounds=agentgate.Bounds(max_bytes=10))) as gate:
        proposal = gate.propose(opened(gate), "keep", b'"123456789"')
    (event,) = world.events(proposal.action)
    assert (event.body["reason"], event.body["raw_bytes"]) == ("invalid_arguments", 11)
    assert world.sql("SELECT kind FROM agentgate_payloads WHERE run = ? AND n = ?", event.run, event.n) == [("result",)]
