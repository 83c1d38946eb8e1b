"""What a presentation is made from: one frozen value, filled in where the question is asked."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agentgate.action import Key
from agentgate.approval import Requirement
from agentgate.canonical import Json

Path: TypeAlias = tuple[str | int, ...]
"""Where a value lies: names of members, and positions in arrays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    """Arguments as they may be shown.

    Args:
        value: the arguments, with a mark in place of each sensitive value.
        hidden: where these marks are: a text of the same letters elsewhere is only a text.
        unnamed: how many undeclared arguments were left out, name and all: they may be sensitive ones, misspelt.
    """

    value: Json = field(repr=False)
    hidden: frozenset[Path] = frozenset()
    unnamed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Previous:
    """The last call of the same tool, for the same principal, that people approved and that was started.

    Args:
        action: its id.
        arguments: what ran; None where that cannot be shown.
        why: why it cannot: it is gone, is sealed by a key that is not there, or is not what was recorded.
    """

    action: str
    arguments: Masked | None
    why: Literal["gone", "sealed", "damaged"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LateAnswer:
    """What an attempt said after it had lost its action: that it happened, or an error with its code."""

    at_us: int
    ok: bool
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """An earlier attempt of the same action that may have happened.

    Args:
        attempt: its number, from 1.
        started_at_us: when it began.
        code: why nobody knows what came of it.
        late: what it said too late.
    """

    attempt: int
    started_at_us: int
    code: str
    late: tuple[LateAnswer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Everything that people are told before they decide.

    Args:
        tool: the tool's name.
        namespace: its server; ``""`` when none.
        description: what the server says of the tool.
        risk: what the tool's spec declares.
        tenant: the run's tenant.
        principal: on whose behalf.
        edited_by: who changed the arguments of the call that was proposed first; None where nobody did.
        run: the caller's name of the run.
        action: the action digest, which the last line repeats.
        key: the key that the action is a revision of.
        revision: from 1.
        reasons: the policy's words.
        requirement: who must agree; its kind says which question this is.
        arguments: exactly what would run.
        supplied: what was sent, before defaults were filled in.
        undeclared: names of root arguments that the schema does not declare.
        previous: the last approved call of the same tool; None where there is none.
        doubts: earlier attempts of this action that may have happened, in order.
        asks_about: the attempt that an operator's question is about; None where it is about no attempt.
        expires_at_us: until when it can be answered.
        grant_us: how long what was approved may wait to start.
    """

    tool: str
    namespace: str
    description: str
    risk: str
    tenant: str
    principal: str
    run: str
    action: bytes
    key: Key
    revision: int
    reasons: str
    requirement: Requirement
    arguments: Masked
    supplied: Masked
    undeclared: tuple[str, ...] = field(default=(), repr=False)
    previous: Previous | None = None
    doubts: tuple[Doubt, ...] = ()
    asks_about: int | None = None
    edited_by: str | None = None
    expires_at_us: int
    grant_us: int
