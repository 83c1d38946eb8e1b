"""What a gated call costs: commits, syncs, statements, rows and bytes, and its time beside a raw sqlite3 program.

    python benchmarks/gated_call.py [--journal wal|delete] [--calls 300] [--long 100000]

The raw program replays, call by call and in the same run, exactly the rows that the gate has just written, in as
many durable commits: what is left of the ratio is what the gate thinks. Counts do not depend on the machine;
times do, so only ratios are printed.
"""

import argparse
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import agentgate
from agentgate.store import sqlite

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.bulk import load

SQLITE = sqlite.module()
WARM = 30


@agentgate.tool(risk="external")
def refund(account: str, cents: int) -> dict[str, int]:  # noqa: ARG001 - as a real refund has it
    """Give money back; here it costs nothing, so that what is measured is the gate."""
    return {"refunded": cents}


def anything_goes(_request: agentgate.PolicyRequest) -> agentgate.Decision:
    return agentgate.allow()


@dataclass
class Tape:
    """What went through a gate's connections: every statement, and the writes of each transaction."""

    statements: int = 0
    commits: int = 0
    rows: int = 0
    written: list[list[tuple[str, list[Any]]]] = field(default_factory=list)
    _open: list[tuple[str, list[Any]]] = field(default_factory=list)

    def saw(self, sql: str, values: Any, changed: int) -> None:
        self.statements += 1
        if sql.startswith("BEGIN"):
            self._open = []
        elif sql.startswith(("INSERT", "UPDATE", "DELETE")):
            self.rows += changed
            self._open.append((sql, list(values)))

    def committed(self) -> None:
        if self._open:
            self.commits += 1
            self.written.append(self._open)
        self._open = []


@contextmanager
def taped(tape: Tape) -> Iterator[None]:
    """Let every connection that is made inside the block write to the tape."""

    class Connection(SQLITE.Connection):  # type: ignore[misc, name-defined]  # chosen at run time
        def execute(self, sql: str, values: Any = ()) -> Any:
            found = super().execute(sql, values)
            tape.saw(sql, values, max(found.rowcount, 0))
            return found

        def commit(self) -> None:
            tape.statements += 1
            super().commit()
            tape.committed()

    class Module:
        def __getattr__(self, name: str) -> Any:
            return getattr(SQLITE, name)

        def connect(self, *args: Any, **named: Any) -> Any:
            return SQLITE.connect(*args, factory=Connection, **named)

    usual, sqlite.module = sqlite.module, Module  # type: ignore[assignment]
    try:
        yield
    finally:
        sqlite.module = usual


def bytes_written() -> int:
    """Return what this process has handed to write(2) so far."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


def new_ledger(folder: Path, name: str, journal: str | None) -> str:
    query = "" if journal is None else f"?journal={journal}"
    url = f"sqlite:///{folder / name}{query}"
    agentgate.migrate(url)
    return url


def open_gate(url: str) -> agentgate.Gate:
    policy = agentgate.python_policy(anything_goes, identity="benchmark")
    return agentgate.Gate.open(url, policy=policy, tools=[refund])


def one_call(gate: agentgate.Gate, run: agentgate.Run, number: int) -> None:
    outcome = gate.call(run, "refund", {"account": "a1", "cents": number}, key=f"refund-{number}")
    assert isinstance(outcome, agentgate.Done), outcome


def one_call_apart(gate: agentgate.Gate, run: agentgate.Run, number: int) -> None:
    proposal = gate.propose(run, "refund", {"account": "a1", "cents": number}, key=f"apart-{number}")
    assert isinstance(gate.execute(proposal), agentgate.Done)


@dataclass(frozen=True)
class Cost:
    commits: float
    statements: float
    rows: float
    bytes: float


def cost(tape: Tape, calls: int, work: Callable[[int], None]) -> Cost:
    """Return what one call costs on average."""
    before, written = (tape.commits, tape.statements, tape.rows), bytes_written()
    for number in range(calls):
        work(number)
    return Cost(
        commits=(tape.commits - before[0]) / calls,
        statements=(tape.statements - before[1]) / calls,
        rows=(tape.rows - before[2]) / calls,
        bytes=(bytes_written() - written) / calls,
    )


def show(name: str, found: Cost) -> None:
    print(
        f"{name:<28} {found.commits:5.2f} commits  {found.statements:6.2f} statements  {found.rows:6.2f} rows  "
        f"{found.bytes / 1024:7.1f} KiB written"
    )


def measure_counts(folder: Path, journal: str | None, calls: int) -> None:
    tape = Tape()
    with taped(tape):
        url = new_ledger(folder, "counts.db", journal)
        with open_gate(url) as gate:
            run = gate.run("counts", principal="agent:benchmark")
            for number in range(WARM):
                one_call(gate, run, -number - 1)
            show("fused call", cost(tape, calls, lambda number: one_call(gate, run, number)))
            show("propose and execute apart", cost(tape, calls, lambda number: one_call_apart(gate, run, number)))


def measure_growth(folder: Path, journal: str | None, calls: int, long: int) -> None:
    """Compare a run of a thousand actions with one of many, call by call in turn."""
    short = 1_000
    tapes = {short: Tape(), long: Tape()}
    gates: dict[int, tuple[agentgate.Gate, agentgate.Run]] = {}
    for size, tape in tapes.items():
        with taped(tape):
            url = new_ledger(folder, f"growth-{size}.db", journal)
            load(url, run="growth", principal="agent:benchmark", actions=size, tool=refund)
            gate = open_gate(url)
            gates[size] = gate, gate.run("growth", principal="agent:benchmark")
            for number in range(WARM):
                one_call(*gates[size], -number - 1)
    times: dict[int, list[int]] = {short: [], long: []}
    costs: dict[int, list[Cost]] = {short: [], long: []}
    for number in range(calls):
        for size in (short, long) if number % 2 else (long, short):
            began = time.perf_counter_ns()
            costs[size].append(cost(tapes[size], 1, lambda _, n=number, s=size: one_call(*gates[s], n)))  # type: ignore[misc]
            times[size].append(time.perf_counter_ns() - began)
    for gate, _ in gates.values():
        gate.close()
    means = {size: mean(found) for size, found in costs.items()}
    for size, found in means.items():
        show(f"at {size:,} actions in the run", found)
    paired = statistics.median(after / before for before, after in zip(times[short], times[long], strict=True))
    print(f"{'bytes written':<28} x {means[long].bytes / means[short].bytes:.3f}   (bound 1.3)")
    print(f"{'median paired time':<28} x {paired:.3f}   (bound 1.25)")


def mean(costs: list[Cost]) -> Cost:
    return Cost(
        **{
            name: statistics.fmean(getattr(one, name) for one in costs)
            for name in ("commits", "statements", "rows", "bytes")
        }
    )


def measure_floor(folder: Path, journal: str | None, calls: int) -> None:
    """Let a raw program write, after each gated call, the very rows that the gate has written."""
    tape = Tape()
    with taped(tape):
        url = new_ledger(folder, "gated.db", journal)
        with open_gate(url) as gate:
            gate.run("floor", principal="agent:benchmark")
        shutil.copy(folder / "gated.db", folder / "raw.db")
        with open_gate(url) as gate:
            run = gate.run("floor", principal="agent:benchmark")
            raw = SQLITE.connect(folder / "raw.db", isolation_level=None)
            sqlite.configure(raw, sqlite.choose_journal(journal, SQLITE.sqlite_version_info), memory=False)
            gated, floor = [], []
            tape.written.clear()
            for number in range(calls + WARM):
                gated.append(timed(lambda n=number: one_call(gate, run, n)))  # type: ignore[misc]
                floor.append(timed(lambda: replay(raw, tape)))
            raw.close()
    paired = statistics.median(a / b for a, b in zip(gated[WARM:], floor[WARM:], strict=True))
    whole = sum(gated[WARM:]) / sum(floor[WARM:])
    print(f"{'time to the raw floor':<28} x {paired:.2f} median paired, x {whole:.2f} in sum   (goal 1.5)")


def timed(work: Callable[[], None]) -> int:
    began = time.perf_counter_ns()
    work()
    return time.perf_counter_ns() - began


def replay(raw: sqlite3.Connection, tape: Tape) -> None:
    for transaction in tape.written:
        raw.execute("BEGIN IMMEDIATE")
        for sql, values in transaction:
            raw.execute(sql, values)
        raw.execute("COMMIT")
    tape.written.clear()


def measure_syncs(folder: Path, journal: str | None) -> None:
    """Count fsync and fdatasync by running the calls twice under strace, once with more of them."""
    if shutil.which("strace") is None:
        print(f"{'syncs':<28} not counted: strace is not installed")
        return
    few, many = (_traced(folder, journal, calls) for calls in (20, 120))
    print(f"{'syncs of a fused call':<28} {(many - few) / 100:5.2f}")


def _traced(folder: Path, journal: str | None, calls: int) -> int:
    log = folder / f"syncs-{calls}.log"
    own = [sys.executable, __file__, "--only-calls", str(calls), "--folder", str(folder / f"syncs-{calls}")]
    command = ["strace", "-f", "-o", str(log), "-e", "trace=fsync,fdatasync", *own]
    subprocess.run(command + ([] if journal is None else ["--journal", journal]), check=True)
    return sum("sync(" in line for line in log.read_text(encoding="utf-8").splitlines())


def only_calls(folder: Path, journal: str | None, calls: int) -> None:
    folder.mkdir()
    url = new_ledger(folder, "syncs.db", journal)
    with open_gate(url) as gate:
        run = gate.run("syncs", principal="agent:benchmark")
        for number in range(calls):
            one_call(gate, run, number)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--journal", choices=("wal", "delete"), help="default: the best that this SQLite is safe with")
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--long", type=int, default=100_000, help="actions in the long run")
    parser.add_argument("--only-calls", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only_calls is not None:
        only_calls(options.folder, options.journal, options.only_calls)
        return
    journal = sqlite.choose_journal(options.journal, SQLITE.sqlite_version_info)
    print(f"SQLite {SQLITE.sqlite_version}, journal {journal}, {options.calls} calls")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measure_counts(folder, options.journal, options.calls)
        measure_syncs(folder, options.journal)
        measure_floor(folder, options.journal, options.calls)
        measure_growth(folder, options.journal, options.calls, options.long)


if __name__ == "__main__":
    main()
