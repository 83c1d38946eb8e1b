"""The shop that the demo's agent works for: tools that change files, so that anybody can see what happened."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import agentgate
from agentgate.tools.decorator import AnyTool

ORDERS: dict[str, dict[str, agentgate.Json]] = {"o-77": {"account": "a1", "article": "kettle", "paid_cents": 129_900}}


def _go_on() -> None:
    """Lose no time between the effect and the answer."""


def _listen(_cents: int) -> None:
    """Take what comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """A shop in a folder.

    Args:
        folder: its bank is ``bank.txt``, a line for each movement; its mail is ``outbox.txt``, and ``postbook.txt`` is
            what the mail server was asked for.
        answers: called between an effect and its answer.
        bank_listens: called with the amount before money moves.
    """

    folder: Path
    answers: Callable[[], None] = _go_on
    bank_listens: Callable[[int], None] = _listen

    @property
    def bank(self) -> tuple[str, ...]:
        """Read the bank's movements."""
        return _lines(self.folder / "bank.txt")

    @property
    def outbox(self) -> tuple[str, ...]:
        """Read the mails sent."""
        return _lines(self.folder / "outbox.txt")

    def movements(self, cents: int) -> tuple[str, ...]:
        """Read the movements of an amount."""
        return tuple(line for line in self.bank if json.loads(line)["cents"] == cents)

    def posted(self, text: str) -> tuple[str, ...]:
        """Read what the mail server was asked for: each request for a mail with this text."""
        return tuple(line for line in _lines(self.folder / "postbook.txt") if text in line)

    def _deliver(self, key: str, mail: str) -> None:
        """Be the mail server: deliver nothing again under a key that was seen before."""
        known = any(json.loads(line)["key"] == key for line in _lines(self.folder / "postbook.txt"))
        _append(self.folder / "postbook.txt", json.dumps({"mail": mail, "key": key, "delivered": not known}))
        if not known:
            _append(self.folder / "outbox.txt", mail)

    def tools(self) -> tuple[AnyTool, ...]:
        """Make the agent's tools."""
        return (self._lookup(), self._refund(), self._email(), self._credit(), self._delete())

    def _lookup(self) -> AnyTool:
        @agentgate.tool(risk="read_only", timeout=5)
        def lookup_order(order: str) -> dict[str, agentgate.Json]:
            """Look an order up."""
            if order not in ORDERS:
                raise agentgate.ToolError("not_found", "there is no such order")
            return {**ORDERS[order]}

        return lookup_order

    def _refund(self) -> AnyTool:
        # Neither can the bank be asked to repeat a key, nor asked what became of one: a person must look.
        @agentgate.tool(risk="external", recovery=agentgate.Operator(), timeout=20, resource="account:{account}")
        def refund(account: str, cents: int, *, effect: agentgate.Effect) -> dict[str, agentgate.Json]:
            """Move money back to a customer."""
            effect.sending()
            self.bank_listens(cents)
            movement = {"account": account, "cents": cents, "key": effect.idempotency_key[:12], "fence": effect.fence}
            _append(self.folder / "bank.txt", json.dumps(movement))
            self.answers()
            return {"refunded": cents}

        return refund

    def _email(self) -> AnyTool:
        @agentgate.tool(risk="external", recovery=agentgate.Keyed(hours=24), timeout=10, resource="mail:{to}")
        def send_email(to: str, text: str, *, effect: agentgate.Effect) -> dict[str, agentgate.Json]:
            """Send a mail to a customer."""
            effect.sending()
            self._deliver(effect.idempotency_key[:12], f"{to}: {text}")
            self.answers()
            return {"sent": True}

        return send_email

    def _credit(self) -> AnyTool:
        # Its table lies beside the ledger's: the row and its record are one transaction.
        @agentgate.tool(risk="external", recovery=agentgate.Transactional(), timeout=1.5, resource="account:{account}")
        def give_credit(account: str, cents: int, *, effect: agentgate.Effect) -> dict[str, agentgate.Json]:
            """Give a customer credit in the shop."""
            effect.connection.exec_driver_sql("INSERT INTO credits VALUES (?, ?)", (account, cents))
            self.answers()
            return {"credited": cents}

        return give_credit

    def _delete(self) -> AnyTool:
        @agentgate.tool(risk="destructive", timeout=10, resource="account:{account}")
        def delete_account(account: str) -> dict[str, agentgate.Json]:
            """Delete a customer's account."""
            _append(self.folder / "deleted.txt", account)
            return {"deleted": True}

        return delete_account


def _append(path: Path, line: str) -> None:
    """Write a line so that it is there whatever happens next."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{line}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lines(path: Path) -> tuple[str, ...]:
    return tuple(path.read_text("utf-8").splitlines()) if path.exists() else ()
