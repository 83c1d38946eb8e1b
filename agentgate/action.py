"""The action: one proposed tool call, the key that names its intent, and the digest that binds it.

Nothing here runs or stores an action; this is what it *is*.
"""

import hashlib
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from agentgate.canonical import Json
from agentgate.digests import digest

LONGEST_KEY = 200  # as every name that callers choose
_KEPT = 130  # of a longer one, beside the 64 digits of its hash

KeySource = Literal["caller", "adapter", "outside", "own"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """The caller's name for an intent, unique per (tenant, namespace, tool).

    Args:
        source: who chose it. ``own`` is a proposal without a key: the text is then the action's id.
        scope: the principal for ``outside``, else empty.
        text: the name itself, as given; stored in clear for ever.
    """

    source: KeySource
    scope: str = ""
    text: str

    @classmethod
    def adapter(cls, framework: str, *parts: str | int | None) -> "Key":
        """Name an intent by the place of its call in a framework's run.

        Other parts give another key, the same parts the same key in every process and version: repeats are found by it.

        Args:
            framework: its name.
            parts: scope (thread, conversation), turn, call id, tool, position among calls that share all of these;
                never the arguments. Texts may hold anything and be of any length; None is not the empty text.
        """
        text = "/".join(_part(part) for part in (framework, *parts))
        if len(text) > LONGEST_KEY:
            # No part holds a "#", so a shortened text is never another's whole one.
            text = f"{text[:_KEPT]}#{hashlib.sha256(text.encode('ascii')).hexdigest()}"
        return cls(source="adapter", text=text)

    def to_json(self) -> dict[str, Json]:
        """Return the key as it stands in digests and events."""
        return {"source": self.source, "scope": self.scope, "text": self.text}


def _part(part: str | int | None) -> str:
    return "*" if part is None else quote(str(part), safe="", errors="surrogatepass")


def action_digest(
    *,
    ledger: str,
    run: str,
    tenant: str,
    principal: str,
    namespace: str,
    tool: str,
    spec: bytes | None,
    arguments: bytes | None,
    key: Key,
    revision: int,
    provenance: bytes | None,
) -> bytes:
    """Bind an action to exactly what was proposed.

    Args:
        ledger: the ledger's id.
        run: the run's id.
        tenant: the run's tenant.
        principal: on whose behalf, as proposed.
        namespace: the tool's server, ``""`` when none.
        tool: the tool's name as proposed.
        spec: digest of the spec document; None when the tool is unknown.
        arguments: payload digest of the completed arguments; None when there are none to complete.
        key: the key it is a revision of.
        revision: from 1.
        provenance: payload digest of the provenance, where given.

    Returns:
        32 bytes, ``digest("action", …)`` (docs/format.md, Authority).
    """
    bound: dict[str, Json] = {
        "ledger": ledger,
        "run": run,
        "tenant": tenant,
        "principal": principal,
        "namespace": namespace,
        "tool": tool,
        "key": key.to_json(),
        "revision": revision,
    }
    for name, value in (("spec", spec), ("arguments", arguments), ("provenance", provenance)):
        if value is not None:
            bound[name] = value.hex()
    return digest("action", bound)
