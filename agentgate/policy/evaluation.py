"""Asking a policy, so that whatever goes wrong denies.

A raise, a time-out, ``None``, an awaitable, anything that is no `Decision`: each is a denial by the rule ``gate``
with a stable code. The texts name the exception's type and nothing else, because its message may hold arguments.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Protocol, runtime_checkable

from agentgate.clock import Clock, to_us
from agentgate.policy.deadline import SHARED, Answer, Late, Raised, Returned, Threads, run_here
from agentgate.policy.decision import Decision, Reason, check_word, deny
from agentgate.policy.identity import PolicyIdentity, of_function, stated
from agentgate.policy.request import PolicyRequest
from agentgate.policy.rules import RulePolicy

GATE_RULE = "gate"
"""The rule of a denial that the gate makes itself, because no policy answered."""

RAISED = "policy_raised"
TIMEOUT = "policy_timeout"
NO_ANSWER = "policy_no_answer"
AWAITABLE = "policy_awaitable"
BAD_ANSWER = "policy_bad_answer"
FACT_UNAVAILABLE = "fact_unavailable"


@runtime_checkable
class Policy(Protocol):
    """Who may say no. Pure: the same request gets the same decision, and asking changes nothing."""

    @property
    def identity(self) -> PolicyIdentity:
        """What the policy is made of, fixed while it lives."""
        ...

    @property
    def facts(self) -> tuple[str, ...]:
        """The names of what it needs from outside the request."""
        ...

    def decide(self, request: PolicyRequest) -> Decision:
        """Answer about one action; the request is the policy's own copy."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonPolicy:
    """A plain function as a policy; made by `python_policy`."""

    identity: PolicyIdentity
    facts: tuple[str, ...] = ()
    function: Callable[[PolicyRequest], Decision] = field(repr=False)

    def decide(self, request: PolicyRequest) -> Decision:
        return self.function(request)


def python_policy(
    function: Callable[[PolicyRequest], Decision],
    *,
    identity: PolicyIdentity | str | None = None,
    facts: Iterable[str] = (),
) -> PythonPolicy:
    """Make a policy of a function from request to decision.

    Args:
        function: sync and pure; it is asked in a thread of its own, under the gate's deadline.
        identity: any text that changes whenever the answers may; without it, the function's name and file.
        facts: the names of the facts that it reads from ``request.facts``.

    Raises:
        PolicyRefused: the function's file does not identify it, or a fact's name is no stable word.
    """
    names = tuple(dict.fromkeys(facts))
    for index, name in enumerate(names):
        check_word(name, f"/facts/{index}")
    if identity is None:
        identity = of_function(function)
    elif isinstance(identity, str):
        identity = stated(identity)
    return PythonPolicy(identity=identity, facts=names, function=function)


def evaluate(
    policy: Policy, request: PolicyRequest, *, within: timedelta, clock: Clock, threads: Threads = SHARED
) -> Decision:
    """Ask ``policy`` about ``request``; never raises for what the policy does.

    Each is handed a copy of the request's JSON. Our own rules are bounded by construction and answer in the caller's
    thread; whatever else says that it is closed, and an open policy, in a thread that is abandoned when it is late.

    Args:
        policy: who is asked.
        request: with every fact that the policy declares.
        within: how long it may take.
        clock: whose monotonic reading judges that; a late answer is no answer.
        threads: where any other than our own rules runs.
    """
    until = clock.monotonic_us() + to_us(within)
    try:
        bounded = policy.identity.kind == "closed" and type(policy) is RulePolicy
        missing = next((name for name in policy.facts if name not in request.facts), None)
    except Exception as error:  # noqa: BLE001 - the caller's code
        return refused(RAISED, f"the policy raised {type(error).__name__}")
    if missing is not None:
        return refused(FACT_UNAVAILABLE, f"the fact {missing!r} was not fetched")
    # Its own copy, whoever it is: what people are shown before they agree is made of the request's arguments.
    asking = partial(_ask, policy, request.private())
    answer = run_here(asking) if bounded else threads.run(asking, within=within)
    if isinstance(answer, Returned) and clock.monotonic_us() > until:
        answer = Late()
    return _judged(answer)


def refused(code: str, text: str) -> Decision:
    """Deny in the gate's own name."""
    return deny(code, text[:200], rule=GATE_RULE)


def is_awaitable(value: object) -> bool:
    """Tell whether a caller's code answered asynchronously, and put a coroutine it made to rest unrun."""
    if inspect.iscoroutine(value):
        with suppress(Exception):
            value.close()
        return True
    return isinstance(value, Awaitable)


def _ask(policy: Policy, request: PolicyRequest) -> Decision | Reason:
    """Ask, and judge the answer's kind where the policy's own code may still run: on its side of the deadline."""
    answer: object = policy.decide(request)
    if type(answer) is Decision:
        return _whole(answer)
    if answer is None:
        return Reason(code=NO_ANSWER, text="the policy answered None")
    if is_awaitable(answer):
        return Reason(code=AWAITABLE, text="the policy answered an awaitable; a policy is a sync function")
    return Reason(code=BAD_ANSWER, text=f"the policy answered {type(answer).__name__}, not a Decision")


def _whole(answer: Decision) -> Decision | Reason:
    """Make the decision anew: one that was built past its constructor, or changed since, is no answer."""
    try:
        return replace(
            answer,
            reasons=tuple(replace(reason) for reason in answer.reasons),
            requirement=replace(answer.requirement) if answer.requirement is not None else None,
            reserves=tuple(replace(reserve) for reserve in answer.reserves),
        )
    except Exception:  # noqa: BLE001 - whatever a tampered value does
        return Reason(code=BAD_ANSWER, text="the policy answered a decision that is not valid")


def _judged(answer: Answer) -> Decision:
    if isinstance(answer, Late):
        late = "the policy did not answer in time"
        return refused(TIMEOUT, late if answer.started else "too many earlier evaluations still run")
    if isinstance(answer, Raised):
        return refused(RAISED, f"the policy raised {answer.name}")
    if isinstance(answer.value, Decision):
        return answer.value
    assert isinstance(answer.value, Reason)
    return Decision(outcome="deny", rule=GATE_RULE, reasons=(answer.value,))
