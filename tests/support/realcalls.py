"""Real tools and real calls, recorded through a real gate on a file, the same way in whatever process does it."""

import hashlib
import json
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import agentgate
from agentgate.policy.identity import PolicyIdentity
from agentgate.policy.rules import parse_rules
from agentgate.store.migration import upgrade

Line: TypeAlias = dict[str, Any]
Undeclared: TypeAlias = Literal["allow", "deny"]
ALLOW_ALL = """
version: 1
rules:
  - {name: everything, match: {}, outcome: allow}
"""


class SeededClock:
    """Time, ids and chance that repeat: a microsecond passes at each look, and the randomness is a hash's."""

    def __init__(self, seed: str) -> None:
        self._seed = seed.encode()
        self._looks = self._draws = 0

    def now_us(self) -> int:
        self._looks += 1
        return 1_700_000_000_000_000 + self._looks

    def monotonic_us(self) -> int:
        return 0

    def random(self, size: int) -> bytes:
        self._draws += 1
        return hashlib.shake_256(self._seed + b"%d" % self._draws).digest(size)

    def sleep(self, span_us: int, *, wake: object = None) -> None:
        raise AssertionError(f"nobody sleeps by this clock: {span_us}, {wake}")


class Witness:
    """A rule policy that remembers what it was asked, to the last member of the last object and their order."""

    facts: tuple[str, ...] = ()

    def __init__(self, rules: str) -> None:
        self._policy = parse_rules(rules.encode())
        self.asked: dict[str, str] = {}

    @property
    def identity(self) -> PolicyIdentity:
        return self._policy.identity

    def decide(self, request: agentgate.PolicyRequest) -> agentgate.Decision:
        self.asked[request.action] = f"{request!r} {request.spec.digest.hex()}"
        return self._policy.decide(request)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What came of a corpus in one ledger."""

    url: str
    policy: Witness
    specs: dict[str, agentgate.ToolSpec]
    refused: dict[str, agentgate.SpecRefused]
    proposals: list[tuple[Line, agentgate.Proposal]] = field(default_factory=list)
    raised: list[tuple[Line, Exception]] = field(default_factory=list)


def lines(corpora: Path, name: str) -> list[Line]:
    return [json.loads(line) for line in (corpora / "tools" / name).read_text("utf-8").splitlines()]


def specs(
    corpora: Path, *, undeclared: Undeclared
) -> tuple[dict[str, agentgate.ToolSpec], dict[str, agentgate.SpecRefused]]:
    """Make every spec that can be made, by the tool's id."""
    made: dict[str, agentgate.ToolSpec] = {}
    refused: dict[str, agentgate.SpecRefused] = {}
    for each in lines(corpora, "tools.jsonl"):
        stated: Line = {"namespace": each["server"], "name": each["tool"], "description": each["description"] or ""}
        try:
            made[each["id"]] = agentgate.ToolSpec(**stated, input_schema=each["schema"], undeclared=undeclared)
        except agentgate.SpecRefused as refusal:
            refused[each["id"]] = refusal
    return made, refused


def layers(made: dict[str, agentgate.ToolSpec]) -> Iterator[dict[str, agentgate.ToolSpec]]:
    """Split specs so that each layer has one of each (server, tool): a name may have several, one after another."""
    left = dict(made)
    while left:
        layer: dict[tuple[str, str], str] = {}
        for id_, spec in left.items():
            layer.setdefault((spec.namespace, spec.name), id_)
        yield {id_: left.pop(id_) for id_ in layer.values()}


def record(corpora: Path, folder: Path, *, undeclared: Undeclared) -> Recorded:
    """Propose every call of the corpus, each while its own spec is registered."""
    url = f"sqlite:///{folder}/agent.db"
    policy = Witness(ALLOW_ALL)
    clock = SeededClock("agentgate")
    upgrade(url, clock=clock)
    made, refused = specs(corpora, undeclared=undeclared)
    done = Recorded(url=url, policy=policy, specs=made, refused=refused)
    calls: dict[str | None, list[Line]] = {}
    for call in lines(corpora, "calls.jsonl"):
        calls.setdefault(call["tool_id"] if call["tool_id"] in made else None, []).append(call)
    first, *later = layers(made)
    tools = [agentgate.gated(spec, print) for spec in first.values()]
    with agentgate.Gate.open(url, policy=policy, tools=tools, clock=clock) as gate:
        _propose(gate, done, calls.get(None, []))
        _propose(gate, done, (call for id_ in first for call in calls.get(id_, [])))
        for layer in later:
            for spec in layer.values():
                gate.register(agentgate.gated(spec, print), replace=True)
            _propose(gate, done, (call for id_ in layer for call in calls.get(id_, [])))
    return done


def _propose(gate: agentgate.Gate, done: Recorded, calls: Any) -> None:
    for call in calls:
        spec = done.specs.get(call["tool_id"])
        # Calls without a spec of ours go to a name that nobody has, as they would after a typing error.
        server, tool = (call["server"], f"{call['tool']}?") if spec is None else (spec.namespace, spec.name)
        given = call["arguments_raw"] if "arguments_raw" in call else call["arguments"]
        run = gate.run(call["corpus"], principal="agent:corpus")
        try:
            proposal = gate.propose(run, tool, given, namespace=server, provenance={"task": call.get("task")})
        except Exception as error:  # noqa: BLE001 - whether anything is raised is what is tested
            done.raised.append((call, error))
        else:
            done.proposals.append((call, proposal))


def digest_of(url: str) -> str:
    """Hash every link of every chain, in order."""
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    try:
        rows = connection.execute("SELECT run, n, hash FROM agentgate_events ORDER BY run, n")
        hashed = hashlib.sha256()
        for run, n, link in rows:
            hashed.update(f"{run} {n} {link.hex()}\n".encode())
        return hashed.hexdigest()
    finally:
        connection.close()


def events_of(url: str, kind: str) -> list[Line]:
    """Read all events of a type, past every check."""
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    try:
        events = [json.loads(row[0]) for row in connection.execute("SELECT event FROM agentgate_events")]
        return [event for event in events if event["type"] == kind]
    finally:
        connection.close()


if __name__ == "__main__":
    print(digest_of(record(Path(sys.argv[1]), Path(sys.argv[2]), undeclared="allow").url))
