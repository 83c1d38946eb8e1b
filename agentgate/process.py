"""This process, and whether another one of the same host still lives."""

import hashlib
import os
from pathlib import Path

from agentgate.clock import Clock
from agentgate.lease import Holder

PROC = Path("/proc")
_NAMESPACES = ("pid", "time")  # a start time is told in the reader's own time namespace
_START_FIELD = 19  # of what follows the command's name in /proc/<pid>/stat; proc(5) counts it as the 22nd


def this_process(clock: Clock) -> Holder:
    """Name a gate of this process."""
    pid = os.getpid()
    found = _found(pid)
    # Without its start time a process cannot be told from the next one of its id: by its lease alone, then.
    return Holder(
        host="" if found is None else _host(),
        pid=pid,
        started=0 if found is None else found[1],
        gate=clock.random(6).hex(),
    )


def is_gone(holder: Holder) -> bool:
    """Tell whether a holder's process is known to have ended; False wherever that cannot be known.

    The same boot and namespaces, and no process of that id and start time: it cannot come back. A process of
    another host, or of a host without /proc, is only ever judged by its lease.
    """
    if not holder.host or holder.host != _host():
        return False
    found = _found(holder.pid)
    if found is None:
        return not _exists(holder.pid)  # a hardened /proc hides what runs as another user
    state, started = found
    return state in {"Z", "X"} or started != holder.started  # a zombie runs nothing any more


def _host() -> str:
    """Name the boot and the namespaces of processes and of time, hashed: no host's identity stands in clear.

    Empty where /proc is another process namespace's: its numbers are not ours.
    """
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespaces = [
            (PROC / "self/ns" / kind).readlink() for kind in _NAMESPACES if (PROC / "self/ns" / kind).is_symlink()
        ]
        is_ours = int(str((PROC / "self").readlink())) == os.getpid()
    except (OSError, ValueError):
        return ""
    return hashlib.sha256(f"{boot} {namespaces}".encode()).hexdigest()[:16] if is_ours else ""


def _found(pid: int) -> tuple[str, int] | None:
    """Return a process's state and when it started; None where /proc shows no such process."""
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return fields[0], int(fields[_START_FIELD])


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it is somebody else's
        return True
    return True
