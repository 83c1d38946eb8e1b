"""What is uploaded works: built from the checkout, installed elsewhere, run from an empty folder."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.source import PACKAGE, ROOT

# The demo, and what it stands on, is what a wheel is for; a source tree without it has nothing to run.
CLI_EXISTS = (PACKAGE / "cli").is_dir() or (PACKAGE / "cli.py").is_file()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CLI_EXISTS, reason="this source tree has no command line")]
SECONDS = 300


def _run(command: Sequence[str | Path], folder: Path) -> str:
    """Run a command with nothing of the checkout or of this environment in reach."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sdist, and from it the wheel, so that both are complete."""
    folder = tmp_path_factory.mktemp("dist")
    _run([sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT], folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel with its own dependencies alone; return the folder of its commands."""
    folder = tmp_path_factory.mktemp("venv")
    _run([sys.executable, "-m", "venv", folder], folder)
    _run([folder / "bin" / "pip", "install", "--quiet", wheel], folder)
    return folder / "bin"


def test_the_wheel_holds_the_package_its_migrations_and_nothing_else(wheel: Path) -> None:
    names = [name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name]
    assert {name.partition("/")[0] for name in names} == {"agentgate"}
    assert "agentgate/py.typed" in names
    assert not [name for name in names if name.endswith(".pyc")]
    packaged = {name.removeprefix("agentgate/_migrations/") for name in names if "/_migrations/" in name}
    migrations = ROOT / "migrations"
    assert packaged == {
        path.relative_to(migrations).as_posix()
        for path in migrations.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_carries_every_data_file_of_the_package(wheel: Path) -> None:
    carried = set(zipfile.ZipFile(wheel).namelist())
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {path.relative_to(ROOT).as_posix() for path in files} <= carried


def test_the_wheel_names_its_licence(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (licence,) = [name for name in archive.namelist() if name.endswith("licenses/LICENSE")]
    assert archive.read(licence).startswith(b"\n                                 Apache License")


def test_the_installed_package_is_imported_from_its_own_place(installed: Path, tmp_path: Path) -> None:
    place = _run([installed / "python", "-c", "import agentgate; print(agentgate.__file__)"], tmp_path)
    assert Path(place.strip()).is_relative_to(installed.parent)


def test_the_installed_wheel_migrates_a_ledger_and_verifies_it(installed: Path, tmp_path: Path) -> None:
    ledger = "sqlite:///agent.db"
    _run([installed / "agentgate", "migrate", ledger], tmp_path)
    assert (tmp_path / "agent.db").is_file()
    assert json.loads(_run([installed / "agentgate", "verify", "--json", ledger], tmp_path))


def test_the_installed_wheel_runs_the_demo_from_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    told = _run([installed / "agentgate", "demo", "--folder", "demo"], tmp_path)
    assert "ok      the record verifies" in told
    assert "things came out as told" in told
    shutil.rmtree(tmp_path)
