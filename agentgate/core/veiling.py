"""Taking values out of what a tool says: secrets that were handed out, and sensitive arguments that it echoes.

A value is found as text and inside text, as it is and in the forms in which programs usually write it: escaped for
JSON, Python, HTML or a URL, in hexadecimal digits, in base64 at any offset. What a tool encrypts, compresses, spells
out or cuts into pieces is not found: this keeps accidents out of the record, not intent.
"""

import base64
import html
import json
import traceback
from asyncio import CancelledError
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote, quote_plus

from agentgate.canonical import Json, canonical
from agentgate.observation import Error, Observation
from agentgate.tools.sensitive import MARK, Leaf

SHORTEST: Final = 4
"""Shorter values, in bytes, are taken out only where they are a whole text, name or number by themselves."""

SCRUBBED: Final = "scrubbed"
"""The note of an observation that something was taken out of."""

_DIGITS = frozenset("0123456789")


@dataclass(frozen=True, slots=True, kw_only=True)
class Veil:
    """What is taken out, and what is left in its place.

    Args:
        forms: every text to be found, with its mark.
        wholes: values too short to be looked for inside a text.
        numbers: forms that are numbers, found only where no further digit stands beside them.
    """

    forms: Mapping[str, str] = field(default_factory=dict, repr=False)
    wholes: Mapping[str, str] = field(default_factory=dict, repr=False)
    numbers: frozenset[str] = field(default=frozenset(), repr=False)

    def __bool__(self) -> bool:
        return bool(self.forms or self.wholes)

    def text(self, text: str) -> str:
        """Return the text with a mark wherever one of the values stood."""
        if text in self.wholes:
            return self.wholes[text]
        spans = sorted(span for form in self.forms for span in self._spans(text, form))
        if not spans:
            return text
        parts, end, marks = [], 0, list[str]()
        for start, stop, mark in spans:
            if start >= end:
                parts += [*marks, text[end:start]]
                marks = []
            marks += [] if mark in marks else [mark]
            end = max(end, stop)
        return "".join([*parts, *marks, text[end:]])

    def _spans(self, text: str, form: str) -> Iterator[tuple[int, int, str]]:
        start = text.find(form)
        while start >= 0:
            end = start + len(form)
            beside = (text[start - 1 : start], text[end : end + 1])
            if form not in self.numbers or not any(one in _DIGITS for one in beside):
                yield start, end, self.forms[form]
            start = text.find(form, start + 1)

    def json(self, value: Json) -> Json:
        """Return the value with its texts, names and numbers veiled."""
        if not self:
            return value
        if type(value) is str:
            return self.text(value)
        if type(value) is dict:
            return self._members(value)
        if type(value) is list:
            return [self.json(item) for item in value]
        if type(value) is int or type(value) is float:
            told = canonical(value).decode()
            veiled = self.text(told)
            return value if veiled == told else veiled
        return value

    def _members(self, value: dict[str, Json]) -> dict[str, Json]:
        members: dict[str, Json] = {}
        for name, item in value.items():
            veiled = told = self.text(name)
            number = 2
            while told in members:  # two names that were veiled are two members still
                told, number = f"{veiled} {number}", number + 1
            members[told] = self.json(item)
        return members

    def error(self, error: Error) -> Error:
        """Return a structured error with what it says veiled; a code that holds a value says nothing any more."""
        action = error.suggested_action
        return replace(
            error,
            code=error.code if self.text(error.code) == error.code else "internal",
            message=self.text(error.message),
            details=self.json(error.details),
            suggested_action=None if action is None else self.text(action),
        )

    def observation(self, observation: Observation) -> Observation:
        """Return an observation with what it says veiled, and a note where that changed it."""
        if not self:
            return observation
        error = None if observation.error is None else self.error(observation.error)
        veiled = replace(observation, value=self.json(observation.value), error=error)
        if veiled == observation or SCRUBBED in observation.notes:
            return veiled
        return replace(veiled, notes=(*veiled.notes, SCRUBBED))


OPEN: Final = Veil()
"""Takes nothing out."""


def veil_of(secrets: Mapping[str, Iterable[str | bytes]], sensitive: Iterable[Leaf] = ()) -> Veil:
    """Make a veil.

    Args:
        secrets: what was handed out, by the secret's name.
        sensitive: texts and numbers of sensitive arguments.
    """
    found: list[tuple[str | bytes, str]] = [
        (value, f"[secret {name}]") for name, values in secrets.items() for value in tuple(values)
    ]
    numbers = set[str]()
    for leaf in sensitive:
        text = leaf if isinstance(leaf, str) else canonical(leaf).decode()
        numbers |= set() if isinstance(leaf, str) else {text}
        found.append((text, MARK))
    if not found:
        return OPEN
    forms: dict[str, str] = {}
    wholes: dict[str, str] = {}
    for value, mark in found:
        if not value:
            continue
        content = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
        where = forms if len(content) >= SHORTEST else wholes
        for form in _forms(content):
            where.setdefault(form, mark)
    return Veil(forms=forms, wholes=wholes, numbers=frozenset(numbers))


def _forms(content: bytes) -> frozenset[str]:
    """Write a value in every form in which it is looked for."""
    texts = {repr(content)[2:-1], content.hex(), content.hex().upper()}
    try:
        text = content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    escaped = {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    texts |= {text, repr(text)[1:-1], html.escape(text), *escaped}
    texts |= {json.dumps(one)[1:-1] for one in escaped}  # JSON inside JSON
    quoted = {quote(content, safe=""), quote(content), quote_plus(content)}
    texts |= quoted | {_lower(one) for one in quoted}
    for based in (base64.b64encode, base64.urlsafe_b64encode):
        for offset in range(3):
            texts.add(_inside(based(bytes(offset) + content).decode("ascii"), offset, len(content)))
    return frozenset(one for one in texts if one)


def _inside(encoded: str, offset: int, size: int) -> str:
    """Return the digits of base64 that depend on nothing but the value, wherever in longer bytes it stands."""
    return encoded[-(-offset * 8 // 6) : (offset + size) * 8 // 6]


def _lower(quoted: str) -> str:
    """Write the escapes of a URL in lower case, and leave the rest as it is."""
    first, *others = quoted.split("%")
    return "%".join([first, *(one[:2].lower() + one[2:] for one in others)])


def veiled_exception(error: BaseException, veil: Veil) -> BaseException:
    """Take the values out of an exception of the caller's own that is passed on, and out of all it was raised from.

    It is changed in place. One that tells them still, because its class keeps them where nobody can reach, or that
    cannot be looked at, is replaced by one that says nothing.
    """
    if not veil:
        return error
    try:
        veiled = _is_veiled(error, veil)
    except Exception:  # noqa: BLE001 - a class of the caller's own: what it raises here interrupts nobody
        veiled = False
    if veiled:
        return error
    known = (kind for kind in (KeyboardInterrupt, SystemExit, CancelledError) if isinstance(error, kind))
    return next(known, BaseException)()


def _is_veiled(error: BaseException, veil: Veil) -> bool:
    """Take the values out of an exception and all it was raised from; tell whether it shows none of them now."""
    for one in _chain(error):
        _veil_fields(one, veil)
    told = "".join((*traceback.format_exception(error), *(repr(one) for one in _chain(error))))
    return veil.text(told) == told


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, those it was raised from, and those in it, each once."""
    waiting: list[BaseException | None] = [error]
    met = set[int]()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in met:
            continue
        met.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__]
        waiting += one.exceptions if isinstance(one, BaseExceptionGroup) else ()


def _veil_fields(error: BaseException, veil: Veil) -> None:
    error.args = tuple(_veil_any(each, veil) for each in error.args)
    for name, value in tuple(vars(error).items()):
        vars(error)[name] = _veil_any(value, veil)
    if isinstance(error, SystemExit):
        error.code = _veil_any(error.code, veil)


def _veil_any(value: Any, veil: Veil) -> Any:
    if type(value) is bytes:
        text = value.decode("latin-1")
        return value if veil.text(text) == text else MARK.encode()
    if type(value) is tuple or type(value) is list:
        return type(value)(_veil_any(item, veil) for item in value)
    if type(value) is dict:
        return {_veil_any(name, veil): _veil_any(item, veil) for name, item in value.items()}
    if type(value) is int or type(value) is float:
        told = repr(value)
        return value if len(told) < SHORTEST or veil.text(told) == told else MARK
    return veil.text(value) if type(value) is str else value
