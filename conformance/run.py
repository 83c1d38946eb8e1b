"""Ask an implementation every case of the vectors, and say where it answers something else.

    python conformance/run.py [--group NAME]... [--vectors FOLDER] [--timeout SECONDS] -- COMMAND...

COMMAND is the adapter: it reads one JSON object a line and answers each with one, as README.md says. Exit codes:
0 every case passed; 1 a case was answered otherwise; 2 the vectors, the command or the adapter itself is broken.
"""

import argparse
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from closed import faults

HERE = Path(__file__).resolve().parent
MOST_BREACHES = 3
GRACE = 0.3  # seconds in which a process may end by itself
LONGEST_SHOWN = 1_000


class Breach(Exception):
    """The adapter did not keep to the protocol: no answer, or none that can be one."""


class Unfit(Exception):
    """The vectors are not what the schema allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The cases of one file."""

    name: str
    cases: tuple[dict[str, Any], ...]


@dataclass(slots=True, kw_only=True)
class Adapter:
    """A process that answers, started again after each breach."""

    command: Sequence[str]
    timeout: float
    process: "subprocess.Popen[bytes] | None" = None
    lines: "queue.Queue[bytes]" = field(default_factory=queue.Queue)
    asked: int = 0

    def ask(self, op: str, given: dict[str, Any]) -> dict[str, Any]:
        """Put one question and return {out} or {refused}.

        Raises:
            Breach: the process ended, was too slow, or answered what is no answer; it is gone then.
        """
        self.asked += 1
        try:
            self._write({"id": self.asked, "op": op, "in": given})
            return _answer(self._line(), self.asked)
        except Breach:
            self.stop()
            raise

    def _write(self, question: dict[str, Any]) -> None:
        process = self.process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(question).encode("ascii") + b"\n")
            process.stdin.flush()
        except OSError as error:
            raise Breach(f"it does not read: {error}{self._code()}") from error

    def _start(self) -> "subprocess.Popen[bytes]":
        self.lines = queue.Queue()
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        threading.Thread(target=_pump, args=(self.process.stdout, self.lines), daemon=True).start()
        return self.process

    def _line(self) -> bytes:
        try:
            line = self.lines.get(timeout=self.timeout)
        except queue.Empty:
            raise Breach(f"no answer in {self.timeout:g} s") from None
        if not line:
            raise Breach(f"it ended without an answer{self._code()}")
        return line

    def _code(self) -> str:
        assert self.process is not None
        try:
            return f" (exit code {self.process.wait(GRACE)})"
        except subprocess.TimeoutExpired:
            return ""

    def stop(self) -> None:
        """End the process, gently if it listens."""
        if self.process is None:
            return
        process, self.process = self.process, None
        assert process.stdin is not None
        try:
            process.stdin.close()
            process.wait(GRACE)
        except (OSError, subprocess.TimeoutExpired):
            process.kill()
            process.wait()


def _pump(stdout: Any, lines: "queue.Queue[bytes]") -> None:
    """Hand lines on; the empty one is the end."""
    with stdout:
        for line in stdout:
            lines.put(line)
    lines.put(b"")


def _answer(line: bytes, asked: int) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except ValueError:
        raise Breach(f"no JSON: {_shown(line.decode('utf-8', 'replace'))}") from None
    if not isinstance(said, dict) or set(said) not in ({"id", "out"}, {"id", "refused"}):
        raise Breach(f"neither {{id, out}} nor {{id, refused}}: {_shown(said)}")
    if type(said["id"]) is not int or said.pop("id") != asked:
        raise Breach(f"an answer to another question than {asked}")
    return said


def read(folder: Path, wanted: Sequence[str]) -> Iterator[Group]:
    """Read the groups that are wanted, or all of them.

    Raises:
        Unfit: a file is not what the schema allows, or no file has that name.
    """
    schema = json.loads((HERE / "case.schema.json").read_text("utf-8"))
    paths = {path.stem: path for path in sorted(folder.glob("*.json"))}
    if not paths or not set(wanted) <= set(paths):
        raise Unfit(f"{folder}: the groups there are {', '.join(paths) or 'none'}")
    for name in wanted or paths:
        try:
            content = json.loads(paths[name].read_text("utf-8"))
        except ValueError as error:
            raise Unfit(f"{paths[name]}: no JSON: {error}") from error
        found = next(faults(content, schema, schema), None) or _doubled(name, content)
        if found:
            raise Unfit(f"{paths[name]}: {found}")
        yield Group(name=name, cases=tuple(content["cases"]))


def _doubled(name: str, content: dict[str, Any]) -> str | None:
    if content["group"] != name:
        return f"/group: not {name!r}"
    names = [case["name"] for case in content["cases"]]
    return next((f"two cases are named {one!r}" for one in names if names.count(one) > 1), None)


def difference(case: dict[str, Any], said: dict[str, Any]) -> str | None:
    """Say how an answer differs from the case's own; a place that the case leaves open may be any."""
    expected = {field: case[field] for field in ("out", "refused") if field in case}
    if isinstance(said.get("refused"), dict) and "refused" in expected:
        kept = {name: value for name, value in said["refused"].items() if name in expected["refused"]}
        if _text(kept) == _text(expected["refused"]):
            return None
    elif _text(said) == _text(expected):
        return None
    return f"expected {_shown(expected)}\n    answered {_shown(said)}"


def _text(value: Any) -> str:
    """Write a value so that 1, 1.0 and true are three."""
    return json.dumps(value, sort_keys=True)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else _text(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


@dataclass(slots=True, kw_only=True)
class Report:
    """What came of it, printed as it comes."""

    passed: int = 0
    wrong: int = 0
    breaches: int = 0

    def ask_all(self, adapter: Adapter, group: Group) -> None:
        """Ask every case of a group, until the adapter has broken the protocol too often."""
        passed = self.passed
        for case in group.cases:
            if self.breaches >= MOST_BREACHES:
                break
            try:
                found = difference(case, adapter.ask(case["op"], case["in"]))
                self.wrong += found is not None
            except Breach as breach:
                found = str(breach)
                self.breaches += 1
            if found is None:
                self.passed += 1
            else:
                print(f"FAILED {group.name}: {case['name']} ({case['op']})\n    {found}")
        print(f"{group.name}: {self.passed - passed} of {len(group.cases)}", flush=True)

    @property
    def code(self) -> int:
        """The exit code."""
        return 2 if self.breaches else int(self.wrong > 0)


def main(arguments: Sequence[str]) -> int:
    """Run; return the exit code."""
    parser = argparse.ArgumentParser(usage=(__doc__ or "").split("\n\n")[1].strip(), allow_abbrev=False)
    parser.add_argument("--group", action="append", default=[])
    parser.add_argument("--vectors", type=Path, default=HERE / "vectors")
    parser.add_argument("--timeout", type=float, default=10.0)
    parser.add_argument("command", nargs="+")
    asked = parser.parse_args(arguments)
    report, adapter = Report(), Adapter(command=asked.command, timeout=asked.timeout)
    try:
        groups = list(read(asked.vectors, asked.group))
        for group in groups:
            report.ask_all(adapter, group)
    except (Unfit, OSError) as error:
        print(f"cannot run: {error}")
        return 2
    finally:
        adapter.stop()
    total = sum(len(group.cases) for group in groups)
    if report.breaches >= MOST_BREACHES:
        print(f"given up: the adapter broke the protocol {report.breaches} times")
    print(f"{report.passed} of {total} cases passed")
    return report.code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
