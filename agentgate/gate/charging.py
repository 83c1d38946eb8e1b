"""Charging a run what its loop has spent elsewhere: tokens and money, which no gate can see by itself."""

from functools import partial

from agentgate.canonical import Json
from agentgate.errors import Misuse
from agentgate.gate.ledger import Ledger, Transaction
from agentgate.jcs import LARGEST_INTEGER

ACCOUNTS = {"tokens": "tokens", "cost": "money"}


def charge(ledger: Ledger, *, run: str, tenant: str, principal: str, tokens: object, cost: object) -> None:
    """Record what was spent, whatever state the run is in: what was spent was spent.

    Raises:
        Misuse: no amounts, or more than a run's record can hold.
        NotFound: there is no such run of this tenant.
    """
    amounts = {"tokens": _amount(tokens, "tokens"), "money": _amount(cost, "cost")}
    if tokens is None and cost is None:
        raise Misuse("charge: give tokens, cost, or both")
    spent = {account: amount for account, amount in amounts.items() if amount}
    if spent:
        ledger.change(run, partial(_charged, spent=spent, by=principal), tenant=tenant)


def _amount(value: object, field: str) -> int:
    if value is None:
        return 0
    if type(value) is not int or not 0 <= value <= LARGEST_INTEGER:
        raise Misuse(f"{field}: give a whole number from 0 to 2**53 - 1, in the smallest unit of your choice")
    return value


def _charged(transaction: Transaction, *, spent: dict[str, int], by: str) -> None:
    counters = transaction.draft.run.counters
    for field, account in ACCOUNTS.items():
        if getattr(counters, account) + spent.get(account, 0) > LARGEST_INTEGER:
            raise Misuse(f"{field}: with this the run would have spent more than 2**53 - 1, which no record can hold")
    charges: list[Json] = [{"account": account, "amount": amount} for account, amount in spent.items()]
    transaction.draft.add("charged", {"charges": charges, "by": by})
