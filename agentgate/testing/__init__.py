"""What tests of tools, policies and loops need: a gate in memory, and what it is surrounded by.

A clock that is told the time, a policy that reads its answers from a script, a downstream that counts what really
happened. Nothing here is used by the gate itself, and nothing stands in for it: the gate in memory is the gate, on a
ledger that ends with its connection.
"""

from agentgate.testing.collecting import CollectingChannel
from agentgate.testing.downstream import Arrival, Downstream
from agentgate.testing.fakeclock import FakeClock
from agentgate.testing.memory import memory_gate
from agentgate.testing.script import ScriptedPolicy

__all__ = ["Arrival", "CollectingChannel", "Downstream", "FakeClock", "ScriptedPolicy", "memory_gate"]


def __dir__() -> list[str]:
    return __all__
