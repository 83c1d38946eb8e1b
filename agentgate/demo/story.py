"""How the demo speaks: prose, what the agent asks and the gate answers, and what was expected of it."""

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from agentgate.canonical import Json
from agentgate.outcome import Done, Failed, Held, Outcome, Refused, Running, Unknown
from agentgate.printable import clipped, printable, printable_json

WIDTH = 110
_BOLD, _GREEN, _RED, _PLAIN = "\x1b[1m", "\x1b[32m", "\x1b[31m", "\x1b[0m"
_LONGEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """Something the story says, and whether it was so."""

    what: str
    held: bool


@dataclass(slots=True, kw_only=True)
class Chapter:
    """A chapter as it was told."""

    title: str
    lines: list[str] = field(default_factory=list)
    expectations: list[Expectation] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Story:
    """The story as it is told.

    Args:
        folder: where its files are.
        url: its ledger.
        write: where it is written as it happens; None to keep it.
        colour: whether that shows bold and colours.
        chapters: what was told.
    """

    folder: Path
    url: str
    write: TextIO | None
    colour: bool
    chapters: list[Chapter] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Tell whether everything came out as told."""
        return not self._failures() and bool(self.chapters)

    def _failures(self) -> list[Expectation]:
        return [one for chapter in self.chapters for one in chapter.expectations if not one.held]

    def open(self) -> None:
        """Say what is coming, and where its files are."""
        self._put("agentgate demo: one support ticket, a policy, a crash, and a record that can be checked", _BOLD)
        self._put("")
        self._put(f"  folder  {printable(str(self.folder))}")
        self._put(f"  ledger  {printable(self.url)}")

    def chapter(self, title: str) -> None:
        """Begin a chapter."""
        self.chapters.append(Chapter(title=title))
        self._put("")
        self._put(f"{len(self.chapters)}. {title}", _BOLD)

    def say(self, prose: str) -> None:
        """Tell what happens."""
        for line in textwrap.wrap(" ".join(prose.split()), WIDTH - 2):
            self._tell(line)

    def agent(self, tool: str, arguments: Json, key: str | None) -> None:
        """Show what the agent proposes."""
        named = "" if key is None else f"  key={printable(key)}"
        self._tell(f"  agent   {printable(tool)} {printable_json(arguments)}{named}")

    def gate(self, outcome: Outcome) -> None:
        """Show what the gate answers."""
        self._tell(f"  gate    {clipped(words(outcome), _LONGEST)}")

    def person(self, name: str, what: str) -> None:
        """Show what somebody does."""
        self._tell(f"  {name:<7} {printable(what)}")

    def show(self, lines: Iterable[str]) -> None:
        """Show lines that are printable already."""
        for line in lines:
            self._tell(f"    {line}".rstrip())

    def expect(self, what: str, *, so: bool) -> None:
        """Say what should be so, and whether it is."""
        self.chapters[-1].expectations.append(Expectation(what=what, held=so))
        self._tell(f"  {'ok' if so else 'NOT SO':<7} {what}", _GREEN if so else _RED)

    def close(self, *, seconds: float) -> None:
        """Say how it ended, and where to look further."""
        failures, told = self._failures(), sum(len(chapter.expectations) for chapter in self.chapters)
        self._put("")
        if failures:
            self._put(f"{len(failures)} of {told} things did not come out as told:", _RED)
            for one in failures:
                self._put(f"  NOT SO  {one.what}", _RED)
        else:
            self._put(f"All {told} things came out as told, in {seconds:.1f} s. Look further with:", _BOLD)
            self._put(f"  export AGENTGATE_URL={printable(self.url)}")
            self._put("  agentgate runs; agentgate show ticket-4711; agentgate events ticket-4711; agentgate verify")

    def to_json(self) -> dict[str, Json]:
        """Return the story as JSON."""
        return {
            "holds": self.holds,
            "folder": str(self.folder),
            "url": self.url,
            "chapters": [
                {
                    "title": chapter.title,
                    "lines": [*chapter.lines],
                    "expected": [{"what": one.what, "held": one.held} for one in chapter.expectations],
                }
                for chapter in self.chapters
            ],
        }

    def _tell(self, line: str, style: str = "") -> None:
        self.chapters[-1].lines.append(line)
        self._put(f"  {line}" if line else "", style)

    def _put(self, line: str, style: str = "") -> None:
        if self.write is None:
            return
        styled = f"{style}{line}{_PLAIN}" if style and self.colour else line
        self.write.write(f"{styled}\n")
        self.write.flush()


def words(outcome: Outcome) -> str:
    """Put an outcome into one line."""
    match outcome:
        case Done(observation):
            return f"Done ({outcome.source}) {printable_json(observation.value)}"
        case Failed(error):
            return f"Failed ({outcome.reason}) {printable(error.message)}"
        case Held(approval):
            return f"Held: somebody must decide; approval {approval.id}"
        case Refused(reason):
            wait = ", and waits" if outcome.retryable else ""
            return f"Refused ({printable(reason)}{wait}) {printable(outcome.error.message)}"
        case Running():
            return "Running: somebody else holds the lease"
        case Unknown():
            return f"Unknown ({printable(outcome.reason)}) {printable(outcome.error.message)}"
