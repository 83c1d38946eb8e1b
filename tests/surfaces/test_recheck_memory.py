"""A hundred thousand decisions of one run, all of which would now be denied, in memory that stays what it was."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import agentgate
from support import decisions

FEW, MANY = 5_000, 100_000
DENY = "version: 1\nrules:\n  - {name: nothing, match: {}, outcome: deny}\n"
# Its own process, because what counts is the highest mark of the memory it ever had.
PROGRAM = """
import json, resource, sys
import agentgate
for url in sys.argv[2:]:
    report = agentgate.recheck(url, sys.argv[1])
    told = [report.rechecked, report.tightened, report.executed, report.executed_now_denied, len(report.differences)]
    print(json.dumps(told + [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


@pytest.mark.slow
def test_a_hundred_thousand_decisions_take_no_more_memory_than_a_few() -> None:
    shared = Path("/dev/shm")
    with TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        policy = Path(folder) / "deny.yaml"
        policy.write_text(DENY, "utf-8")
        urls = [_ledger(Path(folder) / str(count), count) for count in (FEW, MANY)]
        few, many = _rechecked(policy, urls)
    kept = 1_000
    for count, (rechecked, tightened, executed, now_denied, differences, _) in ((FEW, few), (MANY, many)):
        assert (rechecked, tightened, differences) == (count + 1, count + 1, kept)
        assert executed == now_denied == count // decisions.EXECUTED_EACH + 1
    grown_kib = many[-1] - few[-1]
    assert grown_kib < 8_192, f"{grown_kib} KiB more for {MANY - FEW} more decisions"


def _ledger(folder: Path, count: int) -> str:
    folder.mkdir()
    url = decisions.found(folder)
    decisions.multiply(url, decisions=count)
    return url


def _rechecked(policy: Path, urls: list[str]) -> list[list[Any]]:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(policy), *urls],
        env={"PYTHONPATH": str(Path(agentgate.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in run.stdout.splitlines()]
