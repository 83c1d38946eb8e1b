"""The ledger's first tables.

Frozen: it says what the tables were, and imports nothing of agentgate. There is no way down: a record is not
taken back.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # STRICT tables know no BIGINT


def upgrade() -> None:
    """Create every table of revision 0001."""
    _ledger()
    _runs()
    _record()
    _actions()
    _attempts()
    _approvals()
    _switches_and_locks()
    _keys()
    _notices()


def _table(name: str, *parts: Any, counted: bool = False) -> None:
    op.create_table(f"agentgate_{name}", *parts, sqlite_strict=True, sqlite_autoincrement=counted)


def _text(name: str, *, null: bool = False, key: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=null, primary_key=key)


def _bytes(name: str, *, null: bool = False, key: bool = False) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary(), nullable=null, primary_key=key)


def _big(name: str, *, null: bool = False, key: bool = False) -> sa.Column[int]:
    return sa.Column(name, _BIG, nullable=null, primary_key=key, autoincrement=False)


def _flag(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), nullable=False)


def _word(name: str, listed: str, *, key: bool = False) -> sa.Column[str]:
    check = sa.CheckConstraint(f"{name} IN ({listed})")
    return sa.Column(name, sa.Text(), check, nullable=False, primary_key=key)


def _ledger() -> None:
    one: sa.Column[int] = sa.Column(
        "one", sa.Integer(), sa.CheckConstraint("one = 1"), primary_key=True, autoincrement=False
    )
    _table("ledger", one, _text("id"), _big("created_at_us"))
    _table("tenants", _text("tenant", key=True), _bytes("fingerprint_key", null=True))


def _runs() -> None:
    _table(
        "runs",
        _text("id", key=True),
        _text("tenant"),
        _text("name"),
        _text("principal"),
        _bytes("limits"),
        _big("opened_at_us"),
        _word("state", "'OPEN', 'HALTED', 'CLOSED'"),
        _text("reason", null=True),
        _big("n"),
        _bytes("head"),
        _big("at_us"),
        _big("proposed"),
        _big("refused"),
        _big("pending"),
        _big("executing"),
        _big("unknown"),
        _big("taken"),
        _big("succeeded"),
        _big("failed"),
        _big("failures"),
        _big("rejected"),
        _big("retried"),
        _big("active_us"),
        _big("tokens"),
        _big("money"),
        sa.UniqueConstraint("tenant", "name"),
    )
    _partial("agentgate_runs_halted", "agentgate_runs", ["tenant", "id"], "state = 'HALTED'")


def _record() -> None:
    _table(
        "events",
        sa.Column("run", sa.Text(), sa.ForeignKey("agentgate_runs.id"), primary_key=True),
        _big("n", key=True),
        _bytes("hash"),
        _bytes("event"),
    )
    _table(
        "payloads",
        _text("run", key=True),
        _big("n", key=True),
        _text("kind", key=True),
        _bytes("salt", null=True),
        _bytes("content"),
        _text("sealed_by", null=True),
    )
    _table("documents", _bytes("digest", key=True), _text("kind"), _bytes("content"))


def _actions() -> None:
    _table(
        "actions",
        _text("id", key=True),
        sa.Column("run", sa.Text(), sa.ForeignKey("agentgate_runs.id"), nullable=False),
        _text("tenant"),
        _text("principal"),
        _text("namespace"),
        _text("tool"),
        _text("key_source"),
        _text("key_scope"),
        _text("key_text"),
        _big("revision"),
        _bytes("spec", null=True),
        _bytes("digest"),
        _bytes("request", null=True),
        _bytes("resource", null=True),
        _big("proposed_n"),
        _big("proposed_at_us"),
        _word("state", "'READY', 'HELD', 'EXECUTING', 'SUCCEEDED', 'FAILED', 'UNKNOWN', 'REFUSED', 'ABANDONED'"),
        _text("reason", null=True),
        _big("state_n"),
        _big("last_n"),
        _big("attempts"),
        _big("unresolved"),
        _big("fence", null=True),
        _text("approval", null=True),
        _bytes("requirement", null=True),
        _big("asked"),
        _big("first_started_us", null=True),
        _big("expires_at_us", null=True),
        _big("result_n", null=True),
        _bytes("outcome", null=True),
        _text("waited"),
        sa.Column("confirmed", sa.Text(), sa.CheckConstraint("confirmed IN ('yes', 'no')")),
        _bytes("reserved", null=True),
        _big("dedupe_until_us", null=True),
        _text("edits", null=True),
        _text("edited_by", null=True),
        sa.UniqueConstraint("tenant", "namespace", "tool", "key_source", "key_scope", "key_text", "revision"),
    )
    op.create_index("agentgate_actions_of_run", "agentgate_actions", ["run", "id"])
    _partial("agentgate_actions_waiting", "agentgate_actions", ["run", "id"], "state IN ('READY', 'HELD')")
    _partial("agentgate_actions_in_doubt", "agentgate_actions", ["tenant", "resource"], "unresolved > 0")
    _partial("agentgate_actions_of_tool", "agentgate_actions", ["tenant", "namespace", "tool", "id"], "attempts > 0")
    _partial(
        "agentgate_actions_approved",
        "agentgate_actions",
        ["tenant", "namespace", "tool", "principal", "id"],
        "attempts > 0 AND requirement IS NOT NULL",
    )
    _partial("agentgate_actions_deduped", "agentgate_actions", ["tenant", "request"], "dedupe_until_us IS NOT NULL")
    _partial("agentgate_actions_rejected", "agentgate_actions", ["run", "request"], "reason = 'rejected'")
    _partial("agentgate_actions_reserving", "agentgate_actions", ["tenant"], "reserved IS NOT NULL")


def _attempts() -> None:
    _table(
        "attempts",
        sa.Column("fence", _BIG, primary_key=True, autoincrement=True),
        _text("run"),
        _text("action"),
        _big("number"),
        _word("state", "'open', 'succeeded', 'failed', 'in_doubt'"),
        _flag("unresolved"),
        _text("holder"),
        _big("started_at_us"),
        _big("lease_until_us"),
        _big("deadline_us"),
        _text("approval", null=True),
        _big("started_n"),
        _big("ended_n", null=True),
        _big("late_n", null=True),
        sa.UniqueConstraint("action", "number"),
        counted=True,
    )
    _partial("agentgate_attempts_open", "agentgate_attempts", ["fence"], "state = 'open'")


def _approvals() -> None:
    _table(
        "approvals",
        _text("id", key=True),
        _text("run"),
        _text("action"),
        _word("kind", "'approval', 'question'"),
        _big("attempt", null=True),
        _bytes("requirement"),
        _bytes("presentation"),
        _bytes("digest"),
        _word("state", "'pending', 'granted', 'used', 'rejected', 'expired', 'revoked', 'void'"),
        _big("asked_n"),
        _big("state_n"),
        _big("asked_at_us"),
        _big("expires_at_us"),
        _big("until_us", null=True),
        _bytes("demands"),
        _big("grant_us"),
    )
    op.create_index("agentgate_approvals_of_action", "agentgate_approvals", ["action"])
    _partial("agentgate_approvals_pending", "agentgate_approvals", ["expires_at_us"], "state = 'pending'")
    _partial("agentgate_approvals_granted", "agentgate_approvals", ["until_us"], "state = 'granted'")
    _table(
        "votes",
        _text("approval", key=True),
        _big("n", key=True),
        _text("run"),
        _bytes("digest"),
        _text("verdict"),
        _text("approver"),
        _bytes("key", null=True),
        _bytes("nonce"),
        _bytes("signature", null=True),
        _flag("counted"),
        _big("at_us"),
        _bytes("roles"),
    )


def _switches_and_locks() -> None:
    _table(
        "switches",
        _word("kind", "'all', 'tenant', 'tool'", key=True),
        _text("tenant", key=True),
        _text("namespace", key=True),
        _text("tool", key=True),
        _flag("paused"),
        _big("n"),
    )
    _table(
        "budgets",
        _text("tenant", key=True),
        _word("kind", "'tenant', 'tool', 'account'", key=True),
        _text("namespace", key=True),
        _text("name", key=True),
        _text("measure", key=True),
        _big("most"),
        _big("used"),
        _big("n"),
    )
    _table(
        "policies",
        _text("tenant", key=True),
        _bytes("policy"),
        _big("n"),
    )
    _table(
        "standing",
        _text("id", key=True),
        _text("tenant"),
        _text("principal", null=True),
        _text("namespace"),
        _text("tool"),
        _bytes("spec"),
        _big("uses"),
        _big("until_us"),
        _text("given_by"),
        _text("alike", null=True),
        _big("n"),
        _big("revoked_n", null=True),
    )
    of_tool = ["tenant", "namespace", "tool", "until_us", "id"]
    _partial("agentgate_standing_live", "agentgate_standing", of_tool, "revoked_n IS NULL")
    _table(
        "locks",
        _text("tenant", key=True),
        _bytes("resource", key=True),
        _text("run"),
        _text("action"),
        _big("fence"),
    )


def _notices() -> None:
    _table(
        "notices",
        _text("channel", key=True),
        _text("approval", key=True),
        _big("tries"),
        _big("again_at_us"),
        _flag("told"),
    )


def _keys() -> None:
    _table(
        "keys",
        _bytes("key", key=True),
        _bytes("public"),
        _text("name"),
        _bytes("roles"),
        _big("from_us"),
        _big("until_us", null=True),
        _bytes("signer"),
        _bytes("signature"),
        _big("n"),
    )
    _table("revoked_keys", _bytes("key", key=True), _big("since_us"), _big("n"))


def _partial(name: str, table: str, columns: list[str], where: str) -> None:
    op.create_index(name, table, columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))
