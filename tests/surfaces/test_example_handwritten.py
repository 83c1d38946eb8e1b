"""examples/handwritten_loop.py: a loop without a framework, killed where it hurts."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.source import ROOT

SECONDS = 60


def run_example(folder: Path, crash: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "examples" / "handwritten_loop.py"), str(folder)]
    environment = {**os.environ, "CRASH": crash}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)


def told(done: subprocess.CompletedProcess[str]) -> list[Any]:
    """Return what the model was told of its calls."""
    assert done.returncode == 0, done.stderr
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert messages[-1] == {"role": "assistant", "content": "That is all I can do for you."}
    return [json.loads(text) for message in messages if message["role"] == "tool" for text in message["content"]]


def payments(folder: Path) -> int:
    return len((folder / "payments.jsonl").read_text().splitlines())


def test_the_loop_allows_and_denies_and_its_end_is_not_repeated(tmp_path: Path) -> None:
    paid, denied = told(run_example(tmp_path))
    assert paid == {"refunded": 1250}
    assert denied["code"] == "policy_denied"
    assert told(run_example(tmp_path)) == [paid, denied]
    assert payments(tmp_path) == 1


@pytest.mark.parametrize(("crash", "code"), [("inside", "unknown_outcome"), ("after", None)])
def test_the_loop_killed_and_started_again_has_one_effect(tmp_path: Path, crash: str, code: str | None) -> None:
    killed = run_example(tmp_path, crash)
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    paid, denied = told(run_example(tmp_path))
    assert paid.get("code") == code
    assert denied["code"] == "policy_denied"
    assert payments(tmp_path) == 1
