"""Names that callers choose and the record keeps in clear for ever: what they may look like."""

import re
import unicodedata
from dataclasses import replace
from typing import get_args

from agentgate.action import Key, KeySource
from agentgate.errors import Misuse
from agentgate.jcs import encodable
from agentgate.tools.names import MAX_NAME, is_unseen

LONGEST = 200
DEFAULT_TENANT = "default"

_GIVEN = frozenset(get_args(KeySource)) - {"own"}
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


def check_person(value: object, field: str) -> str:
    """Return the name of somebody who votes: those who look alike must not be two.

    Raises:
        Misuse: it is no name, has another one in Unicode's composed form, or holds what nobody sees.
    """
    name = check_name(value, field)
    if not unicodedata.is_normalized("NFC", name):
        raise Misuse(f"{field}: it is not in Unicode's composed form (NFC), and would look like another name; send NFC")
    if name != name.strip() or any(map(is_unseen, name)):
        remedy = "leave them out"
        raise Misuse(f"{field}: blanks at its ends or invisible characters, and would look like another name; {remedy}")
    return name


def check_text(value: str | None, field: str) -> str | None:
    """Return what a person wrote, of any length; None where nothing was.

    Raises:
        Misuse: it is no text that UTF-8 can encode.
    """
    if value is None:
        return None
    if type(value) is not str or not encodable(value):
        raise Misuse(f"{field}: give a text of whole Unicode characters")
    return value


def check_tenant(value: object) -> str:
    """Return a tenant's name; those that begin with ``$`` are the ledger's own."""
    name = check_name(value, "tenant")
    if name.startswith("$"):
        raise Misuse("tenant: names that begin with $ are reserved; use another")
    return name


def check_key(value: str | Key | None, *, principal: str) -> Key | None:
    """Return a caller's key: a plain text is the caller's own choice, one from outside is the principal's own.

    Raises:
        Misuse: no key that a caller may give, or another scope than docs/format.md gives its source.
    """
    if value is None:
        return None
    key = Key(source="caller", text=value) if isinstance(value, str) else value
    if type(key) is not Key or {type(key.source), type(key.scope)} != {str} or key.source not in _GIVEN:
        raise Misuse("key: give a text, or a Key of source caller, adapter or outside")
    check_name(key.text, "key")
    scope = principal if key.source == "outside" else ""
    if key.scope not in ("", scope):
        raise Misuse("key.scope: leave it out; a key from outside gets its proposal's principal, others have none")
    return replace(key, scope=scope)


def recordable(value: object, field: str) -> str:
    """Return a tool's name, which a model may have made up, as the record can hold it.

    What no tool can be called stands escaped and cut behind ``$unfit:``, so that it is refused as unknown: names
    that begin with ``$`` are agentgate's own.

    Raises:
        Misuse: it is no text.
    """
    if not issubclass(type(value), str):
        raise Misuse(f"{field}: give a text")
    name: str = str.__str__(value)  # its type was just asked, not what it says of itself
    if len(name) <= MAX_NAME and not _UNFIT.search(name):
        return name
    return f"$unfit:{name[:MAX_NAME].encode('unicode_escape').decode('ascii')}"[:MAX_NAME]
