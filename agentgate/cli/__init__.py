"""The command line: looks at a ledger, and carries out what people decide about it.

Every command takes ``--json``, and ends with 0 (ok), 1 (it found something, or was refused) or 2 (it could not).
It contains no SQL and decides nothing itself; nothing below imports it, and click is loaded when it runs.
"""

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that ``arguments`` name, those of the process where None, and return its exit code."""
    from agentgate.cli.program import run

    return run(arguments)
