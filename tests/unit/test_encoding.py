"""Python values with a JSON form, and those without."""

import dataclasses
import decimal
import enum
import subprocess
import sys
import uuid
import warnings
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn, Self
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, RootModel, SecretStr, field_serializer

from agentgate.canonical import REASONS, canonical, parse, snapshot
from agentgate.encoding import Offence, describe, plain, type_name
from agentgate.errors import NotCanonical
from support.documents import identical

NEW_YORK = ZoneInfo("America/New_York")
AN_ID = uuid.UUID("01890A5D-AC96-774B-BCCE-B302099A8057")


class Color(enum.Enum):
    RED = "red"
    PAIR = (1, 2)


class Level(enum.IntEnum):
    HIGH = 3


class Word(enum.StrEnum):
    YES = "yes"


class Shouting(str, enum.Enum):  # noqa: UP042 - the form that older code uses
    QUIET = "quiet"

    def __str__(self) -> str:
        return "LOUD"

    @property
    def value(self) -> str:
        return "LOUD"


@dataclasses.dataclass
class Address:
    street: str
    since: date


@dataclasses.dataclass(frozen=True, slots=True)
class Person:
    name: str
    address: Address
    tags: tuple[str, ...] = ()
    hidden: dataclasses.InitVar[int] = 0


class Item(BaseModel):
    sku: str
    price: Decimal
    at: datetime
    unit: str = Field(default="kg", alias="measuringUnit")


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (datetime(2024, 2, 29, 13, 5, 6, 7, UTC), "2024-02-29T13:05:06.000007Z"),
        (datetime(2024, 2, 29, 1, 0, tzinfo=timezone(timedelta(hours=2))), "2024-02-28T23:00:00.000000Z"),
        (datetime(2024, 11, 3, 1, 30, tzinfo=NEW_YORK), "2024-11-03T05:30:00.000000Z"),
        (datetime(2024, 11, 3, 1, 30, tzinfo=NEW_YORK, fold=1), "2024-11-03T06:30:00.000000Z"),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00.000000Z"),
        (date(2024, 2, 29), "2024-02-29"),
        (AN_ID, "01890a5d-ac96-774b-bcce-b302099a8057"),
        (Decimal("1.50"), "1.50"),
        (Decimal("-0"), "-0"),
        (Decimal("1e3"), "1E+3"),
        (Decimal("123456789012345678901234567890.1"), "123456789012345678901234567890.1"),
        (b"\x00\xff~", "AP9+"),
        (b"", ""),
        (Color.RED, "red"),
        (Color.PAIR, [1, 2]),
        (Level.HIGH, 3),
        (Word.YES, "yes"),
        (Shouting.QUIET, "quiet"),
        (Address("Main St", date(2020, 1, 2)), {"street": "Main St", "since": "2020-01-02"}),
        (
            Person("Ann", Address("x", date(2020, 1, 2)), ("a",)),
            {"name": "Ann", "address": {"street": "x", "since": "2020-01-02"}, "tags": ["a"]},
        ),
        (
            Item(sku="s", price=Decimal("9.90"), at=datetime(2024, 1, 1, tzinfo=UTC), measuringUnit="g"),
            {"sku": "s", "price": "9.90", "at": "2024-01-01T00:00:00Z", "measuringUnit": "g"},
        ),
        (RootModel[list[int]]([1, 2]), [1, 2]),
    ],
)
def test_a_value_of_a_known_type_has_one_json_form(value: object, encoded: object) -> None:
    assert identical(snapshot(value), encoded)
    assert identical(snapshot({"x": [value]}), {"x": [encoded]})


def refused(value: object) -> NotCanonical:
    with pytest.raises(NotCanonical) as caught:
        snapshot({"x": value})
    assert caught.value.path == "/x"
    assert caught.value.reason in REASONS
    return caught.value


def test_a_naive_datetime_is_refused() -> None:
    error = refused(datetime(2024, 1, 1))  # noqa: DTZ001
    assert (error.reason, error.remedy) == ("naive_datetime", "give it a time zone")


def zone(offset: Callable[[object, object], timedelta | None]) -> tzinfo:
    made: tzinfo = type("Zone", (tzinfo,), {"utcoffset": offset})()
    return made


def nowhere(*_: object) -> None:
    return None


def broken(*_: object) -> NoReturn:
    raise RuntimeError("hunter2")


def interrupted(*_: object) -> NoReturn:
    raise KeyboardInterrupt


class BrokenModel(BaseModel):
    x: int = 1

    @field_serializer("x")
    def fail(self, _: int) -> int:
        raise RuntimeError("hunter2")


@dataclasses.dataclass
class Unset:
    x: int

    def __init__(self) -> None:
        pass


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (datetime(2024, 1, 1, tzinfo=zone(nowhere)), "naive_datetime"),
        (datetime(2024, 1, 1, tzinfo=zone(broken)), "not_encodable"),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))), "not_encodable"),
        (Decimal("NaN"), "not_finite"),
        (Decimal("sNaN"), "not_finite"),
        (Decimal("-Infinity"), "not_finite"),
        (BrokenModel(), "not_encodable"),
        (Unset(), "not_encodable"),
        (uuid.UUID.__new__(uuid.UUID), "not_encodable"),
        (time(1, 2), "type"),
        (timedelta(1), "type"),
        (PurePosixPath("/etc"), "type"),
        (ValueError("hunter2"), "type"),
        (Person, "type"),
        (object(), "type"),
    ],
)
def test_a_value_without_a_json_form_is_refused_and_never_quoted(value: object, reason: str) -> None:
    error = refused(value)
    assert error.reason == reason
    assert "hunter2" not in str(error)
    assert error.__suppress_context__


def test_a_decimal_is_the_same_in_every_decimal_context() -> None:
    with decimal.localcontext() as context:
        context.capitals = 0
        context.prec = 2
        assert snapshot(Decimal("1.2345e40")) == "1.2345E+40"


def test_a_datetime_of_a_subclass_is_converted_without_calling_it() -> None:
    class Stamp(datetime):
        def __new__(cls, *arguments: Any, **named: Any) -> Self:
            made = super().__new__(cls, *arguments, **named)
            assert not named.get("made")
            return made

        def isoformat(self, *_: object, **__: object) -> str:
            return "never"

        utcoffset = astimezone = replace = __sub__ = isoformat  # type: ignore[assignment]

    assert snapshot(Stamp(2024, 1, 1, tzinfo=UTC)) == "2024-01-01T00:00:00.000000Z"


def test_a_model_is_dumped_without_warnings_because_they_quote_values() -> None:
    odd = Item.model_construct(sku=b"hunter2", price=Decimal(1), at=datetime(2024, 1, 1, tzinfo=UTC))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert snapshot(odd) == {"sku": "hunter2", "price": "1", "at": "2024-01-01T00:00:00Z", "measuringUnit": "kg"}


def test_a_models_secret_stays_masked() -> None:
    class Login(BaseModel):
        password: SecretStr

    assert snapshot(Login(password=SecretStr("hunter2"))) == {"password": "**********"}


def test_what_a_model_dumps_is_held_to_the_same_rules() -> None:
    class Reading(BaseModel):
        value: float

    with pytest.raises(NotCanonical) as caught:
        snapshot([Reading(value=float("nan"))])
    assert (caught.value.path, caught.value.reason) == ("/0/value", "not_finite")


def test_a_model_given_a_new_model_dump_is_dumped_by_pydantics_own() -> None:
    class Liar(BaseModel):
        x: int = 1

        def model_dump(self, **_: object) -> dict[str, Any]:
            return {"x": 2}

    assert snapshot(Liar()) == {"x": 1}


def test_a_dataclass_that_holds_itself_is_refused() -> None:
    @dataclasses.dataclass
    class Node:
        next: Any = None

    node = Node()
    node.next = [node]
    with pytest.raises(NotCanonical) as caught:
        snapshot(node)
    assert (caught.value.path, caught.value.reason) == ("/next/0", "cycle")


def test_an_enum_that_is_its_own_value_is_refused() -> None:
    class Selfish(enum.Enum):
        A = 1

    object.__setattr__(Selfish.A, "_value_", Selfish.A)
    assert refused(Selfish.A).reason == "cycle"


def test_keyboard_interrupt_in_a_callers_code_passes() -> None:
    with pytest.raises(KeyboardInterrupt):
        snapshot(datetime(2024, 1, 1, tzinfo=zone(interrupted)))


def test_pydantic_is_not_imported_to_look_for_its_models() -> None:
    code = "import sys, agentgate.canonical as c\ntry: c.snapshot([object()])\nexcept Exception as e: print(e.reason)\n"
    code += "print('pydantic' in sys.modules)"
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert done.stdout.split() == ["type", "False"]


def test_describe_names_the_type_and_nothing_else() -> None:
    assert describe(ValueError("hunter2")) == {"$unencodable": "builtins.ValueError"}
    assert type_name(Address("x", date(2024, 1, 1))) == f"{__name__}.Address"


def test_plain_takes_one_step() -> None:
    inner = Address("x", date(2024, 1, 1))
    assert plain(Person("Ann", inner)) == {"name": "Ann", "address": inner, "tags": ()}
    with pytest.raises(Offence) as caught:
        plain(object())
    assert caught.value.parts == []


# Law (cases.md): "integer microseconds UTC; naive datetimes refused"; the text carries every one of them.
@given(st.datetimes(timezones=st.timezones(), min_value=datetime(1900, 1, 2), max_value=datetime(9999, 12, 30)))  # noqa: DTZ001
def test_a_datetime_keeps_its_instant_to_the_microsecond(value: datetime) -> None:
    text = snapshot(value)
    assert isinstance(text, str)
    assert datetime.fromisoformat(text) == value.astimezone(UTC)


@given(st.decimals(allow_nan=False, allow_infinity=False) | st.binary(max_size=9) | st.uuids() | st.dates())
def test_every_encoded_value_is_canonical(value: object) -> None:
    copied = snapshot(value)
    assert type(copied) is str
    assert parse(canonical(copied)) == copied
