"""Asking people about an action whose outcome is unknown: what became of it, and whether it may run once more.

Nothing of this moves the action: a question hangs on it, names the attempt that it asks about, and is void as soon as
anything newer happened (`agentgate.core.questions`). An "again" that was granted starts one attempt, whatever the
tool's recovery says; what a policy wants before an attempt that recovery allows is an approval of it (design §3, §5).
"""

from collections.abc import Callable
from dataclasses import replace

from agentgate.approval import Requirement, Verdict, requirement_digest
from agentgate.canonical import Json, parse
from agentgate.core.claiming import MOST_REQUIREMENTS, Wait, may_run_again, wait
from agentgate.core.draft import Draft
from agentgate.core.proposing import Chance, Thought, ask
from agentgate.core.proving import is_granted
from agentgate.core.records import ActionFile
from agentgate.states import State
from agentgate.tools.recovery import Probe
from agentgate.tools.spec import ToolSpec

_OPEN = frozenset({"pending", "granted"})


def is_told_again(file: ActionFile) -> bool:
    """Tell whether operators have said that the unknown action is to run once more, and it has not."""
    question = file.question
    return question is not None and question.kind == "question" and question.state == "granted"


def is_for_operators(spec: ToolSpec, file: ActionFile, at_us: int, *, untold: bool = False) -> bool:
    """Tell whether people must be asked what became of an action, and are not asked now.

    An expired or revoked question is asked again by whoever looks next; one that was answered with no only after
    something new happened: another attempt ended, or one answered late. So nobody is asked in a loop.

    Args:
        spec: the one it was proposed under.
        file: the action.
        at_us: ledger time.
        untold: whether its tool can never be probed: the gate knows it under another definition.
    """
    action, question = file.action, file.question
    if action.state is not State.UNKNOWN or may_run_again(spec, action, at_us):
        return False
    if isinstance(spec.recovery, Probe) and not untold and "probe_unsure" not in action.waited:
        return False  # it can tell, and was not asked yet, or its worker may still be at it
    if question is None:
        return True
    if question.state in _OPEN:
        return question.kind != "question"  # what was asked of an attempt that recovery does not allow is no use
    return question.state != "rejected" or _is_newer(file, question.state_n)


def _is_newer(file: ActionFile, n: int) -> bool:
    """Tell whether anything has happened to an action since its event ``n`` that may make people answer otherwise."""
    return file.action.state_n > n or any((one.late_n or 0) > n for one in file.attempts.values())


def asked_of(file: ActionFile, operators: Requirement) -> Requirement:
    """Return who must agree on what became of an action: those who had to approve it, else the operators.

    So nobody weaker than those who approved the first run can order a second one.

    Args:
        file: the action.
        operators: what the gate asks for where no policy asked for anybody.
    """
    approvals = [one for one in file.approvals.values() if one.kind == "approval"]
    if not approvals:
        return _as_question(operators)
    return _as_question(Requirement.from_json(parse(max(approvals, key=lambda one: one.asked_n).demands)))


def inquire(draft: Draft, file: ActionFile, thought: Thought, chance: Chance, requirement: Requirement) -> None:
    """Hang a question on what is unknown: about its newest attempt in doubt, or, as an approval, about the next one.

    Args:
        draft: the transaction.
        file: the action, UNKNOWN.
        thought: as it was proposed.
        chance: ids and salts.
        requirement: who must agree; its kind says which question it is.
    """
    action, attempt = file.action, _about(file, requirement)
    asked, shown = ask(
        draft, thought, chance, requirement, digest=action.digest, revision=action.revision, attempt=attempt
    )
    body: dict[str, Json] = {"approval": asked, "requirement": requirement.to_json()}
    if attempt is not None:
        body["attempt"] = attempt
    draft.add("question_asked", body, action=action.id, payloads=(shown,))


def goes_on(
    draft: Draft,
    file: ActionFile,
    thought: Thought,
    chance: Chance,
    operators: Requirement,
    *,
    proven: Callable[[Requirement, Verdict], str | None],
) -> bool:
    """Tell whether another attempt at what is unknown may begin; if not, record why, and ask whoever must agree.

    What was granted counts as far as it is what this policy, or else this gate, wants agreed: a gate that asks less of
    its operators cannot give another one's away.

    Args:
        draft: the transaction.
        file: the action, UNKNOWN.
        thought: as it was proposed, with what the policy says now.
        chance: ids and salts.
        operators: what the gate asks for where no policy asks for anybody.
        proven: says why what was granted carries nothing; None where it does (`agentgate.core.proving`).
    """
    judgement, told = thought.judgement, is_told_again(file)
    assert judgement is not None  # a claim asks
    assert thought.spec is not None  # and a tool without one is never claimed
    if not told and not may_run_again(thought.spec, file.action, draft.at_us):
        return False
    decision = judgement.decision
    wanted = decision.requirement
    if told and decision.outcome == "allow":
        wanted = asked_of(file, operators)
    why: str | None = "policy_asks"
    if decision.outcome in {"allow", "require_approval"}:
        if wanted is None:
            return True
        answered = _as_question(wanted) if told else wanted
        if is_granted(file, answered):
            why = proven(answered, "again" if told else "approve")
    if why is None:
        return True
    wait(draft, file, Wait(reason=why), judgement)
    if wanted is not None and why != "no_keyring":  # another gate can tell
        _want(draft, draft.file(file.action.id), thought, chance, _as_question(wanted) if told else wanted)
    return False


def _want(draft: Draft, file: ActionFile, thought: Thought, chance: Chance, requirement: Requirement) -> None:
    """Ask for what a policy wants, unless that hangs there, was answered with no, or is the third thing it wants."""
    question, about = file.question, _about(file, requirement)
    if question is not None and question.state == "rejected" and not _is_newer(file, question.state_n):
        return
    wanted = requirement_digest(requirement, action=file.action.digest, attempt=about)
    if question is not None and question.state == "pending" and question.requirement == wanted:
        return
    alike = [one for one in file.approvals.values() if (one.kind, one.attempt) == (requirement.kind, about)]
    if len({wanted, *(one.requirement for one in alike)}) > MOST_REQUIREMENTS:
        wait(draft, file, Wait(reason="unstable"))
        return
    inquire(draft, file, thought, chance, requirement)


def _about(file: ActionFile, requirement: Requirement) -> int | None:
    """Return the attempt that a question is about, the newest in doubt; an approval is about none."""
    if requirement.kind == "approval":
        return None
    return max(number for number, one in file.attempts.items() if one.unresolved)


def _as_question(requirement: Requirement) -> Requirement:
    return replace(requirement, kind="question")
