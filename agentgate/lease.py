"""Who holds a lease: enough of a process to know, on the same host, that it is gone."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A gate in a process on a host.

    Args:
        host: the boot's id and the process namespace; empty where the host does not tell them apart.
        pid: the process's id there.
        started: when the process started, in the host's ticks since boot.
        gate: the gate's own random id.
    """

    host: str
    pid: int
    started: int
    gate: str

    def __str__(self) -> str:
        return f"{self.host or '-'}/{self.pid}/{self.started}/{self.gate}"

    @classmethod
    def parse(cls, text: str) -> "Holder | None":
        """Read a holder back; None where the text is not one of ours."""
        parts = text.split("/")
        if len(parts) != len(cls.__slots__) or not (parts[1].isdecimal() and parts[2].isdecimal()):
            return None
        host = "" if parts[0] == "-" else parts[0]
        return cls(host=host, pid=int(parts[1]), started=int(parts[2]), gate=parts[3])
