"""Hints that pydantic owns: its models by its own schema and validation, its Field as a description and bounds."""

import subprocess
import sys
from datetime import date
from typing import Annotated, Any

import pytest

from agentgate.errors import SpecRefused
from agentgate.observation import NoEffect
from agentgate.tools.decorator import tool
from agentgate.tools.hints import read_hints

pydantic = pytest.importorskip("pydantic")
from pydantic import BaseModel, Field, field_validator  # noqa: E402


class Line(BaseModel):
    sku: str
    count: int = Field(default=1, ge=1)


class Order(BaseModel):
    placed: date
    lines: list[Line]
    note: str | None = Field(default=None, alias="orderNote")

    @field_validator("note")
    @classmethod
    def never_secret(cls, note: str | None) -> str | None:
        if note and "secret" in note:
            raise ValueError(f"no {note}")
        return note


class Unschemable(BaseModel):
    model_config = {"arbitrary_types_allowed": True}
    a: type[object] | None
    b: object
    c: "Plain"


class Plain:
    pass


Unschemable.model_rebuild()


def place(order: Order, extra: list[Line] | None = None) -> None:
    """Place an order."""


def test_a_models_schema_is_pydantics_and_its_definitions_move_to_the_root() -> None:
    schema: Any = read_hints(place, tool="t").schema
    assert set(schema["$defs"]) == {"Line"}
    assert schema["properties"]["order"]["properties"]["lines"]["items"] == {"$ref": "#/$defs/Line"}
    assert "orderNote" in schema["properties"]["order"]["properties"]
    assert "$defs" not in schema["properties"]["order"]
    assert schema["required"] == ["order"]


def test_a_model_is_built_by_its_own_validation() -> None:
    given: Any = {
        "order": {"placed": "2026-01-31", "lines": [{"sku": "a"}], "orderNote": "x"},
        "extra": [{"sku": "b", "count": 2}],
    }
    _, named = tool(place).bind(given, None)
    assert named == {
        "order": Order(placed=date(2026, 1, 31), lines=[Line(sku="a")], orderNote="x"),
        "extra": [Line(sku="b", count=2)],
    }
    assert isinstance(named["order"], Order)


def test_what_a_model_refuses_is_a_clean_refusal_with_the_place_and_without_the_value() -> None:
    with pytest.raises(NoEffect) as caught:
        tool(place).bind({"order": {"placed": "2026-01-31", "lines": [], "orderNote": "secret 5"}}, None)
    assert caught.value.details == {"path": "/order/orderNote", "expected": "what the model accepts (value_error)"}
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


class Raising(BaseModel):
    a: int

    @field_validator("a")
    @classmethod
    def broken(cls, a: int) -> int:
        raise RuntimeError(f"secret {a}")


def test_a_validator_that_breaks_is_a_clean_refusal_too() -> None:
    def function(model: Raising) -> None: ...

    with pytest.raises(NoEffect) as caught:
        tool(function).bind({"model": {"a": 7}}, None)
    assert caught.value.details == {"path": "/model", "expected": "what the model accepts"}
    assert "secret" not in str(caught.value)


def test_two_models_of_one_name_are_refused() -> None:
    def outer(version: int) -> Any:
        inner: Any = pydantic.create_model("Inner", **{f"field{version}": (str, ...)})
        return pydantic.create_model(f"Outer{version}", inner=(list[inner], ...))

    one, other = outer(1), outer(2)

    def function(a: Any, b: Any) -> None: ...

    function.__annotations__ = {"a": one, "b": other}
    with pytest.raises(SpecRefused, match="Inner"):
        read_hints(function, tool="t")


def test_a_model_without_a_schema_is_refused_by_its_parameter() -> None:
    def function(a: Unschemable) -> None: ...

    with pytest.raises(SpecRefused) as caught:
        read_hints(function, tool="t")
    assert caught.value.path == "/input_schema/properties/a"


def test_a_field_beside_a_type_gives_a_description_and_bounds() -> None:
    def function(
        cents: Annotated[int, Field(gt=0, le=100, description="how much")],
        code: Annotated[str, Field(pattern="^[a-z]+$", min_length=2)],
    ) -> None: ...

    schema: Any = read_hints(function, tool="t").schema
    assert schema["properties"]["cents"] == {
        "type": "integer",
        "exclusiveMinimum": 0,
        "maximum": 100,
        "description": "how much",
    }
    assert schema["properties"]["code"] == {"type": "string", "pattern": "^[a-z]+$", "minLength": 2}


@pytest.mark.parametrize("field", [Field(default=3), Field(alias="x"), Field(strict=True), Field(default_factory=int)])
def test_a_field_that_says_more_is_refused(field: Any) -> None:
    def function(a: Any) -> None: ...

    function.__annotations__ = {"a": Annotated[int, field]}
    with pytest.raises(SpecRefused):
        read_hints(function, tool="t")


def test_reading_hints_without_pydantic_loads_no_pydantic() -> None:
    program = (
        "import sys\nfrom agentgate.tools.decorator import tool\n"
        "@tool\ndef f(a: int, b: list[str] | None = None): ...\n"
        "assert not {'pydantic', 'annotated_types'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
