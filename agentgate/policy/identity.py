"""Which policy it was: a digest over what the policy is made of, never a version somebody typed.

A *closed* policy is its documents, run by an engine that reads nothing else. An *open* one is Python: its
module's file is all that a digest can cover, so its identity vouches for less, and is recorded as such.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType
from typing import Literal, get_args

from agentgate.canonical import Json, canonical
from agentgate.digests import digest, document_digest
from agentgate.errors import NotCanonical, PolicyRefused

Kind = Literal["open", "closed"]

PYTHON = "python"
MAX_NAME = 200
MAX_BYTES = 262_144  # every decision's event repeats the documents' names and digests

# The engine's version is that of how *we* ask a Python function, not the interpreter's: a patched interpreter
# is no other policy, and would otherwise put every approved action back to its approvers.
PYTHON_VERSION = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyIdentity:
    """What a policy is made of.

    Args:
        kind: ``closed`` when engine and documents are all there is to it, else ``open``.
        engine: what runs it; 1 to 200 printable characters, in clear for ever.
        engine_version: of that engine; another version is another policy.
        documents: (name, content) pairs, each name once; kept sorted by name.

    Raises:
        PolicyRefused: a document's name stands twice, or a part is not what an event can record.
    """

    kind: Kind
    engine: str
    engine_version: str
    documents: tuple[tuple[str, bytes], ...] = field(repr=False)
    digest: bytes = field(init=False)

    def __post_init__(self) -> None:
        documents = tuple(sorted((name, bytes(content)) for name, content in self.documents))
        names = [name for name, _ in documents]
        if len(set(names)) < len(names):
            raise PolicyRefused(self.engine, "/documents", "a name stands twice", "give each document its own name")
        object.__setattr__(self, "documents", documents)
        self._check()
        object.__setattr__(self, "digest", digest("policy", self._bound()))

    def _check(self) -> None:
        """Refuse what the readers of an event would refuse once it is chained."""
        if self.kind not in get_args(Kind):
            raise PolicyRefused(str(self.engine), "/kind", "an unknown word", "use open or closed")
        for field_, value in (("engine", self.engine), ("engine_version", self.engine_version)):
            if type(value) is not str or not 0 < len(value) <= MAX_NAME or not value.isprintable():
                remedy = f"give 1 to {MAX_NAME} printable characters"
                raise PolicyRefused("identity", f"/{field_}", "no name", remedy)
        if any(type(name) is not str for name, _ in self.documents):
            raise PolicyRefused(self.engine, "/documents", "a name that is no text", "name each document by a text")
        try:
            size = len(canonical(self._documents()))
        except NotCanonical as error:
            raise PolicyRefused(self.engine, f"/documents{error.path}", error.reason, error.remedy) from error
        if size > MAX_BYTES:
            raise PolicyRefused(self.engine, "/documents", f"{size} bytes of names and digests", "join some of them")

    def to_json(self) -> dict[str, Json]:
        """Return what an event's ``engine`` says: the parts of the identity, its documents by digest."""
        return {
            "kind": self.kind,
            "name": self.engine,
            "version": self.engine_version,
            "documents": self._documents(),
        }

    def _bound(self) -> dict[str, Json]:
        return {
            "kind": self.kind,
            "engine": self.engine,
            "engine_version": self.engine_version,
            "documents": self._documents(),
        }

    def _documents(self) -> list[Json]:
        return [
            {"name": name, "document": document_digest("policy", content).hex()} for name, content in self.documents
        ]


def stated(identity: str) -> PolicyIdentity:
    """Take an author's word for which policy a Python function is.

    Args:
        identity: any text that changes whenever the policy's answers may; the author answers for that.

    Raises:
        PolicyRefused: it is empty, or no Unicode.
    """
    try:
        content = identity.encode()
    except UnicodeEncodeError as error:
        raise PolicyRefused(PYTHON, "/identity", "a lone surrogate", "give text that UTF-8 can encode") from error
    if not content:
        raise PolicyRefused(PYTHON, "/identity", "empty", "give a text that changes whenever the policy does")
    return _python(("stated", content))


def of_function(function: Callable[..., object]) -> PolicyIdentity:
    """Identify a Python function by its name and the bytes of its file.

    What it imports, and what its globals hold later, is not covered. A function that the file alone does not
    determine is refused: two of them would share an identity and answer differently.

    Raises:
        PolicyRefused: it is no plain function of a file, is a lambda, closes over values, or is made inside
            another function with default arguments.
    """
    if not isinstance(function, FunctionType):
        raise _unidentified(type(function).__name__, "only a plain function is identified by its file")
    name = function.__qualname__
    if "<lambda>" in name:
        raise _unidentified(name, "a lambda has no name of its own")
    if function.__closure__:
        raise _unidentified(name, "it closes over values that its file does not show")
    if "<locals>" in name and (function.__defaults__ or function.__kwdefaults__):
        raise _unidentified(name, "it is made with default arguments that its file does not show")
    path = Path(function.__code__.co_filename)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _unidentified(name, "its file cannot be read") from error
    return _python((f"{path.name}:{name}", content))


def _python(document: tuple[str, bytes]) -> PolicyIdentity:
    return PolicyIdentity(kind="open", engine=PYTHON, engine_version=PYTHON_VERSION, documents=(document,))


def _unidentified(name: str, problem: str) -> PolicyRefused:
    return PolicyRefused(PYTHON, "/identity", f"{name}: {problem}", "state identity='…', changed with the policy")
