"""What a gate is told once, when it is opened."""

from dataclasses import dataclass
from datetime import timedelta

from agentgate.approval import Requirement
from agentgate.breaker import Breaker
from agentgate.canonical import DEFAULT_BOUNDS, Bounds
from agentgate.clock import to_us
from agentgate.errors import Misuse, PolicyRefused
from agentgate.policy.decision import check_who

SHORTEST_LEASE = timedelta(seconds=5)
LONGEST = timedelta(days=3_660)  # as every span that a spec may state

_SPANS = (
    *("lease", "question", "grant", "ready"),
    *("policy_within", "fact_within", "check_within", "secret_within"),
)


_OPERATORS = Requirement(kind="question")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Times to live and bounds of a gate.

    Args:
        lease: how long an attempt is held without a sign of life; at least five seconds.
        question: how long people can answer.
        grant: how long an answer stands before it is used.
        ready: how long an allowed action may wait to be executed.
        policy_within: how long a policy may think.
        fact_within: how long each fact may take to fetch.
        check_within: how long a tool's own probe or confirm function may take.
        secret_within: how long each secret may take to fetch.
        bounds: size, depth and nodes of arguments.
        breaker: when a tool that keeps failing is left alone; None leaves none.
        operators: who must agree on what became of an action that no policy wanted approved; whoever had to approve it
            is asked otherwise.
    """

    lease: timedelta = timedelta(seconds=60)
    question: timedelta = timedelta(hours=24)
    grant: timedelta = timedelta(minutes=15)
    ready: timedelta = timedelta(hours=1)
    policy_within: timedelta = timedelta(seconds=5)
    fact_within: timedelta = timedelta(seconds=5)
    check_within: timedelta = timedelta(seconds=30)
    secret_within: timedelta = timedelta(seconds=5)
    bounds: Bounds = DEFAULT_BOUNDS
    breaker: Breaker | None = None
    operators: Requirement = _OPERATORS

    def __post_init__(self) -> None:
        for name in _SPANS:
            span = getattr(self, name)
            if type(span) is not timedelta or not timedelta(0) < span <= LONGEST:
                raise Misuse(f"{name}: give a positive timedelta of at most {LONGEST.days} days")
        if self.lease < SHORTEST_LEASE:
            raise Misuse(f"lease: {self.lease} is too short to be renewed in time; give at least {SHORTEST_LEASE}")
        if type(self.bounds) is not Bounds:
            raise Misuse("bounds: give Bounds(...)")
        if self.breaker is not None and type(self.breaker) is not Breaker:
            raise Misuse("breaker: give Breaker(...), or None for none")
        if type(self.operators) is not Requirement or self.operators.kind != "question":
            raise Misuse('operators: give agentgate.Requirement(kind="question", ...)')
        try:
            check_who(self.operators)
        except PolicyRefused as refused:
            field = refused.path.removeprefix("/requirement/").replace("/", ".")
            raise Misuse(f"operators.{field}: {refused.problem}; {refused.remedy}") from refused

    @property
    def lease_us(self) -> int:
        """The lease in microseconds."""
        return to_us(self.lease)

    @property
    def question_us(self) -> int:
        """The time to answer in microseconds."""
        return to_us(self.question)

    @property
    def ready_us(self) -> int:
        """The time to execute in microseconds."""
        return to_us(self.ready)
