"""Many actions in one run are verified in the memory that a few take."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import agentgate
from support.bulk import load
from support.worlds import named

FEW, MANY = 1_000, 20_000
# Its own process, because what counts is the highest mark of the memory it ever had.
PROGRAM = """
import json, resource, sys
import agentgate
for url in sys.argv[1:]:
    found = agentgate.verify(url)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([found.ok, found.events, found.payloads, peak]))
"""


def refund(account: str, cents: int) -> int:
    """Refund money."""
    return cents if account else 0


@pytest.mark.slow
def test_many_actions_in_one_run_take_no_more_memory_than_a_few() -> None:
    shared = Path("/dev/shm")
    with TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        few, many = _verified([_loaded(Path(folder) / f"{count}.db", count) for count in (FEW, MANY)])
    for count, (ok, events, payloads, _) in ((FEW, few), (MANY, many)):
        assert ok
        assert (events, payloads) == (3 * count + 3, 2 * count)  # and three that found the ledger, its spec and the run
    grown_kib = many[-1] - few[-1]
    assert grown_kib < 8_192, f"{grown_kib} KiB more for {MANY - FEW} more actions"


def _loaded(path: Path, actions: int) -> str:
    url = f"sqlite:///{path}"
    agentgate.migrate(url)
    load(url, run="bulk", principal="agent:a", actions=actions, tool=named("refund", refund))
    return url


def _verified(urls: list[str]) -> list[list[int]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *urls],
        env={"PYTHONPATH": str(Path(agentgate.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]
