"""The table of docs/crashes.md: what each command leaves behind when its process is killed."""

from datetime import timedelta
from functools import partial

import agentgate
from agentgate import Gate, Keyed, Repeat, Retry, Run
from support import forking
from support.crashes import (
    Command,
    Prepare,
    abandon,
    activate,
    answer,
    call,
    call_in_own_transaction,
    cancel,
    charge,
    close,
    edit,
    execute,
    execute_in_transaction,
    fresh,
    limit,
    pause,
    propose,
    propose_many,
    proposed,
    proposed_with_tables,
    reconcile,
    resume,
    stopped,
    sweep,
    tables,
)
from support.crashrow import Row
from support.verdicts import VERDICTS
from support.worlds import World


def prepared(name: str, *, dies: str = "never", fails: bool = False, looked: bool = False) -> Prepare:
    """Call the tool of a command once before it, so that it fails, or its process dies."""

    def prepare(world: World, gate: Gate, run: Run) -> None:
        def work() -> None:
            with BY_NAME[name].gate(world, dies=dies, fails=fails) as other:
                call(other, run)

        assert forking.run(work) == (0 if dies == "never" else forking.KILLED)
        if looked:
            assert isinstance(call(gate, run), agentgate.Unknown)

    return prepare


def told_again(world: World, gate: Gate, run: Run) -> None:
    """Leave an outcome unknown, and have operators say that it is to run once more."""
    prepared("execute, operators have said to run it again", dies="before", looked=True)(world, gate, run)
    answer(gate, run, "", verdict="again")


NONE = "before its commit"
AT_ONCE = Retry(attempts=2, wait=timedelta(0))
BEFORE_START = "before `started` is committed"
BEFORE_AGAIN = "after that, before `started` is committed again"
BETWEEN = "after that, before the effect"
EFFECTED = "after the effect, before its record is committed"
UNRECORDED = "after that, before its record is committed"
UNTOLD = "after that, before its probe's answer is committed"
UNASKED = "after that, before its question is committed"
UNSTARTED = "after that, before `started` is committed"
UNCHECKED = "after that, before its check is committed"
RECORDED = "after its last commit"

# fmt: off
COMMANDS = (
    Command(name="run", do=fresh, rows=(
        Row(killed=NONE,         commits=0,                left="nothing",   next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="OPEN",      next="Done",    effects=1),
    )),
    Command(name="propose", do=propose, rows=(
        Row(killed=NONE,         commits=0,                left="nothing",   next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="READY",     next="Done",    effects=1),
    )),
    Command(name="propose, held", do=propose, asks=True, rows=(
        Row(killed=NONE,         commits=0,                left="nothing",   next="Held",    effects=0),
        Row(killed=RECORDED,     commits=1,                left="HELD",      next="Held",    effects=0),
    )),
    Command(name="propose_many", do=propose_many, rows=(
        Row(killed=NONE,         commits=0,                left="nothing",   next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="READY",     next="Done",    effects=1),
    )),
    Command(name="call", do=call, rows=(
        Row(killed=BEFORE_START, commits=0, reached=False, left="nothing",   next="Done",    effects=1),
        Row(killed=BETWEEN,      commits=1, reached=False, left="EXECUTING", next="Unknown", effects=0),
        Row(killed=EFFECTED,     commits=1, reached=True,  left="EXECUTING", next="Unknown", effects=1),
        Row(killed=RECORDED,     commits=2, reached=True,  left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="call, the tool says that nothing happened", do=call, fails=True, rows=(
        Row(killed=BEFORE_START, commits=0,                left="nothing",   next="Failed",  effects=0),
        Row(killed=UNRECORDED,   commits=1,                left="EXECUTING", next="Unknown", effects=0),
        Row(killed=RECORDED,     commits=2,                left="FAILED",    next="Failed",  effects=0),
    )),
    Command(name="call, the tool tries a failure again", do=call, fails=True, declared={"retry": AT_ONCE}, rows=(
        Row(killed=BEFORE_START, commits=0,                left="nothing",   next="Failed",  effects=0),
        Row(killed=UNRECORDED,   commits=1,                left="EXECUTING", next="Unknown", effects=0),
        Row(killed=BEFORE_AGAIN, commits=2,                left="FAILED",    next="Failed",  effects=0),
        Row(killed=UNRECORDED,   commits=3,                left="EXECUTING", next="Unknown", effects=0),
        Row(killed=RECORDED,     commits=4,                left="FAILED",    next="Failed",  effects=0),
    )),
    Command(name="call, the tool may be repeated", do=call, declared={"recovery": Repeat()}, dedupes=True, rows=(
        Row(killed=BEFORE_START, commits=0, reached=False, left="nothing",   next="Done",    effects=1),
        Row(killed=BETWEEN,      commits=1, reached=False, left="EXECUTING", next="Done",    effects=1),
        Row(killed=EFFECTED,     commits=1, reached=True,  left="EXECUTING", next="Done",    effects=1),
        Row(killed=RECORDED,     commits=2, reached=True,  left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="call, the tool is keyed", do=call, declared={"recovery": Keyed(hours=1)}, dedupes=True, rows=(
        Row(killed=BEFORE_START, commits=0, reached=False, left="nothing",   next="Done",    effects=1),
        Row(killed=BETWEEN,      commits=1, reached=False, left="EXECUTING", next="Done",    effects=1),
        Row(killed=EFFECTED,     commits=1, reached=True,  left="EXECUTING", next="Done",    effects=1),
        Row(killed=RECORDED,     commits=2, reached=True,  left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="call, the tool can be probed", do=call, probed=True, rows=(
        Row(killed=BEFORE_START, commits=0, reached=False, left="nothing",   next="Done",    effects=1),
        Row(killed=BETWEEN,      commits=1, reached=False, left="EXECUTING", next="Done",    effects=1),
        Row(killed=EFFECTED,     commits=1, reached=True,  left="EXECUTING", next="Done",    effects=1),
        Row(killed=RECORDED,     commits=2, reached=True,  left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="execute", do=execute, prepare=proposed, rows=(
        Row(killed=BEFORE_START, commits=0, reached=False, left="READY",     next="Done",    effects=1),
        Row(killed=BETWEEN,      commits=1, reached=False, left="EXECUTING", next="Unknown", effects=0),
        Row(killed=EFFECTED,     commits=1, reached=True,  left="EXECUTING", next="Unknown", effects=1),
        Row(killed=RECORDED,     commits=2, reached=True,  left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="execute(retry=True)", do=execute, prepare=prepared("execute(retry=True)", fails=True), rows=(
        Row(killed=BEFORE_START, commits=0, reached=False, left="FAILED",    next="Failed",  effects=0),
        Row(killed=BETWEEN,      commits=1, reached=False, left="EXECUTING", next="Unknown", effects=0),
        Row(killed=EFFECTED,     commits=1, reached=True,  left="EXECUTING", next="Unknown", effects=1),
        Row(killed=RECORDED,     commits=2, reached=True,  left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="call, the tool is transactional", do=call, transactional=True, prepare=tables, rows=(
        Row(killed=NONE,         commits=0,                left="nothing",   next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="execute, the tool is transactional", do=execute, transactional=True,
            prepare=proposed_with_tables, rows=(
        Row(killed=NONE,         commits=0,                left="READY",     next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="execute, in the transaction of gate.transaction()", do=execute_in_transaction, transactional=True,
            prepare=proposed_with_tables, rows=(
        Row(killed=NONE,         commits=0,                left="READY",     next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="call, in a transaction of the caller's own connection", do=call_in_own_transaction,
            transactional=True, prepare=tables, rows=(
        Row(killed=NONE,         commits=0,                left="nothing",   next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="take over a dead worker's action", do=call,
            prepare=prepared("take over a dead worker's action", dies="after"), rows=(
        Row(killed=NONE,         commits=0,                left="EXECUTING", next="Unknown", effects=1),
        Row(killed=UNASKED,      commits=1,                left="UNKNOWN",   next="Unknown", effects=1),
        Row(killed=RECORDED,     commits=2,                left="UNKNOWN",   next="Unknown", effects=1),
    )),
    Command(name="take over, the tool is keyed", do=call, declared={"recovery": Keyed(hours=1)}, dedupes=True,
            prepare=prepared("take over, the tool is keyed", dies="before"), rows=(
        Row(killed=NONE,         commits=0, reached=False, left="EXECUTING", next="Done",    effects=1),
        Row(killed=BEFORE_START, commits=1, reached=False, left="UNKNOWN",   next="Done",    effects=1),
        Row(killed=BETWEEN,      commits=2, reached=False, left="EXECUTING", next="Done",    effects=1),
        Row(killed=EFFECTED,     commits=2, reached=True,  left="EXECUTING", next="Done",    effects=1),
        Row(killed=RECORDED,     commits=3, reached=True,  left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="take over, the tool may be repeated", do=call, declared={"recovery": Repeat()}, dedupes=True,
            prepare=prepared("take over, the tool may be repeated", dies="before"), rows=(
        Row(killed=NONE,         commits=0, reached=False, left="EXECUTING", next="Done",    effects=1),
        Row(killed=BEFORE_START, commits=1, reached=False, left="UNKNOWN",   next="Done",    effects=1),
        Row(killed=BETWEEN,      commits=2, reached=False, left="EXECUTING", next="Done",    effects=1),
        Row(killed=EFFECTED,     commits=2, reached=True,  left="EXECUTING", next="Done",    effects=1),
        Row(killed=RECORDED,     commits=3, reached=True,  left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="take over, the tool can tell that it happened", do=call, probed=True,
            prepare=prepared("take over, the tool can tell that it happened", dies="after"), rows=(
        Row(killed=NONE,         commits=0,                left="EXECUTING", next="Done",    effects=1),
        Row(killed=UNTOLD,       commits=1,                left="UNKNOWN",   next="Done",    effects=1),
        Row(killed=RECORDED,     commits=2,                left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="take over, the tool can tell that it did not", do=call, probed=True,
            prepare=prepared("take over, the tool can tell that it did not", dies="before"), rows=(
        Row(killed=NONE,         commits=0, reached=False, left="EXECUTING", next="Done",    effects=1),
        Row(killed=UNTOLD,       commits=1, reached=False, left="UNKNOWN",   next="Done",    effects=1),
        Row(killed=UNSTARTED,    commits=2, reached=False, left="READY",     next="Done",    effects=1),
        Row(killed=BETWEEN,      commits=3, reached=False, left="EXECUTING", next="Done",    effects=1),
        Row(killed=EFFECTED,     commits=3, reached=True,  left="EXECUTING", next="Done",    effects=1),
        Row(killed=RECORDED,     commits=4, reached=True,  left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="call, the tool checks its write", do=call, checked=True, rows=(
        Row(killed=BEFORE_START, commits=0, reached=False, left="nothing",   next="Done",    effects=1),
        Row(killed=BETWEEN,      commits=1, reached=False, left="EXECUTING", next="Unknown", effects=0),
        Row(killed=EFFECTED,     commits=1, reached=True,  left="EXECUTING", next="Unknown", effects=1),
        Row(killed=UNCHECKED,    commits=2, reached=True,  left="SUCCEEDED", next="Done",    effects=1),
        Row(killed=RECORDED,     commits=3, reached=True,  left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="reconcile, applied", do=partial(reconcile, applied=True),
            prepare=prepared("reconcile, applied", dies="after", looked=True), rows=(
        Row(killed=NONE,         commits=0,                left="UNKNOWN",   next="Unknown", effects=1),
        Row(killed=RECORDED,     commits=1,                left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="reconcile, not applied", do=partial(reconcile, applied=False),
            prepare=prepared("reconcile, not applied", dies="before", looked=True), rows=(
        Row(killed=NONE,         commits=0,                left="UNKNOWN",   next="Unknown", effects=0),
        Row(killed=RECORDED,     commits=1,                left="READY",     next="Done",    effects=1),
    )),
    Command(name="answer, applied", do=partial(answer, verdict="applied"),
            prepare=prepared("answer, applied", dies="after", looked=True), rows=(
        Row(killed=NONE,         commits=0,                left="UNKNOWN",   next="Unknown", effects=1),
        Row(killed=RECORDED,     commits=1,                left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="answer, not applied", do=partial(answer, verdict="not_applied"),
            prepare=prepared("answer, not applied", dies="before", looked=True), rows=(
        Row(killed=NONE,         commits=0,                left="UNKNOWN",   next="Unknown", effects=0),
        Row(killed=RECORDED,     commits=1,                left="READY",     next="Done",    effects=1),
    )),
    Command(name="answer, run again", do=partial(answer, verdict="again"),
            prepare=prepared("answer, run again", dies="before", looked=True), rows=(
        Row(killed=NONE,         commits=0,                left="UNKNOWN",   next="Unknown", effects=0),
        Row(killed=RECORDED,     commits=1,                left="UNKNOWN",   next="Done",    effects=1),
    )),
    Command(name="execute, operators have said to run it again", do=execute, prepare=told_again, rows=(
        Row(killed=BEFORE_START, commits=0, reached=False, left="UNKNOWN",   next="Done",    effects=1),
        Row(killed=BETWEEN,      commits=1, reached=False, left="EXECUTING", next="Unknown", effects=0),
        Row(killed=EFFECTED,     commits=1, reached=True,  left="EXECUTING", next="Unknown", effects=1),
        Row(killed=RECORDED,     commits=2, reached=True,  left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="abandon", do=abandon, prepare=prepared("abandon", dies="after", looked=True), rows=(
        Row(killed=NONE,         commits=0,                left="UNKNOWN",   next="Unknown", effects=1),
        Row(killed=RECORDED,     commits=1,                left="ABANDONED", next="Unknown", effects=1),
    )),
    Command(name="sweep", do=sweep, prepare=prepared("sweep", dies="after"), rows=(
        Row(killed=NONE,         commits=0,                left="EXECUTING", next="Unknown", effects=1),
        Row(killed=UNASKED,      commits=1,                left="UNKNOWN",   next="Unknown", effects=1),
        Row(killed=RECORDED,     commits=2,                left="UNKNOWN",   next="Unknown", effects=1),
    )),
    Command(name="sweep, the tool can tell that it happened", do=sweep, probed=True,
            prepare=prepared("sweep, the tool can tell that it happened", dies="after"), rows=(
        Row(killed=NONE,         commits=0,                left="EXECUTING", next="Done",    effects=1),
        Row(killed=UNTOLD,   commits=1,                left="UNKNOWN",   next="Done",    effects=1),
        Row(killed=RECORDED,     commits=2,                left="SUCCEEDED", next="Done",    effects=1),
    )),
    Command(name="charge", do=charge, prepare=proposed, rows=(
        Row(killed=NONE,         commits=0,                left="READY",     next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="READY",     next="Done",    effects=1),
    )),
    Command(name="limit", do=limit, prepare=proposed, rows=(
        Row(killed=NONE,         commits=0,                left="READY",     next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="READY",     next="Done",    effects=1),
    )),
    Command(name="pause", do=pause, prepare=proposed, rows=(
        Row(killed=NONE,         commits=0,                left="READY",     next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="READY",     next="Refused", effects=0),
    )),
    Command(name="resume", do=resume, prepare=stopped, rows=(
        Row(killed=NONE,         commits=0,                left="READY",     next="Refused", effects=0),
        Row(killed=RECORDED,     commits=1,                left="READY",     next="Done",    effects=1),
    )),
    Command(name="approvals.edit", do=edit, asks=True, prepare=proposed, rows=(
        Row(killed=NONE,         commits=0,                left="HELD",      next="Held",    effects=0),
        Row(killed=RECORDED,     commits=1,                left="REFUSED",   next="Held",    effects=0),
    )),
    Command(name="activate_policy", do=activate, prepare=proposed, rows=(
        Row(killed=NONE,         commits=0,                left="READY",     next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="READY",     next="Done",    effects=1),
    )),
    Command(name="cancel", do=cancel, prepare=proposed, rows=(
        Row(killed=NONE,         commits=0,                left="READY",     next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="REFUSED",   next="Done",    effects=1),
    )),
    Command(name="close_run", do=close, prepare=proposed, rows=(
        Row(killed=NONE,         commits=0,                left="READY",     next="Done",    effects=1),
        Row(killed=RECORDED,     commits=1,                left="REFUSED",   next="Refused", effects=0),
    )),
    *VERDICTS,
)
# fmt: on

BY_NAME = {command.name: command for command in COMMANDS}


def table() -> list[str]:
    """Write the table as docs/crashes.md has it."""
    lines = ["| command | killed | the record says | the next call says | effects in all |", "|---|---|---|---|---|"]
    for command in COMMANDS:
        for n, row in enumerate(command.rows):
            name = f"`{command.name.split(',')[0]}`" + "".join(f",{part}" for part in command.name.split(",")[1:])
            name = name if " " not in command.name.split(",")[0] else command.name
            lines.append(f"| {name if n == 0 else ''} | {row.killed} | {row.left} | {row.next} | {row.effects} |")
    return lines
