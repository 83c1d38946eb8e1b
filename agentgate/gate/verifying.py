"""Verify: a whole ledger recomputed from its events, reading only, in memory that does not grow with it."""

from collections.abc import Callable
from contextlib import closing

from agentgate.core.following import Follower
from agentgate.core.verification import Verification
from agentgate.gate.auditing import Audit
from agentgate.gate.given import check_keyring
from agentgate.gate.sweeping import SWEEPS, count_events, run_ids, sweep_documents
from agentgate.gate.walking import Walk
from agentgate.jcs import encodable
from agentgate.keyring import KeyringSource
from agentgate.sealing import SealingSource, sealing_keys
from agentgate.store import inspecting
from agentgate.store.engine import Database
from agentgate.store.schema import ledger
from agentgate.store.statements import Row
from agentgate.store.version import check_version


def verify(
    url: str,
    *,
    on_progress: Callable[[int, int], None] | None = None,
    sealing: SealingSource | None = None,
    keyring: KeyringSource | None = None,
) -> Verification:
    """Recompute everything that a ledger holds, and say where it contradicts itself.

    Chains, payloads, documents, digests and fingerprints are recomputed, and every row of every table is compared
    with what the events add up to. Nothing is written. Others may write meanwhile: what they begin is left out.
    A record that was rewritten whole, with fresh hashes, contradicts nothing (docs/format.md, Columns).

    Args:
        url: ``sqlite:///path/to/agent.db``.
        on_progress: called after each page with how many events were followed, and how many there were; what it
            raises ends the verification.
        sealing: the keys that open what is sealed. What is sealed by another key is counted, and no break.
        keyring: the keys of people, or the path of their file: whose signatures are checked, and whose they are.
            Those of other keys are checked where the ledger holds the key, else counted, and no break.

    Returns:
        What was looked at, and the first break of each kind in each run; damage is a break, never an exception.

    Raises:
        KeyringRefused: the keyring cannot be loaded.
        WrongSchema: the tables are missing, older or newer than this code's.
        UnsafeStore: there is no such database, or it lies where a ledger must not.
        Unavailable: the database could not be had.
    """
    keys, ring = sealing_keys(sealing), check_keyring(keyring)
    database = Database(url, read_only=True)
    database.open()
    with closing(database):
        audit = Audit(database=database, ledger="", on_progress=on_progress, sealing=keys, keyring=ring)
        own: Row | None = None
        with audit.surviving():
            own = _found(audit, database)
            _verify(audit, own)
        return Verification(
            ledger=audit.ledger or None,
            runs=audit.runs,
            events=audit.events,
            payloads=audit.payloads,
            documents=len(audit.documents),
            breaks=audit.findings.breaks,
            omitted=audit.findings.omitted,
            sealed=audit.sealed,
            signatures=audit.signed.verified,
            unverified=audit.signed.unverified,
        )


def _found(audit: Audit, database: Database) -> Row | None:
    """Read who the ledger is: by its own row, else by the chain that belongs to no run."""
    with audit.read() as connection:
        check_version(connection, database.url)
        rows = inspecting.ledger_rows(connection)
        own = rows[0] if len(rows) == 1 and inspecting.fits(ledger, rows[0]) and encodable(rows[0][1]) else None
        named = inspecting.own_chain(connection) if own is None else str(own[1])
        loose = inspecting.loose(connection)
    if loose:
        audit.broken("unreadable", "its tables take values of any type", row=", ".join(loose))
    if own is None:
        audit.broken("ledger_row", "it is missing, or holds what its columns cannot")
    audit.ledger = named if named is not None and encodable(named) else ""
    return own


def _verify(audit: Audit, own: Row | None) -> None:
    if audit.on_progress is not None:
        audit.total = count_events(audit)
    # Before the chains: a document that is seen here was stored with an event that they will come to.
    with audit.surviving():
        sweep_documents(audit)
    is_there = False
    for run in run_ids(audit):
        with audit.surviving(run):
            follower = Walk(audit, run).walk()
            if run == audit.ledger:
                is_there = True
                _compare_ledger(audit, own, follower)
        audit.runs += 1
    if not is_there:
        audit.broken("ledger_row", "its own chain is missing", row=audit.ledger)
    audit.documents.report_unnamed()
    for sweep in SWEEPS:
        with audit.surviving():
            sweep(audit)


def _compare_ledger(audit: Audit, own: Row | None, follower: Follower | None) -> None:
    record = None if follower is None else follower.record
    if own is not None and record is not None and own[2] != record.opened_at_us:
        audit.broken("ledger_row", "not what its chain says: created_at_us", row=audit.ledger)
