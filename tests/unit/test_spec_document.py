"""A spec document: read back exactly or refused."""

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.canonical import canonical
from agentgate.errors import SpecRefused
from agentgate.tools.recovery import Keyed, Operator, Repeat, Retry, Transactional
from agentgate.tools.spec import ToolSpec, from_document
from support.specs import FULL, made


def edited(**changes: Any) -> bytes:
    """The full document with fields changed, or taken away by `...`."""
    document = {**json.loads(ToolSpec(**FULL).document()), **changes}
    return canonical({name: value for name, value in document.items() if value is not ...})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        edited(surprise=1),
        edited(name=...),
        edited(tags=...),
        edited(retry=...),
        edited(resource=None),
        edited(output_schema=None, name=1),
        edited(recovery={"class": "keyed"}),
        edited(recovery={"class": "repeat", "window_us": 1}),
        edited(recovery={"class": "other"}),
        edited(recovery={"class": "repeat", "more": 1}),
        edited(retry={"attempts": 1, "wait_us": 1}),
        edited(retry={"attempts": 1, "wait_us": 1, "longest_wait_us": 1}),
        edited(retry={"attempts": 1, "wait_us": 1, "longest_wait_us": 1, "within_us": 0}),
        edited(retry={"attempts": 1, "wait_us": 1, "longest_wait_us": 1, "within_us": 1, "jitter_us": 1}),
        edited(confirm={"name": "a"}),
        edited(confirm=None),
        edited(timeout_us=0),
        edited(timeout_us=1.5),
        edited(timeout_us=True),
        edited(timeout_us=2**53 - 1),
        edited(parallel=0),
        edited(tags=["b", "a"]),
        edited(tags=["a", "a"]),
        edited(sensitive=["/nothing"], undeclared="deny"),
        edited(probe={"name": "a", "version": "1"}),
        b" " + edited(),
        json.dumps(json.loads(edited()), indent=1).encode(),
    ],
)
def test_what_is_not_exactly_a_spec_document_is_refused(content: bytes) -> None:
    with pytest.raises(SpecRefused):
        from_document(content)


def test_an_unknown_field_of_a_document_is_named() -> None:
    with pytest.raises(SpecRefused) as caught:
        from_document(edited(surprise=1))
    assert caught.value.path == "/surprise"


SPECS = st.fixed_dictionaries(
    {},
    optional={
        "risk": st.sampled_from(["read_only", "reversible", "external", "destructive", "credential"]),
        "recovery": st.sampled_from([Repeat(), Keyed(hours=1), Transactional(), Operator()]),
        "timeout": st.timedeltas(timedelta(microseconds=1), timedelta(days=3_660)),
        "tags": st.lists(st.text("ab/. {}-é\U0001f600", min_size=1, max_size=4).filter(lambda tag: tag == tag.strip())),
        "description": st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
        "parallel": st.booleans(),
        "output_schema": st.sampled_from([True, False, {}, {"type": "string"}, {"const": 1.5}]),
        "dedupe_window": st.timedeltas(timedelta(microseconds=1), timedelta(days=9)),
        "retry": st.builds(
            Retry,
            attempts=st.integers(1, 100),
            within=st.timedeltas(timedelta(microseconds=1), timedelta(days=3_660)),
        ),
    },
)


@given(SPECS)
def test_reading_inverts_writing(changes: dict[str, Any]) -> None:
    spec = made(**changes)
    back = from_document(spec.document())
    assert back.document() == spec.document()
    assert all(getattr(back, name) == getattr(spec, name) for name in changes)


@given(
    st.sampled_from(sorted(json.loads(made(**FULL).document()))),
    st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.just(2**53 - 1) | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=4,
    ),
)
def test_a_document_with_any_field_changed_is_refused_or_another_spec(field: str, value: Any) -> None:
    content = edited(**{field: value})
    try:
        back = from_document(content)
    except SpecRefused:
        return
    assert back.document() == content
