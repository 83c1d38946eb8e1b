"""A run of very many recorded decisions, written in seconds: one real call, told again with other ids.

Chain, payloads and head are what a gate would have written; the state tables are not, and a recheck reads none.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import agentgate
from agentgate.digests import payload_digest
from agentgate.event import event_hash
from support.ids import an_id

RULES = """
version: 1
rules:
  - {name: everything, match: {}, outcome: allow}
"""
EXECUTED_EACH = 10
_BATCH = 5_000


@agentgate.tool(risk="external")
def act(do: str, times: int = 1) -> str:
    """Do something."""
    return do * times


def found(folder: Path) -> str:
    """Make a ledger in which one call was proposed, and one executed, and return its URL."""
    url = f"sqlite:///{folder}/agent.db"
    agentgate.migrate(url)
    rules = folder / "rules.yaml"
    rules.write_text(RULES, "utf-8")
    with agentgate.Gate.open(url, policy=rules, tools=[act]) as gate:
        run = gate.run("many", principal="agent:a")
        gate.call(run, "act", {"do": "it"})
    return url


def multiply(url: str, *, decisions: int) -> None:
    """Let the call be proposed this many times more, every tenth time executed."""
    database = sqlite3.connect(url.removeprefix("sqlite:///"))
    run, n, head = database.execute("SELECT id, n, head FROM agentgate_runs WHERE name = 'many'").fetchone()
    rows = database.execute("SELECT event FROM agentgate_events WHERE run = ? ORDER BY n", (run,)).fetchall()
    templates = {event["type"]: event for event in (json.loads(row[0]) for row in rows)}
    content, spec = b'{"do":"it","times":1}', templates["proposed"]["body"]["spec"]
    assert spec
    links: list[tuple[str, int, bytes, bytes]] = []
    payloads: list[tuple[str, int, str, bytes, bytes]] = []
    for event, salt in _events(templates, n + 1, decisions, content):
        encoded = _encoded(event | {"prev": head.hex()})
        head = event_hash(encoded)
        links.append((run, event["n"], head, encoded))
        if salt is not None:
            payloads.append((run, event["n"], "arguments", salt, content))
        if len(links) >= _BATCH:
            _write(database, links, payloads)
    _write(database, links, payloads)
    last = database.execute("SELECT max(n) FROM agentgate_events WHERE run = ?", (run,)).fetchone()[0]
    database.execute("UPDATE agentgate_runs SET n = ?, head = ? WHERE id = ?", (last, head, run))
    database.commit()
    database.close()


def _events(
    templates: dict[str, dict[str, Any]], n: int, decisions: int, content: bytes
) -> Iterator[tuple[dict[str, Any], bytes | None]]:
    for number in range(decisions):
        id_, salt, proposed_n = an_id(number + 1), hashlib.sha256(b"%d" % number).digest(), n
        body = templates["proposed"]["body"]
        named = {"arguments": payload_digest("arguments", salt, content).hex()}
        own = {"source": "own", "scope": "", "text": id_}
        yield templates["proposed"] | {"n": n, "action": id_, "body": body | {"payloads": named, "key": own}}, salt
        n += 1
        for kind in ("started", "succeeded") if number % EXECUTED_EACH == 0 else ():
            of_its_own: dict[str, Any] = {"proposed": proposed_n} if kind == "started" else {"payloads": {}}
            yield templates[kind] | {"n": n, "action": id_, "body": templates[kind]["body"] | of_its_own}, None
            n += 1


def _encoded(event: dict[str, Any]) -> bytes:
    """Write what is ASCII and has no float as its canonical form has it."""
    return json.dumps(event, sort_keys=True, separators=(",", ":")).encode()


def _write(
    database: sqlite3.Connection, links: list[tuple[str, int, bytes, bytes]], payloads: list[tuple[Any, ...]]
) -> None:
    database.executemany("INSERT INTO agentgate_events (run, n, hash, event) VALUES (?, ?, ?, ?)", links)
    database.executemany(
        "INSERT INTO agentgate_payloads (run, n, kind, salt, content, sealed_by) VALUES (?, ?, ?, ?, ?, NULL)", payloads
    )
    links.clear()
    payloads.clear()
