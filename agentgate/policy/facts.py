"""Fetching what a policy needs from outside its request: each fact once, under a time-out, as a snapshot.

A fact is recorded with the decision, so that a policy that reads the world can be asked again years later.
Nothing here is cached: what was true for one action is asked again for the next.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import TypeAlias

from agentgate.canonical import Json, snapshot
from agentgate.clock import Clock, to_us
from agentgate.errors import NotCanonical
from agentgate.policy.deadline import SHARED, Answer, Late, Raised, Threads
from agentgate.policy.decision import Decision
from agentgate.policy.evaluation import FACT_UNAVAILABLE, is_awaitable, refused
from agentgate.policy.request import PolicyRequest

FactProvider: TypeAlias = Callable[[PolicyRequest], object]
"""Answers one fact for one request, whose own facts are empty; the answer is snapshot as arguments are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What could be fetched, and why that is not enough if it is not.

    Args:
        values: the facts by name, up to the first that failed.
        refusal: the denial that the missing one makes; None when all are there.
    """

    values: Mapping[str, Json]
    refusal: Decision | None = None


def gather(
    names: tuple[str, ...],
    providers: Mapping[str, FactProvider],
    request: PolicyRequest,
    *,
    within: timedelta,
    clock: Clock,
    threads: Threads = SHARED,
    own: Mapping[str, FactProvider] = MappingProxyType({}),
) -> Gathered:
    """Fetch the facts a policy declares, one after another; the first that fails denies.

    Args:
        names: the policy's ``facts``.
        providers: who answers each.
        request: what is asked about; each provider gets its own copy, without facts.
        within: how long each provider may take.
        clock: whose monotonic reading judges that.
        threads: where providers run.
        own: of the gate itself: what they raise says nothing of the request, and is raised.
    """
    values: dict[str, Json] = {}
    for name in names:
        if name in own:
            values[name] = snapshot(own[name](request))
            continue
        provider = providers.get(name)
        if provider is None:
            return Gathered(values=values, refusal=_unavailable(name, "nobody provides it"))
        until = clock.monotonic_us() + to_us(within)
        answer = threads.run(partial(_fetch, provider, replace(request.private(), facts={})), within=within)
        fetched = _fetched(answer if clock.monotonic_us() <= until else Late())
        if isinstance(fetched, str):
            return Gathered(values=values, refusal=_unavailable(name, fetched))
        values[name] = fetched.value
    return Gathered(values=values)


@dataclass(frozen=True, slots=True)
class _Fact:
    value: Json


def _fetch(provider: FactProvider, request: PolicyRequest) -> _Fact | str:
    """Ask the provider and snapshot its answer, on the caller's code's side of the deadline."""
    answer = provider(request)
    if is_awaitable(answer):
        return "its provider answered an awaitable; a provider is a sync function"
    try:
        return _Fact(snapshot(answer))
    except NotCanonical as error:
        return f"its provider's answer is no JSON value: {error.reason}"


def _fetched(answer: Answer) -> _Fact | str:
    """Return the fact, or why there is none."""
    if isinstance(answer, Late):
        return "its provider did not answer in time" if answer.started else "too many earlier calls still run"
    if isinstance(answer, Raised):
        return f"its provider raised {answer.name}"
    assert isinstance(answer.value, _Fact | str)
    return answer.value


def _unavailable(name: str, why: str) -> Decision:
    return refused(FACT_UNAVAILABLE, f"fact {name!r}: {why}")
