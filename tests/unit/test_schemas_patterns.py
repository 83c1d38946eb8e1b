"""Patterns: ECMA-262's meaning, RE2's time, and refusal of what has no linear form."""

import pytest

from agentgate.errors import SpecRefused
from agentgate.tools.patterns import Uncompilable, compile_pattern
from agentgate.tools.schemas import admit
from agentgate.tools.spending import allowance
from agentgate.tools.validation import check

SEVEN = "http://json-schema.org/draft-07/schema#"


def found(pattern: str, text: str) -> bool:
    with allowance():
        return compile_pattern(pattern).found_in(text)


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("a", "xax", "x"),
        ("^a$", "a", "a\n"),
        (r"^\d$", "7", "٧"),
        (r"^\D$", "٧", "7"),
        (r"^\w+$", "aZ_9", "é"),
        (r"^\W$", "é", "a"),
        (r"^\s$", "\ufeff", "x"),
        (r"^\s$", "\u2003", "\x1f"),
        (r"^[\s,]$", "\xa0", "x"),
        (r"^\S$", "x", "\v"),
        (r"^[\S]$", "x", "\u2028"),
        (r"^[^\s]$", "\x1f", "\u3000"),
        (r"^[^\S]$", "\u202f", "x"),
        ("^.$", "😀", "\r"),
        ("^.$", "\x85", "\u2029"),
        (r"^\cJ$", "\n", "J"),
        (r"^[\b]$", "\b", "b"),
        (r"\bab\b", "x ab y", "xaby"),
        (r"^\0$", "\x00", "0"),
        (r"^\x41\u0042\u{43}$", "ABC", "x"),
        (r"^\u{1F600}$", "😀", "x"),
        (r"^\uD83D\uDE00$", "😀", "x"),
        ("^[^]$", "\n", ""),
        ("^a[]?$", "a", "ab"),
        ("^[[:alpha:]]$", ":]", "b"),
        ("^[[]$", "[", "x"),
        (r"^[\]a]$", "]", "["),
        (r"^\_\-\/\.$", "_-/.", "x"),
        ("^a{,2}$", "a{,2}", "aa"),
        ("^(?:ab){2}$", "abab", "ab"),
        ("^(?<year>[0-9]{4})$", "2024", "x"),
        ("(?i)^abc$", "ABC", "x"),
        ("(?s)^a.b$", "a\nb", "a"),
        (r"^\p{L}+$", "Ünïcödé", "1"),
        (r"^\p{Greek}$", "λ", "l"),
        (r"^[\w.-]+@[\w-]+\.\w+$", "a.b-c@d-e.org", "a@b"),
        ("^é$", "é", "e"),
    ],
)
def test_a_pattern_means_what_ecma_262_says(pattern: str, matching: str, other: str) -> None:
    assert found(pattern, matching)
    assert not found(pattern, other)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?=a)", "invalid"),
        ("(?!a)", "invalid"),
        ("(?<=a)b", "invalid"),
        ("(?<!a)b", "invalid"),
        (r"(a)\1", "backreference"),
        (r"(?<n>a)\k<n>", "backreference"),
        ("(?>a)", "invalid"),
        ("a++", "bad repetition"),
        (r"\Aa\Z", "anchor"),
        (r"a\z", "anchor"),
        (r"\a", "ECMA-262"),
        (r"\Qa\E", "ECMA-262"),
        (r"\pN", "ECMA-262"),
        (r"\p{Letter}", "invalid character class"),
        (r"\u12", "ECMA-262"),
        (r"\uD83D", "Unicode"),
        (r"\u{110000}", "Unicode"),
        ("a\\", "middle of an escape"),
        ("(a", "missing"),
        ("[a", "missing"),
        ("a{1001}", "repetition"),
        ("((a{1,100}){1,10}){1,10}", "repetition"),
        (r"\p{L}{1,900}", "too large"),
    ],
)
def test_a_pattern_without_a_linear_form_is_refused_with_the_reason(pattern: str, why: str) -> None:
    with pytest.raises(Uncompilable) as caught:
        compile_pattern(pattern)
    assert why in caught.value.problem


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"pattern": "(?=a)"}, "/pattern"),
        ({"patternProperties": {"a(?=b)": {}}}, "/patternProperties/a(?=b)"),
        ({"propertyNames": {"pattern": "(?=a)"}}, "/propertyNames/pattern"),
        ({"unevaluatedProperties": {"pattern": "(?=a)"}}, "/unevaluatedProperties/pattern"),
        ({"$schema": SEVEN, "definitions": {"a": {"pattern": "(?=a)"}}}, "/definitions/a/pattern"),
    ],
)
def test_a_pattern_is_refused_where_it_stands(schema: dict[str, object], where: str) -> None:
    with pytest.raises(SpecRefused) as caught:
        admit(schema, tool="t")  # type: ignore[arg-type]
    assert caught.value.path == f"/input_schema{where}"
    assert "lookaround" in caught.value.remedy


@pytest.mark.parametrize("dialect", ["https://json-schema.org/draft/2020-12/schema", SEVEN])
def test_each_keyword_that_matches_names_matches_alike(dialect: str) -> None:
    strict = admit(
        {"$schema": dialect, "patternProperties": {r"^\d$": {"type": "string"}}, "additionalProperties": False},
        tool="t",
    )
    assert not check(strict, {"7": "x"})
    assert [violation.path for violation in check(strict, {"7": 1})] == ["/7"]
    assert [violation.keyword for violation in check(strict, {"٧": "x"})] == ["additionalProperties"]
    assert [violation.keyword for violation in check(strict, {"7\n": "x"})] == ["additionalProperties"]
    named = admit({"$schema": dialect, "propertyNames": {"pattern": "^a$"}}, tool="t")
    assert not check(named, {"a": 1})
    assert [violation.path for violation in check(named, {"a\n": 1})] == ["/a\n"]


def test_unevaluated_properties_match_alike() -> None:
    schema = admit({"allOf": [{"patternProperties": {r"^\d$": {}}}], "unevaluatedProperties": False}, tool="t")
    assert not check(schema, {"7": 1})
    assert [violation.path for violation in check(schema, {"٧": 1})] == ["/٧"]


def test_many_patterns_are_refused_and_one_used_often_is_one() -> None:
    admit({"properties": {f"p{n}": {"pattern": "^[a-z]+$"} for n in range(1_000)}}, tool="t")
    with pytest.raises(SpecRefused):
        admit({"properties": {f"p{n}": {"pattern": f"^a{n}$"} for n in range(100)}}, tool="t")


def test_large_patterns_add_up() -> None:
    with pytest.raises(SpecRefused):
        admit({"allOf": [{"pattern": rf"^\p{{L}}{{1,{n}}}$"} for n in range(90, 100)]}, tool="t")


def test_a_pattern_s_cost_grows_with_the_text() -> None:
    schema = admit({"pattern": "a[abc]{900}d"}, tool="t")
    assert [violation.keyword for violation in check(schema, "ab" * 100)] == ["pattern"]
    assert [violation.keyword for violation in check(schema, "ab" * 100_000)] == ["$cost"]
