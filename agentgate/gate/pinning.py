"""What a pinned gate claims with: its own policy, which must be the active one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A policy that must be the active one before anything is claimed.

    Args:
        ledger: the ledger's id, in whose own chain activations stand.
        policy: the gate's own, by its digest.
    """

    ledger: str
    policy: bytes
