"""Whatever callers, models, policies and tools do: what is chained can be read back, and nothing foreign is raised."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agentgate
from agentgate import Gate, Key, NoEffect, PolicyRequest, Requirement, ToolError, ToolSpec
from agentgate.errors import AgentgateError
from agentgate.event import EVENT_BOUNDS, decode
from support.documents import documents
from support.worlds import World, made

TEXTS = st.one_of(
    st.sampled_from(
        ["", "t", "$ledger", "a\x00b", "\ud800", "\u202et", "x" * 201, "x" * 300, "x" * 1_100_000, "é" * 256, "\uffff"]
    ),
    st.text(max_size=12),
)
KEYS = st.one_of(
    st.none(),
    TEXTS,
    st.builds(Key, source=st.sampled_from(["caller", "adapter", "outside", "own", "x"]), scope=TEXTS, text=TEXTS),
)
VALUES: st.SearchStrategy[Any] = st.one_of(documents(), st.binary(max_size=20), st.text(max_size=20), st.builds(object))
ERRORS = st.one_of(
    st.builds(ToolError, TEXTS, TEXTS, details=VALUES, suggested_action=st.none() | TEXTS),
    st.builds(NoEffect, TEXTS, code=TEXTS, details=VALUES),
    st.builds(ValueError, TEXTS),
)


@dataclass(slots=True)
class Script:
    """What the tool does next, and what the policy says."""

    comes: Any = None
    says: Callable[[], Any] = agentgate.allow

    def act(self, value: object) -> object:
        if isinstance(self.comes, Exception):
            raise self.comes
        return value if self.comes is None else self.comes

    def decide(self, _request: PolicyRequest) -> Any:
        return self.says()


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A gate whose tool and policy follow a script."""

    world: World
    gate: Gate
    script: Script = field(default_factory=Script)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    world, script = made(tmp_path_factory.mktemp("ledger")), Script()
    tool = agentgate.gated(ToolSpec(name="t", input_schema=True, undeclared="allow"), script.act)
    with world.gate(tool, policy=agentgate.python_policy(script.decide, identity="script")) as gate:
        yield Stage(world=world, gate=gate, script=script)


@st.composite
def answers(draw: st.DrawFn) -> Callable[[], Any]:
    """Draw what a policy does when it is asked: hostile words may keep it from making its decision."""
    code, text, role, duty = draw(TEXTS), draw(TEXTS), draw(TEXTS), draw(TEXTS)
    quorum = draw(st.sampled_from([1, 2**53]))

    def asks() -> Any:
        requirement = Requirement(roles=(role,), obligations=(duty,), quorum=quorum)
        return agentgate.require_approval(code, text, requirement=requirement)

    return draw(
        st.sampled_from(
            [
                agentgate.allow,
                lambda: agentgate.allow(code, text, reserves=[agentgate.Reserve(account=role, amount=2**53 - 1)]),
                lambda: agentgate.deny(code, text),
                lambda: agentgate.abort("over", text),
                asks,
                lambda: agentgate.require_approval("ask", requirement=Requirement(roles=(role,))),
                lambda: None,
            ]
        )
    )


# Law: an event that is stored is an event that every reader of its version accepts, and is what it says it is.
@settings(max_examples=200)
@given(st.data())
def test_every_event_that_is_written_is_one_that_readers_accept(stage: Stage, data: st.DataObject) -> None:
    stage.script.comes, stage.script.says = data.draw(st.none() | VALUES | ERRORS), data.draw(answers())
    last = stage.world.value("SELECT max(rowid) FROM agentgate_events")
    _act(stage.gate, data)
    for (encoded,) in stage.world.sql("SELECT event FROM agentgate_events WHERE rowid > ?", last):
        assert decode(encoded).encode() == encoded
        assert len(encoded) <= EVENT_BOUNDS.max_bytes


def _act(gate: Gate, data: st.DataObject) -> None:
    """Open a run and call a tool in it, with names as they come; what is misuse says so and writes nothing."""
    try:
        run = gate.run(
            data.draw(st.uuids().map(str) | TEXTS),
            principal=data.draw(st.just("agent:a") | TEXTS),
            tenant=data.draw(st.just("acme") | TEXTS),
            goal=data.draw(st.none() | TEXTS),
        )
        gate.call(
            run,
            data.draw(st.just("t") | TEXTS),
            data.draw(VALUES),
            namespace=data.draw(st.just("") | TEXTS),
            key=data.draw(KEYS),
            principal=data.draw(st.none() | TEXTS),
            provenance=data.draw(st.none() | VALUES),
        )
    except AgentgateError:
        return
