"""Generated JSON: values and texts for property tests, and a comparison that tells 1 from 1.0."""

import json
from typing import Any

from hypothesis import strategies as st

from agentgate.canonical import Json, canonical
from agentgate.jcs import LARGEST_INTEGER

# Characters where code point and UTF-16 order part ways, where encoders differ, and those people type.
AWKWARD = st.sampled_from(list('\0\x1f\x7f\x80"\\/\b\u2028\ud7ff\ue000\uffff\U00010000\U0001f600éa1~'))
TEXTS = st.text(st.one_of(AWKWARD, st.characters(exclude_categories=["Cs"])), max_size=8)
FLOATS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([1e-4, 9.999e-5, 1e-6, 1e-7, 1e16, 1e20, 1e21, 5e-324, 1.7e308, 123456789.125, -0.0, 0.5, 1e15]),
)
INTEGERS = st.one_of(
    st.integers(-9, 9),
    st.integers(-LARGEST_INTEGER, LARGEST_INTEGER),
    st.just(LARGEST_INTEGER),
    st.just(-LARGEST_INTEGER),
)
LEAVES = st.one_of(st.none(), st.booleans(), INTEGERS, FLOATS, TEXTS)


def documents() -> st.SearchStrategy[Json]:
    """JSON values with every awkward key, string and number; floats of any finite size."""
    return st.recursive(
        LEAVES, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5), max_leaves=20
    )


def near_texts() -> st.SearchStrategy[str]:
    """JSON texts, a few characters of which may have been cut, doubled or replaced."""
    values: st.SearchStrategy[Any] = documents() | st.floats() | st.integers()
    whole = st.builds(lambda value, ascii_: json.dumps(value, ensure_ascii=ascii_), values, st.booleans())
    noise = st.text(st.sampled_from('[]{}",:\\u-+.eE0123456789dDnfN \ufeff\0\ud800'), max_size=4)
    return st.one_of(whole, st.builds(_spoilt, whole, st.integers(0, 200), st.integers(0, 6), noise), noise)


def identical(left: object, right: object) -> bool:
    """Compare values of exact JSON types, where 1, 1.0 and True are three."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(identical(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(identical, left, right))
    return left == right


def _spoilt(text: str, at: int, length: int, noise: str) -> str:
    at = at % (len(text) + 1)
    return text[:at] + noise + text[at + length :]


def written(value: object) -> bytes:
    """Canonical bytes of a value whose type the caller of a test knows better than mypy."""
    known: Any = value
    return canonical(known)
