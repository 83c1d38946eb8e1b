"""Write the vectors, or with ``--check`` compare them with what would be written.

No expected value comes from agentgate: each is written by hand in `cases`, or computed by `independent`. agentgate
must give the same answer to every case before any file is written.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from adapter_agentgate import answer
from cases import (
    approvals,
    authority,
    canonical,
    chains,
    completion,
    digests,
    documents,
    events,
    impossible,
    keys,
    sealing,
    signatures,
    spending,
    states,
    stories,
)
from cases.case import Case

HERE = Path(__file__).parent
VERSION = int((HERE / "VERSION").read_text("ascii"))
GROUPS: dict[str, tuple[Any, ...]] = {
    "canonical": (canonical,),
    "digests": (digests,),
    "sealing": (sealing,),
    "documents": (documents,),
    "authority": (authority,),
    "keys": (keys,),
    "signatures": (signatures,),
    "defaults": (completion,),
    "events": (events,),
    "states": (states,),
    "chain": (chains,),
    "fold": (stories, approvals, spending, impossible),
}


def written(group: str) -> str:
    """Return a group's file: a case a line, the same text on every machine and every day."""
    cases = [json.dumps(case) for module in GROUPS[group] for case in module.cases()]
    head = json.dumps({"group": group, "version": VERSION})[:-1]
    return "".join([head, ', "cases": [\n', ",\n".join(cases), "\n]}\n"])


def disagreements(cases: Iterable[Case]) -> list[str]:
    """Say where agentgate answers something else than what stands in the case."""
    said = []
    for case in cases:
        given = json.loads(json.dumps(case["in"]))
        found = answer(case["op"], given)
        expected = {field: case[field] for field in ("out", "refused") if field in case}
        if "refused" in expected and "refused" in found:  # a place that the case leaves open may be any
            found = {"refused": {name: found["refused"].get(name) for name in expected["refused"]}}
        if found != expected:
            said.append(f"{case['op']}: {case['name']}\n  expected {expected}\n  agentgate {found}")
    return said


def main(arguments: list[str]) -> int:
    """Write or check every group; return the exit code."""
    if arguments not in ([], ["--check"]):
        print("usage: python conformance/generate.py [--check]", file=sys.stderr)
        return 2
    texts = {HERE / "vectors" / f"{group}.json": written(group) for group in GROUPS}
    wrong = [said for text in texts.values() for said in disagreements(json.loads(text)["cases"])]
    if not arguments and not wrong:
        for path, text in texts.items():
            path.write_bytes(text.encode("ascii"))
    there = {path: path.read_bytes().decode("ascii") for path in (HERE / "vectors").iterdir()}
    wrong += [
        f"{path.name} is not what would be written"
        for path in sorted(texts | there)
        if there.get(path) != texts.get(path)
    ]
    print(
        "\n".join(wrong) or f"{sum(len(json.loads(text)['cases']) for text in texts.values())} cases", file=sys.stderr
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
