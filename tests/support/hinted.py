"""Types that hints name, of every kind that has a schema and of some that have none; and one hint read alone."""

import dataclasses
import enum
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, Optional, Required, TypedDict

from agentgate.canonical import Json
from agentgate.tools.annotations import built_from, form_of
from agentgate.tools.forms import Form, Site
from agentgate.tools.schemas import admit
from agentgate.tools.validation import check

Cents = NewType("Cents", int)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Word(enum.StrEnum):
    YES = "yes"


class Permission(enum.Flag):
    READ = 1


class Mixed(enum.Enum):
    A = 1.5


class Point(NamedTuple):
    x: int


@dataclass
class Line:
    sku: str
    count: int = 1
    note: str | None = None
    tags: list[str] = field(default_factory=list)
    seen: bool = field(default=False, init=False)


@dataclass(frozen=True)
class Order:
    lines: tuple[Line, ...]
    placed: date


@dataclass
class Even:
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise RuntimeError(f"secret {self.number}")


@dataclass
class Node:
    next: Optional["Node"]


@dataclass
class WithInitVar:
    seed: dataclasses.InitVar[int]


@dataclass(init=False)
class WithOwnInit:
    a: int


@dataclass
class Unresolved:
    a: "Nowhere"  # type: ignore[name-defined]  # noqa: F821


class Address(TypedDict):
    street: str
    since: NotRequired[date]


class Partial(TypedDict, total=False):
    a: int
    b: Required[Annotated[str, "the b"]]


class Inherited(Address):
    country: Literal["DE", "FR"]


class Loop(TypedDict):
    inner: list["Loop"]


class Plain:
    pass


def form(hint: object) -> Form:
    return form_of(hint, Site(tool="t", path="/input_schema/properties/x", definitions={}))


def schema(hint: object) -> Any:
    return form(hint).schema


def built(hint: object, value: Json) -> object:
    read = form(hint)
    assert not check(admit(read.schema, tool="t"), value), "its own schema refuses it"
    return built_from(read, value, "/x")
