"""The conformance vectors, and running the scripts beside them as anybody would: in processes of their own."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.source import ROOT

CONFORMANCE = ROOT / "conformance"
VECTORS = CONFORMANCE / "vectors"
SCHEMA = json.loads((CONFORMANCE / "case.schema.json").read_text("utf-8"))
OPS = {name.removeprefix("op-") for name in SCHEMA["$defs"] if name.startswith("op-")}
CONTENTS = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(VECTORS.glob("*.json"))}
CASES = [(group, case) for group, content in CONTENTS.items() for case in content["cases"]]
PATIENCE = 60  # a loaded machine is no finding

Done = subprocess.CompletedProcess[str]


def python(*command: str | Path, cwd: Path = ROOT, seed: str = "0") -> Done:
    return subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE,
        check=False,
    )


def run(adapter: str | Path, *options: str | Path, timeout: float = PATIENCE) -> Done:
    command = (*options, "--timeout", str(timeout), "--", sys.executable, adapter)
    return python(CONFORMANCE / "run.py", *command)


def loaded(name: str) -> Any:
    """Import one of the scripts by its path, as no package of that name is installed."""
    spec = importlib.util.spec_from_file_location(f"conformance_{name}", CONFORMANCE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def speaking(tmp_path: Path, statement: str) -> Path:
    """Write an adapter that does this for each line; ``asked`` is the question's id."""
    adapter = tmp_path / "speaking.py"
    adapter.write_text(
        f"import json, os, sys, time\nfor line in sys.stdin:\n    asked = json.loads(line)['id']\n    {statement}\n",
        "utf-8",
    )
    return adapter
