"""The tables, as SQLAlchemy Core sees them. docs/format.md lists which column is proved and which volatile.

Ids are 36-character text, digests and hashes 32 raw bytes, times integer microseconds UTC. Rows are written in
the order they come: keys are UUIDv7 or positions, so a call dirties the same few pages however long the ledger.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    and_,
    literal_column,
)

from agentgate.states import STATES, RunState

REVISION = "0001"
VERSION_TABLE = "agentgate_version"

metadata = MetaData()
_BIG = BigInteger().with_variant(Integer(), "sqlite")  # STRICT tables know no BIGINT


def _words(column: str, words: tuple[str, ...]) -> str:
    listed = ", ".join(f"'{word}'" for word in words)
    return f"{column} IN ({listed})"


def _table(name: str, *parts: Column[object] | UniqueConstraint | CheckConstraint, counted: bool = False) -> Table:
    return Table(f"agentgate_{name}", metadata, *parts, sqlite_strict=True, sqlite_autoincrement=counted)


ledger = _table(
    "ledger",
    Column("one", Integer, CheckConstraint("one = 1"), primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False),
    Column("created_at_us", _BIG, nullable=False),
)

tenants = _table(
    "tenants",
    Column("tenant", Text, primary_key=True),
    Column("fingerprint_key", LargeBinary),
)

runs = _table(
    "runs",
    Column("id", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("limits", LargeBinary, nullable=False),
    Column("opened_at_us", _BIG, nullable=False),
    Column("state", Text, CheckConstraint(_words("state", tuple(RunState))), nullable=False),
    Column("reason", Text),
    Column("n", _BIG, nullable=False),
    Column("head", LargeBinary, nullable=False),
    Column("at_us", _BIG, nullable=False),
    Column("proposed", _BIG, nullable=False),
    Column("refused", _BIG, nullable=False),
    Column("pending", _BIG, nullable=False),
    Column("executing", _BIG, nullable=False),
    Column("unknown", _BIG, nullable=False),
    Column("taken", _BIG, nullable=False),
    Column("succeeded", _BIG, nullable=False),
    Column("failed", _BIG, nullable=False),
    Column("failures", _BIG, nullable=False),
    Column("rejected", _BIG, nullable=False),
    Column("retried", _BIG, nullable=False),
    Column("active_us", _BIG, nullable=False),
    Column("tokens", _BIG, nullable=False),
    Column("money", _BIG, nullable=False),
    UniqueConstraint("tenant", "name"),
)
HALTED = runs.c.state == literal_column("'HALTED'")
Index("agentgate_runs_halted", runs.c.tenant, runs.c.id, sqlite_where=HALTED, postgresql_where=HALTED)

events = _table(
    "events",
    Column("run", Text, ForeignKey("agentgate_runs.id"), primary_key=True),
    Column("n", _BIG, primary_key=True, autoincrement=False),
    Column("hash", LargeBinary, nullable=False),
    Column("event", LargeBinary, nullable=False),
)

payloads = _table(
    "payloads",
    Column("run", Text, primary_key=True),
    Column("n", _BIG, primary_key=True, autoincrement=False),
    Column("kind", Text, primary_key=True),
    Column("salt", LargeBinary),
    Column("content", LargeBinary, nullable=False),
    Column("sealed_by", Text),
)

documents = _table(
    "documents",
    Column("digest", LargeBinary, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
)

actions = _table(
    "actions",
    Column("id", Text, primary_key=True),
    Column("run", Text, ForeignKey("agentgate_runs.id"), nullable=False),
    Column("tenant", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("key_source", Text, nullable=False),
    Column("key_scope", Text, nullable=False),
    Column("key_text", Text, nullable=False),
    Column("revision", _BIG, nullable=False),
    Column("spec", LargeBinary),
    Column("digest", LargeBinary, nullable=False),
    Column("request", LargeBinary),
    Column("resource", LargeBinary),
    Column("proposed_n", _BIG, nullable=False),
    Column("proposed_at_us", _BIG, nullable=False),
    Column("state", Text, CheckConstraint(_words("state", tuple(STATES))), nullable=False),
    Column("reason", Text),
    Column("state_n", _BIG, nullable=False),
    Column("last_n", _BIG, nullable=False),
    Column("attempts", _BIG, nullable=False),
    Column("unresolved", _BIG, nullable=False),
    Column("fence", _BIG),
    Column("approval", Text),
    Column("requirement", LargeBinary),
    Column("asked", _BIG, nullable=False),
    Column("first_started_us", _BIG),
    Column("expires_at_us", _BIG),
    Column("result_n", _BIG),
    Column("outcome", LargeBinary),
    Column("waited", Text, nullable=False),
    Column("confirmed", Text, CheckConstraint(_words("confirmed", ("yes", "no")))),
    Column("reserved", LargeBinary),
    Column("dedupe_until_us", _BIG),
    Column("edits", Text),
    Column("edited_by", Text),
    UniqueConstraint("tenant", "namespace", "tool", "key_source", "key_scope", "key_text", "revision"),
)
Index("agentgate_actions_of_run", actions.c.run, actions.c.id)
# Literals, because SQLite takes a partial index only where the query's text implies it.
WAITING = actions.c.state.in_([literal_column("'READY'"), literal_column("'HELD'")])
Index("agentgate_actions_waiting", actions.c.run, actions.c.id, sqlite_where=WAITING, postgresql_where=WAITING)
IN_DOUBT = actions.c.unresolved > literal_column("0")
Index(
    "agentgate_actions_in_doubt",
    actions.c.tenant,
    actions.c.resource,
    sqlite_where=IN_DOUBT,
    postgresql_where=IN_DOUBT,
)
# The last outcomes of a tool, by the order in which its actions were proposed: ids are UUIDv7.
TRIED = actions.c.attempts > literal_column("0")
Index(
    "agentgate_actions_of_tool",
    actions.c.tenant,
    actions.c.namespace,
    actions.c.tool,
    actions.c.id,
    sqlite_where=TRIED,
    postgresql_where=TRIED,
)
# The last call of a tool that people approved, by principal.
ASKED_ABOUT = and_(TRIED, actions.c.requirement.is_not(None))
Index(
    "agentgate_actions_approved",
    actions.c.tenant,
    actions.c.namespace,
    actions.c.tool,
    actions.c.principal,
    actions.c.id,
    sqlite_where=ASKED_ABOUT,
    postgresql_where=ASKED_ABOUT,
)
DEDUPED = actions.c.dedupe_until_us.is_not(None)
Index(
    "agentgate_actions_deduped",
    actions.c.tenant,
    actions.c.request,
    sqlite_where=DEDUPED,
    postgresql_where=DEDUPED,
)
# What people said no to is not asked again in its run.
REJECTED = actions.c.reason == literal_column("'rejected'")
Index(
    "agentgate_actions_rejected",
    actions.c.run,
    actions.c.request,
    sqlite_where=REJECTED,
    postgresql_where=REJECTED,
)
RESERVING = actions.c.reserved.is_not(None)
Index("agentgate_actions_reserving", actions.c.tenant, sqlite_where=RESERVING, postgresql_where=RESERVING)

attempts = _table(
    "attempts",
    Column("fence", _BIG, primary_key=True, autoincrement=True),
    Column("run", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("number", _BIG, nullable=False),
    Column(
        "state",
        Text,
        CheckConstraint(_words("state", ("open", "succeeded", "failed", "in_doubt"))),
        nullable=False,
    ),
    Column("unresolved", Integer, nullable=False),
    Column("holder", Text, nullable=False),
    Column("started_at_us", _BIG, nullable=False),
    Column("lease_until_us", _BIG, nullable=False),
    Column("deadline_us", _BIG, nullable=False),
    Column("approval", Text),
    Column("started_n", _BIG, nullable=False),
    Column("ended_n", _BIG),
    Column("late_n", _BIG),
    UniqueConstraint("action", "number"),
    counted=True,  # a fence is never given twice, whatever is deleted
)
OPEN = attempts.c.state == literal_column("'open'")
Index("agentgate_attempts_open", attempts.c.fence, sqlite_where=OPEN, postgresql_where=OPEN)

approvals = _table(
    "approvals",
    Column("id", Text, primary_key=True),
    Column("run", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("kind", Text, CheckConstraint(_words("kind", ("approval", "question"))), nullable=False),
    Column("attempt", _BIG),
    Column("requirement", LargeBinary, nullable=False),
    Column("presentation", LargeBinary, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column(
        "state",
        Text,
        CheckConstraint(_words("state", ("pending", "granted", "used", "rejected", "expired", "revoked", "void"))),
        nullable=False,
    ),
    Column("asked_n", _BIG, nullable=False),
    Column("state_n", _BIG, nullable=False),
    Column("asked_at_us", _BIG, nullable=False),
    Column("expires_at_us", _BIG, nullable=False),
    Column("until_us", _BIG),
    Column("demands", LargeBinary, nullable=False),
    Column("grant_us", _BIG, nullable=False),
)
Index("agentgate_approvals_of_action", approvals.c.action)
PENDING = approvals.c.state == literal_column("'pending'")
Index("agentgate_approvals_pending", approvals.c.expires_at_us, sqlite_where=PENDING, postgresql_where=PENDING)
GRANTED = approvals.c.state == literal_column("'granted'")
Index("agentgate_approvals_granted", approvals.c.until_us, sqlite_where=GRANTED, postgresql_where=GRANTED)

# Which pending question was told on which channel: marks that no event determines.
notices = _table(
    "notices",
    Column("channel", Text, primary_key=True),
    Column("approval", Text, primary_key=True),
    Column("tries", _BIG, nullable=False),
    Column("again_at_us", _BIG, nullable=False),
    Column("told", Integer, nullable=False),
)

votes = _table(
    "votes",
    Column("approval", Text, primary_key=True),
    Column("n", _BIG, primary_key=True, autoincrement=False),
    Column("run", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("approver", Text, nullable=False),
    Column("key", LargeBinary),
    Column("nonce", LargeBinary, nullable=False),
    Column("signature", LargeBinary),
    Column("counted", Integer, nullable=False),
    Column("at_us", _BIG, nullable=False),
    Column("roles", LargeBinary, nullable=False),
)

switches = _table(
    "switches",
    Column("kind", Text, CheckConstraint(_words("kind", ("all", "tenant", "tool"))), primary_key=True),
    Column("tenant", Text, primary_key=True),
    Column("namespace", Text, primary_key=True),
    Column("tool", Text, primary_key=True),
    Column("paused", Integer, nullable=False),
    Column("n", _BIG, nullable=False),
)

# What a tenant, a tool or an account may spend, and has: ``name`` is the tool's or the account's, "" for a tenant.
budgets = _table(
    "budgets",
    Column("tenant", Text, primary_key=True),
    Column("kind", Text, CheckConstraint(_words("kind", ("tenant", "tool", "account"))), primary_key=True),
    Column("namespace", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("measure", Text, primary_key=True),
    Column("most", _BIG, nullable=False),
    Column("used", _BIG, nullable=False),
    Column("n", _BIG, nullable=False),
)

# People's keys that somebody's signature has added; whose signature counts is told by no table.
keys = _table(
    "keys",
    Column("key", LargeBinary, primary_key=True),
    Column("public", LargeBinary, nullable=False),
    Column("name", Text, nullable=False),
    Column("roles", LargeBinary, nullable=False),
    Column("from_us", _BIG, nullable=False),
    Column("until_us", _BIG),
    Column("signer", LargeBinary, nullable=False),
    Column("signature", LargeBinary, nullable=False),
    Column("n", _BIG, nullable=False),
)

# Of any keys, those that stand in no table too.
revoked_keys = _table(
    "revoked_keys",
    Column("key", LargeBinary, primary_key=True),
    Column("since_us", _BIG, nullable=False),
    Column("n", _BIG, nullable=False),
)

policies = _table(
    "policies",
    Column("tenant", Text, primary_key=True),
    Column("policy", LargeBinary, nullable=False),
    Column("n", _BIG, nullable=False),
)

# What people have said yes to in advance; what each covers is said by event ``n`` and the payload beside it.
standing = _table(
    "standing",
    Column("id", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("principal", Text),
    Column("namespace", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("spec", LargeBinary, nullable=False),
    Column("uses", _BIG, nullable=False),
    Column("until_us", _BIG, nullable=False),
    Column("given_by", Text, nullable=False),
    Column("alike", Text),
    Column("n", _BIG, nullable=False),
    Column("revoked_n", _BIG),
)
LIVE = standing.c.revoked_n.is_(None)
Index(
    "agentgate_standing_live",
    standing.c.tenant,
    standing.c.namespace,
    standing.c.tool,
    standing.c.until_us,
    standing.c.id,
    sqlite_where=LIVE,
    postgresql_where=LIVE,
)

locks = _table(
    "locks",
    Column("tenant", Text, primary_key=True),
    Column("resource", LargeBinary, primary_key=True),
    Column("run", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("fence", _BIG, nullable=False),
)
