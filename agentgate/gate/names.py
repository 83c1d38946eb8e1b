"""Names that callers choose and the record keeps in clear for ever: what they may look like."""

import re

from agentgate.action import Key
from agentgate.errors import Misuse

LONGEST = 200
DEFAULT_TENANT = "default"

_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def check_name(value: object, field: str) -> str:
    """Return a name as given.

    Raises:
        Misuse: it is no text, empty, too long, or holds what cannot be stored or shown as it is.
    """
    if type(value) is not str or not value:
        raise Misuse(f"{field}: give a text of 1 to {LONGEST} characters")
    if len(value) > LONGEST:
        raise Misuse(f"{field}: {len(value)} characters are too long; give at most {LONGEST}")
    if _UNFIT.search(value):
        raise Misuse(f"{field}: it holds control characters or lone surrogates; use printable text")
    return value


def check_tenant(value: object) -> str:
    """Return a tenant's name; those that begin with ``$`` are the ledger's own."""
    name = check_name(value, "tenant")
    if name.startswith("$"):
        raise Misuse("tenant: names that begin with $ are reserved; use another")
    return name


def check_key(value: str | Key | None) -> Key | None:
    """Return a caller's key: a plain text is the caller's own choice."""
    if value is None:
        return None
    key = Key(source="caller", text=value) if isinstance(value, str) else value
    if type(key) is not Key or key.source == "own":
        raise Misuse("key: give a text, or a Key of source caller, adapter or outside")
    check_name(key.text, "key")
    if key.scope:
        check_name(key.scope, "key.scope")
    return key
