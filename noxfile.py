"""Sessions, each in an environment of its own: ``nox -l`` lists them, ``nox -s lint types`` runs two.

`.ci/run` needs none of this; it is the same checks for somebody who has nox.
"""

import os
import tomllib
from pathlib import Path

import nox

nox.needs_version = ">=2024.10"
nox.options.sessions = ["lint", "types", "tests", "wheel", "migrations", "conformance", "docs"]
nox.options.reuse_existing_virtualenvs = True


@nox.session
def lint(session: nox.Session) -> None:
    """Style, format and the floors."""
    session.install("-e", ".[dev]")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """Type-check package and tests, strictly."""
    session.install("-e", ".[dev]")
    session.run("mypy")


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def tests(session: nox.Session) -> None:
    """Run every test against the installed package."""
    session.install(".[test]")
    session.run("pytest", *session.posargs)


@nox.session
def lowest(session: nox.Session) -> None:
    """Run the tests on exactly the lower bounds that pyproject.toml names."""
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    bounds = [*project["dependencies"], *extras["pydantic"], *extras["sqlite"]]
    constraints = Path(session.create_tmp()) / "lowest.txt"
    constraints.write_text("\n".join(bound.replace(">=", "==") for bound in bounds), "utf-8")
    session.install(".[test]", "--constraint", str(constraints))
    session.run("pytest", *session.posargs)


@nox.session
def wheel(session: nox.Session) -> None:
    """Build, install elsewhere, migrate and run the demo from an empty folder."""
    session.install(".[test]")
    session.run("pytest", "tests/project/test_wheel.py", *session.posargs)


@nox.session
def migrations(session: nox.Session) -> None:
    """Check that the schema is the sum of its migrations."""
    session.install(".[test]")
    session.run("pytest", "tests/migrations", *session.posargs)


@nox.session
def conformance(session: nox.Session) -> None:
    """Run the vectors through the adapter, and check that they are what generate.py writes."""
    session.install(".[test]")
    session.run("python", "conformance/run.py", "--", "python", "conformance/adapter_agentgate.py")
    session.run("python", "conformance/generate.py", "--check")
    session.run("pytest", "tests/conformance", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Run the pages, follow their links, and check what is generated."""
    session.install(".[test]")
    session.run("pytest", "tests/project", "-k", "docs or guarantee or public", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Print what a gated call costs."""
    session.install(".[test]")
    session.run("python", "benchmarks/gated_call.py", *session.posargs)


@nox.session
def kill(session: nox.Session) -> None:
    """Kill processes at every statement, and at random: AGENTGATE_KILL_ROUNDS of them, 336 random kills each."""
    session.install(".[test]")
    rounds = os.environ.get("AGENTGATE_KILL_ROUNDS", "3")
    session.run("pytest", "tests/faults", "-k", "kill", *session.posargs, env={"AGENTGATE_KILL_ROUNDS": rounds})
