"""This process, and whether another one of the same host still lives."""

import hashlib
import os
from pathlib import Path

from agentgate.clock import Clock
from agentgate.lease import Holder

PROC = Path("/proc")
_START_FIELD = 19  # of what follows the command's name in /proc/<pid>/stat; proc(5) counts it as the 22nd


def this_process(clock: Clock) -> Holder:
    """Name a gate of this process."""
    pid = os.getpid()
    return Holder(host=_host(), pid=pid, started=_started(pid) or 0, gate=clock.random(6).hex())


def is_gone(holder: Holder) -> bool:
    """Tell whether a holder's process is known to have ended; False wherever that cannot be known.

    The same boot and process namespace, and no process of that id and start time: it cannot come back. A
    process of another host, or of a host without /proc, is only ever judged by its lease.
    """
    if not holder.host or holder.host != _host():
        return False
    started = _started(holder.pid)
    return started != holder.started


def _host() -> str:
    """Name the boot and the process namespace, hashed: the record holds no host's identity in clear."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = (PROC / "self/ns/pid").readlink()
    except OSError:
        return ""
    return hashlib.sha256(f"{boot} {namespace}".encode()).hexdigest()[:16]


def _started(pid: int) -> int | None:
    """Return when a process started; None where there is no such process, or only what is left of one."""
    try:
        stat = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    if fields[0] in {"Z", "X"}:  # a zombie runs nothing any more
        return None
    return int(fields[_START_FIELD])
