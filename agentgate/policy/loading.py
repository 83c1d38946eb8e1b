"""One policy from whatever a caller names it by: a file, a function, or a policy that exists already."""

from collections.abc import Callable
from os import PathLike
from typing import TypeAlias

from agentgate.errors import PolicyRefused
from agentgate.policy.decision import Decision
from agentgate.policy.evaluation import Policy, PythonPolicy, python_policy
from agentgate.policy.identity import PolicyIdentity
from agentgate.policy.request import PolicyRequest
from agentgate.policy.rules import RulePolicy, read_rules

PolicySource: TypeAlias = str | PathLike[str] | Policy | Callable[[PolicyRequest], Decision]


def load_policy(source: PolicySource) -> Policy:
    """Take a policy as it is, read a rule file, or wrap a plain function.

    Args:
        source: the path of a YAML rule file, a function from request to decision, or a `Policy`, which is asked
            once what it is made of and which facts it needs.

    Raises:
        PolicyRefused: it is none of these, its file is refused, or its function has no identity of its own.
    """
    if isinstance(source, str | PathLike):
        return read_rules(source)
    if isinstance(source, RulePolicy | PythonPolicy):
        return source
    try:
        found = _fixed(source) if isinstance(source, Policy) else None
    except PolicyRefused:
        raise
    except Exception as error:
        problem = f"it raised {type(error).__name__} when it was asked what it is"
        raise PolicyRefused(type(source).__name__, "", problem, "let identity and facts be plain attributes") from error
    if found is not None:
        return found
    if callable(source):
        return python_policy(source)
    raise PolicyRefused(type(source).__name__, "", "no policy", "give a rule file's path, a function, or a Policy")


def _fixed(policy: Policy) -> Policy:
    """Hold on to what a policy says it is: an identity that changed later would be recorded for another one's answers.

    Raises:
        PolicyRefused: its identity or facts are of no use.
    """
    source = type(policy).__name__
    identity: object = policy.identity
    facts: object = policy.facts
    if not isinstance(identity, PolicyIdentity):
        raise PolicyRefused(source, "/identity", "no PolicyIdentity", "make one of its documents")
    if not isinstance(facts, tuple) or not all(isinstance(name, str) for name in facts):
        raise PolicyRefused(source, "/facts", "no tuple of names", "give the facts' names, () when there are none")
    return PythonPolicy(identity=identity, facts=facts, function=policy.decide)
