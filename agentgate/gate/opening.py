"""Opening a ledger for work: the right schema, the tools' specs on record, and runs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from sqlalchemy.engine import Connection

from agentgate.canonical import Json, canonical
from agentgate.chain import start
from agentgate.clock import Clock, new_id
from agentgate.core.draft import Draft, Payload
from agentgate.core.records import RunRecord
from agentgate.errors import Misuse, RunConflict, SpecRefused
from agentgate.gate.answers import Reader
from agentgate.gate.charging import charge
from agentgate.gate.ledger import Ledger, Transaction, log, report
from agentgate.limits import Limits
from agentgate.sealing import SealingSource, sealing_keys
from agentgate.store import committing, events, runs
from agentgate.store.engine import Database
from agentgate.store.version import check_version
from agentgate.tools.decorator import AnyTool
from agentgate.tools.recovery import Transactional
from agentgate.tools.spec import ToolSpec


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run, as its loop holds it; `Gate.run` attaches to it from any process.

    Handles of one run are equal. One that was pickled has lost its gate and can be proposed with, not charged.

    Args:
        id: the run's id, made by the gate.
        name: the caller's name for it, unique in the tenant.
        tenant: whose it is.
        principal: on whose behalf its actions are proposed, unless they say otherwise.
    """

    __slots__ = ("_ledger", "id", "name", "principal", "tenant")  # by hand: the ledger is no part of the value

    id: str
    name: str
    tenant: str
    principal: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ledger", None)

    def __reduce__(self) -> tuple[Callable[[], "Run"], tuple[()]]:
        return partial(Run, id=self.id, name=self.name, tenant=self.tenant, principal=self.principal), ()

    def __copy__(self) -> "Run":
        return self

    def __deepcopy__(self, _memo: object) -> "Run":
        return self

    def charge(self, *, tokens: int | None = None, cost: int | None = None) -> None:
        """Record what the loop has spent outside of its tools, whatever state the run is in.

        Args:
            tokens: of a model.
            cost: in the smallest unit of the operator's choice; what the limit ``money`` bounds.

        Raises:
            Misuse: no whole numbers from 0, or a handle that has lost its gate.
            Unavailable: the database could not be had; nothing was recorded, unless the reason is ``commit``: then it
                may be, and the run's counters tell.
        """
        ledger: Ledger | None = getattr(self, "_ledger", None)
        if ledger is None:
            raise Misuse("run: this handle has lost its gate, as after pickling; attach again with Gate.run")
        charge(ledger, run=self.id, tenant=self.tenant, principal=self.principal, tokens=tokens, cost=cost)


def open_ledger(url: str, clock: Clock, *, read_only: bool = False, sealing: SealingSource | None = None) -> Ledger:
    """Open a ledger that was migrated.

    Args:
        url: as for `Gate.open`.
        clock: the ledger clock.
        read_only: open nothing for writing.
        sealing: the keys that seal and open payloads.

    Raises:
        WrongSchema: its tables are missing, older or newer than this code's.
        UnsafeStore: it does not exist, or lies where a ledger must not.
        Misuse: no keys were given as ``sealing``.
    """
    keys = sealing_keys(sealing)
    database = Database(url, read_only=read_only)
    database.open()
    if database.journal == "delete" and "journal=" not in url and not read_only:  # nobody asked for the slower one
        log.warning(
            "slow journal", because="this SQLite can corrupt a WAL database", remedy="install the extra `sqlite`"
        )
    try:
        with database.read() as connection:
            check_version(connection, database.url)
            id_ = runs.ledger_id(connection)
    except BaseException:
        database.close()
        raise
    return Ledger(database, clock=clock, id=id_, sealing=keys)


def register(ledger: Ledger, tools: Iterable[AnyTool], *, lease: timedelta) -> None:
    """Put the specs that the ledger does not know yet on its record, in one transaction.

    Args:
        ledger: the record.
        tools: what may be run.
        lease: the gate's; a transactional effect may hold the ledger for a third of it.

    Raises:
        SpecRefused: a spec asks for what this gate does not keep.
    """
    known = {tool.spec.digest: tool.spec for tool in tools}
    for spec in known.values():
        _check_kept(spec, has_key=ledger.sealing is not None)
        _check_time(spec, lease)
        ledger.knows(spec)
    with ledger.database.read() as connection:
        new = {digest: spec for digest, spec in known.items() if events.document(connection, digest) is None}
    if not new:
        return

    def registered(transaction: Transaction) -> None:
        for digest, spec in new.items():
            if events.document(transaction.connection, digest) is None:  # another gate may have been faster
                body = {"namespace": spec.namespace, "tool": spec.name, "spec": digest.hex()}
                transaction.draft.add("spec_registered", {**body})

    documents = tuple((digest, "spec", spec.document()) for digest, spec in new.items())
    ledger.change(ledger.id, registered, documents=documents)


def _check_kept(spec: ToolSpec, *, has_key: bool) -> None:
    """Refuse what a spec may say and this gate would not do: a promise nobody keeps is worse than none."""
    if spec.parallel and spec.risk != "read_only":
        raise SpecRefused(spec.name, "/parallel", "writes to one resource take turns", "leave it out")
    if spec.sensitive and not has_key:
        raise SpecRefused(spec.name, "/sensitive", "this gate has no key to seal them with", "open it with sealing=")
    never_filled = spec.refused_defaults()
    if never_filled:
        log.warning("defaults never filled: their own subschemas refuse them", tool=spec.name, paths=list(never_filled))


def _check_time(spec: ToolSpec, lease: timedelta) -> None:
    """Refuse an effect that may keep everybody else from renewing their leases (design §5)."""
    if isinstance(spec.recovery, Transactional) and spec.timeout > lease / 3:
        raise SpecRefused(
            spec.name,
            "/timeout_us",
            f"a transactional effect holds the ledger, and its timeout ({spec.timeout}) is over a third of the lease "
            f"({lease})",
            f"give it a timeout of at most {lease / 3}, or the gate a longer lease",
        )


def open_run(ledger: Ledger, *, name: str, tenant: str, principal: str, goal: str | None, limits: Limits | None) -> Run:
    """Open a run, or attach to the one of this tenant and name.

    Raises:
        RunConflict: it has another principal, goal or limits.
        Sealed: its goal is sealed by a key that is not there, so that they cannot be compared.
    """
    with ledger.database.read() as connection:
        found = runs.find(connection, tenant=tenant, name=name)
        if found is not None:
            _same(ledger, connection, found, principal=principal, goal=goal, limits=limits)
            return _handle(ledger, found)
    with ledger.database.write() as connection:
        found = runs.find(connection, tenant=tenant, name=name)
        if found is not None:
            _same(ledger, connection, found, principal=principal, goal=goal, limits=limits)
            return _handle(ledger, found)
        if not runs.has_tenant(connection, tenant):
            runs.create_tenant(connection, tenant=tenant, fingerprint_key=ledger.clock.random(32))
        draft = Draft(start(ledger.id, new_id(ledger.clock)), None, at_us=ledger.clock.now_us())
        bounds = (limits or Limits()).to_json()
        body: dict[str, Json] = {"tenant": tenant, "name": name, "principal": principal, "limits": bounds}
        draft.add("run_opened", body, payloads=_goal(ledger, goal))
        plan = ledger.sealed(connection, draft.plan())
        committing.write(connection, plan)
    report(plan)
    return _handle(ledger, plan.after)


def _goal(ledger: Ledger, goal: str | None) -> tuple[Payload, ...]:
    return () if goal is None else (ledger.payload("texts", canonical({"goal": goal})),)


def _handle(ledger: Ledger, run: RunRecord) -> Run:
    handle = Run(id=run.id, name=run.name, tenant=run.tenant, principal=run.principal)
    object.__setattr__(handle, "_ledger", ledger)
    return handle


def _same(
    ledger: Ledger,
    connection: Connection,
    run: RunRecord,
    *,
    principal: str,
    goal: str | None,
    limits: Limits | None,
) -> None:
    """Compare with what the run was opened with; a goal or limits that are not given are not compared."""
    if run.principal != principal:
        raise RunConflict(run.name, "principal")
    if limits is not None and dict(run.limits) != limits.to_json():
        raise RunConflict(run.name, "limits")
    if goal is not None:
        stored = Reader(connection=connection, sealing=ledger.sealing).kept(run.id, 0, "texts")
        texts = {} if stored is None else stored.value()
        if type(texts) is not dict or texts.get("goal") != goal:
            raise RunConflict(run.name, "goal")
