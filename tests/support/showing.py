"""Presentations in tests: one to start from, and what every one of them owes."""

import unicodedata
from dataclasses import replace
from typing import Any

from agentgate import Requirement
from agentgate.action import Key
from agentgate.canonical import Json
from agentgate.core.presenting.rendering import GATE, present
from agentgate.core.presenting.shown import Masked, Shown

PLAIN = Shown(
    tool="refund",
    namespace="",
    description="Gives money back.",
    risk="external",
    tenant="acme",
    principal="agent:support",
    run="ticket-1",
    action=bytes(range(32)),
    key=Key(source="caller", scope="", text="refund-1"),
    revision=1,
    reasons="over the limit",
    requirement=Requirement(),
    arguments=Masked(value={}),
    supplied=Masked(value={}),
    expires_at_us=1_800_000_000_000_000,
    grant_us=900_000_000,
)


def of(sent: Json, **fields: Any) -> Shown:
    """Make a presentation of arguments that are what was sent, unless it is said otherwise."""
    masked = Masked(value=sent)
    return replace(PLAIN, **{"arguments": masked, "supplied": masked, **fields})


def text(shown: Shown) -> str:
    """Render, and check what holds of every presentation."""
    told = present(shown).decode()
    check(told)
    return told


def lines(sent: Json, **fields: Any) -> list[str]:
    """Render arguments, and return their own lines."""
    told = text(of(sent, **fields)).split("\n")
    return told[told.index("arguments") + 1 : -2]


def check(told: str) -> None:
    """Every character is graphic, a space or a newline; the last line alone is the gate's."""
    for character in told:
        assert character in " \n" or unicodedata.category(character)[0] in "LMNPS", f"U+{ord(character):04X}"
    assert told.splitlines() == told.split("\n")
    begun = [line for line in told.split("\n") if line.startswith(GATE)]
    assert begun == [told.rsplit("\n", maxsplit=1)[-1]]
    assert begun[0].endswith(f" action {PLAIN.action.hex()}")


def ascii_alone(told: str) -> str:
    """Leave out how texts read, and all that is said of them: what nobody may need to tell two inputs apart."""
    return "\n".join(line for line in told.split("\n") if line.isascii() and not line.lstrip().startswith("^"))
