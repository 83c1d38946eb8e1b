"""A policy is known by what it is made of: the digest of formats.md, never a version somebody typed."""

import functools
import hashlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agentgate.bodies import BODIES
from agentgate.canonical import canonical
from agentgate.errors import PolicyRefused
from agentgate.policy.decision import Decision, allow
from agentgate.policy.identity import PolicyIdentity, of_function, stated


def imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("some_policy", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def identity(**changes: Any) -> PolicyIdentity:
    fields: dict[str, Any] = {
        "kind": "closed",
        "engine": "e",
        "engine_version": "1",
        "documents": (("b", b"2"), ("a", b"1")),
    }
    return PolicyIdentity(**fields | changes)


def plain(_request: object) -> Decision:
    return allow()


def document(content: bytes) -> str:
    return hashlib.sha256(b"agentgate/document/v1\0policy\0" + content).hexdigest()


def test_the_identity_is_the_digest_of_the_format() -> None:
    bound = {
        "kind": "closed",
        "engine": "e",
        "engine_version": "1",
        "documents": [{"name": "a", "document": document(b"1")}, {"name": "b", "document": document(b"2")}],
    }
    assert identity().digest == hashlib.sha256(b"agentgate/policy/v1\0" + canonical(bound)).digest()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "open"},
        {"engine": "f"},
        {"engine_version": "2"},
        {"documents": (("a", b"1"),)},
        {"documents": (("a", b"1"), ("b", b"3"))},
        {"documents": (("a", b"1"), ("c", b"2"))},
    ],
)
def test_another_part_is_another_policy(change: dict[str, Any]) -> None:
    assert identity(**change).digest != identity().digest


def test_the_order_of_documents_is_not_part_of_a_policy() -> None:
    assert identity() == identity(documents=(("a", b"1"), ("b", b"2")))


def test_a_document_that_stands_twice_is_refused() -> None:
    with pytest.raises(PolicyRefused):
        identity(documents=(("a", b"1"), ("a", b"2")))


def test_an_event_can_say_what_the_policy_was_made_of() -> None:
    assert BODIES["started"]["engine?"](identity().to_json(), "") is None


def test_a_functions_policy_is_its_file_and_its_name() -> None:
    known = of_function(plain)

    assert (known.kind, known.engine) == ("open", "python")
    assert known.documents == ((f"{Path(__file__).name}:plain", Path(__file__).read_bytes()),)


def test_one_changed_byte_in_the_file_is_another_policy(tmp_path: Path) -> None:
    digests = set()
    for text in ("def decide(request): return 1\n", "def decide(request): return 2\n"):
        path = tmp_path / "policy.py"
        path.write_text(text)
        digests.add(of_function(imported(path).decide).digest)
    assert len(digests) == 2


def test_two_functions_of_one_file_are_two_policies() -> None:
    assert of_function(plain).digest != of_function(document).digest


def test_a_stated_identity_is_the_authors_word() -> None:
    assert stated("refunds-7").digest == stated("refunds-7").digest
    assert stated("refunds-7").digest != stated("refunds-8").digest
    assert stated("refunds-7").kind == "open"
    with pytest.raises(PolicyRefused):
        stated("")


def closing_over(limit: int) -> Callable[[object], int]:
    return lambda _request: limit


def made_with_default(limit: int) -> Callable[[object], int]:
    def decide(_request: object, limit: int = limit) -> int:
        return limit

    return decide


def wrapped() -> Callable[[object], Decision]:
    @functools.wraps(plain)
    def decide(request: object) -> Decision:
        return plain(request)

    return decide


class Callee:
    def __call__(self, _request: object) -> Decision:
        return allow()

    def decide(self, _request: object) -> Decision:
        return allow()


NOT_DETERMINED_BY_A_FILE: dict[str, Callable[..., Any]] = {
    "a lambda": lambda _request: allow(),
    "a closure": closing_over(5),
    "a local with defaults": made_with_default(5),
    "a partial": functools.partial(plain),
    "a callable object": Callee(),
    "a bound method": Callee().decide,
    "a builtin": len,
}


@pytest.mark.parametrize("name", NOT_DETERMINED_BY_A_FILE)
def test_a_function_that_its_file_does_not_determine_needs_a_stated_identity(name: str) -> None:
    with pytest.raises(PolicyRefused) as caught:
        of_function(NOT_DETERMINED_BY_A_FILE[name])
    assert caught.value.path == "/identity"
    assert "identity=" in caught.value.remedy


def test_a_function_without_a_readable_file_needs_a_stated_identity() -> None:
    names: dict[str, Any] = {}
    exec(compile("def decide(request): return None", "<string>", "exec"), names)
    with pytest.raises(PolicyRefused):
        of_function(names["decide"])


# An event records these parts; what its readers refuse must never be chained.
@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"kind": "weird"}, "/kind"),
        ({"engine": ""}, "/engine"),
        ({"engine": "x" * 201}, "/engine"),
        ({"engine": "a\nb"}, "/engine"),
        ({"engine": None}, "/engine"),
        ({"engine_version": ""}, "/engine_version"),
        ({"engine_version": 1}, "/engine_version"),
        ({"documents": (("\ud800", b""),)}, "/documents/0/name"),
        ({"documents": ((7, b""),)}, "/documents"),
        ({"documents": tuple((f"{n}", b"") for n in range(3_000))}, "/documents"),
        ({"documents": (("x" * 300_000, b""),)}, "/documents"),
    ],
)
def test_a_part_that_no_event_can_record_is_refused(change: dict[str, Any], path: str) -> None:
    with pytest.raises(PolicyRefused) as caught:
        identity(**change)
    assert caught.value.path == path


def test_the_largest_parts_allowed_can_be_recorded() -> None:
    largest = identity(engine="x" * 200, engine_version="é" * 200, documents=(("", b""), ("\x00" * 30_000, b"")))
    assert BODIES["policy_activated"]["engine"](largest.to_json(), "/engine") is None


def test_a_stated_identity_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(PolicyRefused, match="surrogate"):
        stated("\ud800")
