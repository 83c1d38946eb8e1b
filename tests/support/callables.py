"""Callables of every kind that may stand behind a tool, and the call that a tool's arguments make."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

from agentgate.tools.decorator import Tool
from agentgate.tools.spec import ToolSpec

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


class Effect:
    __agentgate_effect__ = True


@dataclass
class Line:
    sku: str
    count: int = 1


def spec(**changes: Any) -> ToolSpec:
    return ToolSpec(**{"name": "given", "input_schema": SCHEMA, **changes})


def called(made: Tool[..., Any], arguments: Any, effect: object = None) -> Any:
    positional, named = made.bind(arguments, effect)
    return made.fn(*positional, **named)


async def pause(seconds: int) -> int:
    return seconds


def count(a: int) -> Iterator[int]:
    yield a


async def stream(a: int) -> AsyncIterator[int]:
    yield a


class Caller:
    def __call__(self, a: str) -> str:
        return a

    def method(self, a: str) -> str:
        return a

    async def later(self, a: str) -> str:
        return a


class AsyncCaller:
    async def __call__(self, a: str) -> str:
        return a


class Generating:
    def __call__(self, a: str) -> Iterator[str]:
        yield a
