"""What a verification shares: the database it reads, what it has found, and what it knows of keys and documents."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from agentgate.core.binding import Finding, SpecSaid, read_spec
from agentgate.core.polling import check_signature
from agentgate.core.verification import Break, Findings
from agentgate.digests import DOCUMENT_KINDS, document_digest
from agentgate.errors import Damaged
from agentgate.event import Event
from agentgate.keyring import Keyring
from agentgate.sealing import SealingKeys
from agentgate.signing import key_hash
from agentgate.store import inspecting, sweeping
from agentgate.store.engine import Database
from agentgate.store.schema import documents, tenants
from agentgate.store.statements import Row

Progress = Callable[[int, int], None]

_MOST_KEYS = 10_000
_KEY_BYTES = 32


@dataclass(slots=True, kw_only=True)
class Audit:
    """One verification under way.

    Args:
        database: opened for reading alone.
        ledger: the ledger's id, as far as anything says it.
        on_progress: told after each page of events, where somebody asked.
        total: how many events there were at the beginning, where somebody asked.
        sealing: the keys that open what is sealed, as far as they were given.
        keyring: the keys of people, where one was given.
    """

    database: Database
    ledger: str
    on_progress: Progress | None = None
    total: int = 0
    sealing: SealingKeys | None = None
    keyring: Keyring | None = None
    findings: Findings = field(default_factory=Findings)
    runs: int = 0
    events: int = 0
    payloads: int = 0
    sealed: int = 0
    documents: "Documents" = field(init=False)
    keys: "Keys" = field(init=False)
    signed: "Signed" = field(init=False)

    def __post_init__(self) -> None:
        self.documents = Documents(self)
        self.keys = Keys(self)
        self.signed = Signed(self)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Hold one short snapshot, whose text may be anything.

        Raises:
            Damaged: the database contradicts itself, or says so in words that are no text.
        """
        try:
            with self.database.read() as connection:
                yield inspecting.lenient(connection)
        except UnicodeError as error:
            raise Damaged(self.database.url, "it holds text that is no UTF-8") from error

    @contextmanager
    def surviving(self, run: str | None = None) -> Iterator[None]:
        """Go on with the next run or table where the database gives something back that it cannot read itself."""
        try:
            yield
        except Damaged as damaged:
            self.broken("unreadable", damaged.detail, run=run)

    def broken(self, kind: str, detail: str, *, run: object = None, row: object = None) -> None:
        """Report a break that is at no place in a chain; run and row are named as the database does."""
        self.findings.add(Break(kind=kind, run=plain(run), row=plain(row), detail=detail))

    def after(self, key: object) -> str | None:
        """Return where the page after ``key`` begins; None, reported, where the database's text does not say."""
        found = sweeping.after(key) if type(key) is str else None
        if found is None:
            self.broken("unreadable", "a key is no text, so that the rows after it were not read", row=key)
        return found

    def tell(self, events: int) -> None:
        """Count events that were followed, and say so."""
        self.events += events
        if self.on_progress is not None:
            self.on_progress(self.events, max(self.total, self.events))


def plain(key: object) -> str | None:
    """Make a key encodable: what is no UTF-8 in it came as lone surrogates, and what is no text is not shown."""
    if key is None:
        return None
    return key.encode("utf-8", "backslashreplace").decode() if type(key) is str else f"<{type(key).__name__}>"


class Documents:
    """The documents that are stored, and which of them an event has named."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self._named: dict[tuple[str, bytes], bool] = {}
        self._specs: dict[bytes, SpecSaid] = {}

    def __len__(self) -> int:
        return len(self._named)

    def take(self, row: Row) -> None:
        """Check a stored document, whatever it holds."""
        if not inspecting.fits(documents, row):
            self._audit.broken("unreadable", "a document's row holds what its columns cannot", row=None)
            return
        digest, kind, content = row
        self._named[kind, digest] = False
        if kind not in DOCUMENT_KINDS or document_digest(kind, content) != digest:
            self._audit.broken("document", "its content is not what its digest says", row=digest.hex())
            return
        said = read_spec(content) if kind == "spec" else None
        if said is not None:
            self._specs[digest] = said
        elif kind == "spec":
            self._audit.broken("document", "it is no spec", row=digest.hex())

    def names(self, kind: str, digest: bytes) -> bool:
        """Tell whether a document that an event names is stored, and remember that one does."""
        if (kind, digest) not in self._named:
            self._look(digest)
        stored = (kind, digest) in self._named
        if stored:
            self._named[kind, digest] = True
        return stored

    def spec(self, digest: bytes) -> SpecSaid | None:
        """Return what a spec says; None where it is not stored, or not what its digest says."""
        if digest not in self._specs and ("spec", digest) not in self._named:
            self._look(digest)
        return self._specs.get(digest)

    def _look(self, digest: bytes) -> None:
        """Read a document that came after the others were read."""
        with self._audit.read() as connection:
            row = inspecting.document(connection, digest)
        if row is not None:
            self.take(row)

    def report_unnamed(self) -> None:
        """Report the documents that no event has named."""
        for (kind, digest), named in self._named.items():
            if not named and kind in DOCUMENT_KINDS:
                self._audit.broken("document", "no event names it", row=digest.hex())


class Keys:
    """The tenants' fingerprint keys, as they are asked for."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self._rows: dict[str, Row | None] = {}

    def key(self, tenant: str) -> bytes | None:
        """Return a tenant's key; None where it has none that could be one."""
        row = self._row(tenant)
        key = None if row is None or not inspecting.fits(tenants, row) else row[1]
        return key if type(key) is bytes and len(key) == _KEY_BYTES else None

    def knows(self, tenant: str) -> bool:
        """Tell whether a tenant has a row."""
        return self._row(tenant) is not None

    def _row(self, tenant: str) -> Row | None:
        if tenant not in self._rows:
            if len(self._rows) >= _MOST_KEYS:
                self._rows.clear()
            with self._audit.read() as connection:
                self._rows[tenant] = inspecting.tenant(connection, tenant)
        return self._rows[tenant]


class Signed:
    """The signatures of votes, and the public keys that they are checked by."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self._publics: dict[bytes, bytes] | None = None
        self.verified = 0
        self.unverified = 0

    def check(self, event: Event) -> Iterator[Finding]:
        """Check the signature of a vote, where its public key is at hand; count it in any case."""
        found = check_signature(event, self._audit.keyring, self._known())
        if found is None:
            self.unverified += 1
            return
        self.verified += 1
        yield from found

    def _known(self) -> dict[bytes, bytes]:
        """Read the public keys of the ledger's table, once: whether somebody trusts them is no matter here."""
        if self._publics is None:
            with self._audit.read() as connection:
                publics = [row[1] for row in sweeping.all_keys(connection)[0] if type(row[1]) is bytes]
            self._publics = {key_hash(public): public for public in publics}
        return self._publics
