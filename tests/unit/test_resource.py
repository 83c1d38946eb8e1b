"""Resource templates: literal text and {name}, and nothing that reaches further."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.errors import NotPossible, SpecRefused
from agentgate.tools.resource import check_template, expand, parse_template

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "account": {"type": "string"},
        "number": {"type": "integer"},
        "either": {"type": ["integer", "string"]},
        "maybe": {"type": ["string", "null"]},
        "word": {"enum": ["a", 1]},
        "flag": {"enum": ["a", True]},
        "fixed": {"const": "x"},
        "named": {"$ref": "#/$defs/name"},
        "lost": {"$ref": "#/$defs/nowhere"},
        "round": {"$ref": "#/properties/round"},
        "listed": {"$ref": "#/required/0"},
        "anchored": {"$ref": "#name"},
        "far": {"$ref": "https://example.org/schema"},
        "beside": {"type": "string", "$ref": "#/$defs/anything"},
        "amount": {"type": "number"},
        "open": {},
        "optional": {"type": "string"},
    },
    "required": [
        *("account", "number", "either", "maybe", "word", "flag", "fixed", "named", "lost", "round", "far", "beside"),
        *("listed", "anchored"),
        *("amount", "open", "undeclared"),
    ],
    "$defs": {"name": {"type": "string"}, "anything": {}},
}


def refused(template: str, schema: Any = None) -> SpecRefused:
    with pytest.raises(SpecRefused) as caught:
        check_template(parse_template(template, tool="t"), SCHEMA if schema is None else schema, tool="t")
    return caught.value


def expanded(template: str, **arguments: Any) -> str:
    parsed = parse_template(template, tool="t")
    check_template(parsed, SCHEMA, tool="t")
    return expand(parsed, arguments)


def test_a_template_is_filled_in() -> None:
    assert expanded("account:{account}", account="a1") == "account:a1"
    assert expanded("{account}/{number}/x", account="a", number=-5) == "a/-5/x"
    assert expanded("{number}", number=1e21) == "1000000000000000000000"
    assert expanded("the whole ledger") == "the whole ledger"


@pytest.mark.parametrize("name", ["account", "number", "either", "word", "fixed", "named"])
def test_texts_and_whole_numbers_name_a_resource(name: str) -> None:
    check_template(parse_template(f"x:{{{name}}}", tool="t"), SCHEMA, tool="t")


@pytest.mark.parametrize(
    "name", ["maybe", "flag", "lost", "round", "listed", "anchored", "far", "beside", "amount", "open", "undeclared"]
)
def test_an_argument_that_may_be_something_else_names_no_resource(name: str) -> None:
    assert refused(f"x:{{{name}}}").path == f"/input_schema/properties/{name}"


def test_an_optional_argument_names_no_resource() -> None:
    assert "not required" in refused("x:{optional}").problem


def test_arguments_that_need_not_be_an_object_name_no_resource() -> None:
    assert "not always an object" in refused("x:{account}", {**SCHEMA, "type": ["object", "string"]}).problem
    assert (
        "not always an object" in refused("x:{account}", {key: SCHEMA[key] for key in SCHEMA if key != "type"}).problem
    )
    assert "not always an object" in refused("x:{account}", True).problem


def test_a_root_given_by_reference_is_followed() -> None:
    schema: Any = {"$ref": "#/$defs/root", "$defs": {"root": {**SCHEMA}}}
    check_template(parse_template("x:{account}", tool="t"), schema, tool="t")


def test_what_stands_beside_a_reference_does_not_count_because_draft_07_ignores_it() -> None:
    beside = {"$ref": "#/$defs/root", **SCHEMA, "$defs": {"root": {}}}
    assert "not always an object" in refused("x:{account}", beside).problem


@pytest.mark.parametrize(
    "template",
    [
        "",
        "{}",
        "{{account}}",
        "{{",
        "}}",
        "{",
        "}",
        "a}b",
        "a{b",
        "{account",
        "account}",
        "{account.name}",
        "{account!r}",
        "{account:>10}",
        "{account[0]}",
        "{0.__class__}",
        "{ account }",
        "{account}{",
        "tab\there",
        "bidi\u202ehere",
        "zero\u200bwidth",
        "x" * 513,
    ],
)
def test_nothing_else_of_a_format_language_is_read(template: str) -> None:
    with pytest.raises(SpecRefused) as caught:
        parse_template(template, tool="t")
    assert caught.value.path == "/resource"


@pytest.mark.parametrize("template", [None, 1, b"x", ["x"]])
def test_a_template_is_text(template: object) -> None:
    with pytest.raises(SpecRefused):
        parse_template(template, tool="t")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_value_can_forge_no_separator(value: str) -> None:
    filled = expanded("a:{account}/b", account=value)
    inner = filled.removeprefix("a:").removesuffix("/b")
    assert set(inner) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%")


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_two_values_name_two_resources(one: str, other: str) -> None:
    assert (expanded("a:{account}", account=one) == expanded("a:{account}", account=other)) == (one == other)


@pytest.mark.parametrize(
    "arguments", [{}, {"account": None}, {"account": True}, {"account": 1.5}, {"account": []}, [], "a"]
)
def test_arguments_that_were_not_validated_are_refused_without_their_value(arguments: Any) -> None:
    with pytest.raises(NotPossible, match="account"):
        expand(parse_template("x:{account}", tool="t"), arguments)
