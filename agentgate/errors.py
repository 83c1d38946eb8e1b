"""Every error agentgate raises, drawn by what the caller should do about it.

    AgentgateError
    ├── Misuse               fix your code, your input or your command
    │   ├── NotCanonical       a value that has no canonical form
    │   ├── SpecRefused        a tool that cannot be registered
    │   ├── PolicyRefused      a policy that cannot be loaded
    │   ├── KeyringRefused     a file of people's keys that cannot be loaded
    │   ├── Ungated            a gated tool was called without its gate
    │   ├── KeyConflict        the same key with other arguments, or another principal's
    │   ├── RunConflict        the same run with another principal, goal or limits
    │   ├── NotFound           no such run, action or approval in this tenant
    │   ├── WrongSchema        the database has no ledger of this version: migrate, or upgrade the code
    │   ├── Sealed             a payload that cannot be sealed or opened without its key
    │   ├── UnsafeStore        the database cannot be trusted with a ledger where it lies or as it is set
    │   ├── VoteRefused        a vote that does not count, and why
    │   └── NotPossible        the command does not apply in the present state
    ├── Unavailable          the database or a lock: try again with the same key
    └── Damaged              the record cannot be trusted: wake a person

What the rules say (denied, held, unknown) is an outcome, never an error of this tree.
The fields are in ``args`` and the sentence in ``__str__``: errors pickle, and tests assert fields.
"""

from typing import ClassVar


class AgentgateError(Exception):
    """Root of the tree; ``code`` is the stable word used in logs, CLI output and vectors."""

    code: ClassVar[str] = "error"


class Misuse(AgentgateError):
    """The call itself is wrong; repeating it unchanged cannot help."""

    code: ClassVar[str] = "misuse"


class NotCanonical(Misuse):
    """A value or text has no canonical I-JSON form.

    Args:
        path: JSON Pointer of the offence; ``""`` is the whole value.
        reason: stable word, one of `agentgate.canonical.REASONS`.
        remedy: what to do instead, as a clause ("send it as a string").
    """

    code: ClassVar[str] = "not_canonical"

    def __init__(self, path: str, reason: str, remedy: str) -> None:
        super().__init__(path, reason, remedy)
        self.path = path
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.path or 'the value'}: {self.reason}; {self.remedy}"


class SpecRefused(Misuse):
    """A tool spec cannot be registered.

    Args:
        tool: the tool's name as given.
        path: where in the spec, as a JSON Pointer (``/input_schema/properties/x/pattern``).
        problem: what is wrong there.
        remedy: what would be accepted.
    """

    code: ClassVar[str] = "spec_refused"

    def __init__(self, tool: str, path: str, problem: str, remedy: str) -> None:
        super().__init__(tool, path, problem, remedy)
        self.tool = tool
        self.path = path
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"tool {self.tool!r} at {self.path or '/'}: {self.problem}; {self.remedy}"


class PolicyRefused(Misuse):
    """A policy cannot be loaded; ``path`` names the rule and field, ``source`` the file."""

    code: ClassVar[str] = "policy_refused"

    def __init__(self, source: str, path: str, problem: str, remedy: str) -> None:
        super().__init__(source, path, problem, remedy)
        self.source = source
        self.path = path
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.source} at {self.path or '/'}: {self.problem}; {self.remedy}"


class KeyringRefused(Misuse):
    """A file of people's public keys cannot be loaded; nothing in it is trusted.

    Args:
        source: the file.
        path: where in it, as a JSON Pointer (``/keys/2/public``).
        problem: what is wrong there.
        remedy: what would be accepted.
    """

    code: ClassVar[str] = "keyring_refused"

    def __init__(self, source: str, path: str, problem: str, remedy: str) -> None:
        super().__init__(source, path, problem, remedy)
        self.source = source
        self.path = path
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.source} at {self.path or '/'}: {self.problem}; {self.remedy}"


class Ungated(Misuse):
    """A gated tool was called directly; go through a gate, or use ``.fn`` in a unit test."""

    code: ClassVar[str] = "ungated"

    def __init__(self, tool: str) -> None:
        super().__init__(tool)
        self.tool = tool

    def __str__(self) -> str:
        return f"{self.tool!r} runs only through a gate: gate.call(run, {self.tool!r}, ...); its bare function is .fn"


class KeyConflict(Misuse):
    """The key names another intent: other arguments, or another principal's action.

    Args:
        tool: the tool's name.
        key: the key's text.
        call: which call of a batch, from 0; None where it was proposed alone.
    """

    code: ClassVar[str] = "key_conflict"

    def __init__(self, tool: str, key: str, call: int | None = None) -> None:
        super().__init__(tool, key, *(() if call is None else (call,)))
        self.tool = tool
        self.key = key
        self.call = call

    def __str__(self) -> str:
        told = f"key {self.key!r} of tool {self.tool!r} stands for another call; use a new key for a new intent"
        return told if self.call is None else f"calls[{self.call}]: {told}; nothing of this batch was recorded"


class RunConflict(Misuse):
    """A run of this tenant and name exists with another principal, goal or limits."""

    code: ClassVar[str] = "run_conflict"

    def __init__(self, name: str, field: str) -> None:
        super().__init__(name, field)
        self.name = name
        self.field = field

    def __str__(self) -> str:
        return f"run {self.name!r} exists with another {self.field}; attach with the same one, or name a new run"


class NotFound(Misuse):
    """Nothing of this kind has that name or id in this tenant."""

    code: ClassVar[str] = "not_found"

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(kind, name)
        self.kind = kind
        self.name = name

    def __str__(self) -> str:
        return f"no {self.kind} {self.name!r} here"


class VoteRefused(Misuse):
    """A vote, or a revocation, does not count; none was recorded, and none was used up.

    Args:
        approval: the approval's id.
        reason: a stable word, one of those that docs/approvals.md lists.
        remedy: what to do instead, as a clause.
    """

    code: ClassVar[str] = "vote_refused"

    def __init__(self, approval: str, reason: str, remedy: str) -> None:
        super().__init__(approval, reason, remedy)
        self.approval = approval
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return f"approval {self.approval}: {self.reason}; {self.remedy}"


class NotPossible(Misuse):
    """A command does not apply where things stand; nothing was changed."""

    code: ClassVar[str] = "not_possible"

    def __init__(self, subject: str, command: str, state: str, remedy: str) -> None:
        super().__init__(subject, command, state, remedy)
        self.subject = subject
        self.command = command
        self.state = state
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.subject} is {self.state}: cannot {self.command}; {self.remedy}"


class WrongSchema(Misuse):
    """The database's tables are missing, older or newer than this code's."""

    code: ClassVar[str] = "wrong_schema"

    def __init__(self, url: str, found: str, needed: str, remedy: str) -> None:
        super().__init__(url, found, needed, remedy)
        self.url = url
        self.found = found
        self.needed = needed
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.url}: schema {self.found}, this code needs {self.needed}; {self.remedy}"


_WHERE = "(sealing=, or --sealing-key FILE)"


class Sealed(Misuse):
    """A payload cannot be opened, or may not be stored, without a sealing key that is not there; nothing was changed.

    Args:
        what: the kind of payload.
        key: id of the key that sealed it; ``""`` where it was to be sealed now.
        known: ids of the keys that are there.
    """

    code: ClassVar[str] = "sealed"

    def __init__(self, what: str, key: str, known: tuple[str, ...]) -> None:
        super().__init__(what, key, known)
        self.what = what
        self.key = key
        self.known = known

    def __str__(self) -> str:
        there = f"only {', '.join(self.known)}" if self.known else "no key"
        if not self.key:
            without = ", or leave the note out" if self.what == "texts" else ""
            return f"the {self.what} of this action are stored sealed, and there is {there}: give one {_WHERE}{without}"
        return f"the {self.what} are sealed by key {self.key}, and there is {there}: give that key {_WHERE}"


class UnsafeStore(Misuse):
    """The database's place or settings would break what the ledger promises."""

    code: ClassVar[str] = "unsafe_store"

    def __init__(self, where: str, problem: str, remedy: str) -> None:
        super().__init__(where, problem, remedy)
        self.where = where
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}; {self.remedy}"


class Unavailable(AgentgateError):
    """The database or a lock could not be had; ``reason`` is a stable word, ``detail`` the cause."""

    code: ClassVar[str] = "unavailable"

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"


class Damaged(AgentgateError):
    """The record contradicts itself; ``what`` names the row, ``detail`` the contradiction."""

    code: ClassVar[str] = "damaged"

    def __init__(self, what: str, detail: str) -> None:
        super().__init__(what, detail)
        self.what = what
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.what}: {self.detail}; run `agentgate verify` and do not execute until it is explained"
