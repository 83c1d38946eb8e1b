"""Commands about questions to people: approvals, approve, reject, revoke, answer.

Each that decides shows first, and its answer is bound to the digest of what it has shown: what was asked anew in the
meantime is refused, and no vote is used up. It asks on a terminal; where there is none, somebody must have said --yes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

import agentgate
from agentgate.approval import Verdict
from agentgate.canonical import Json, parse
from agentgate.cli import arguments, pages, questions
from agentgate.cli.acting import looking, opened
from agentgate.cli.arguments import answering, approval_id, as_json, asked_passphrase, common, id_and_url
from agentgate.cli.asking import agreed, must_ask
from agentgate.cli.endings import FOUND, OK, refusal
from agentgate.cli.terminal import complain, say, say_json
from agentgate.clock import SystemClock
from agentgate.core.voting import REMEDIES
from agentgate.errors import Misuse, NotCanonical, VoteRefused
from agentgate.gate.names import DEFAULT_TENANT
from agentgate.gate.questions import Question
from agentgate.ownfiles import read_unchanged
from agentgate.signing import SignedVote, SigningKey, sign_vote

Command = TypeVar("Command", bound=Callable[..., Any])


@click.command(short_help="List what people are asked, or show one question.")
@id_and_url
@arguments.some_tenant
@click.option("--kind", type=click.Choice(("approval", "question")), help="Of actions, or of unknown outcomes.")
@arguments.expiring
@click.option("--approved", is_flag=True, help="What was granted and is not executed.")
@as_json
@answering
def approvals(
    *,
    given: tuple[str | None, str],
    tenant: str | None,
    kind: Literal["approval", "question"] | None,
    expiring: timedelta | None,
    approved: bool,
    json: bool,
) -> int:
    """List what waits for people's answers, soonest over first; with an approval's ID, show what it asks.

    With --json one a line.
    """
    id_, url = given
    narrowed = [name for name, value in (("--kind", kind), ("--expiring", expiring)) if value is not None]
    if narrowed and (approved or id_ is not None):
        raise refusal(narrowed[0], "it narrows what waits for an answer", "leave it out here")
    if approved and id_ is not None:
        raise refusal("--approved", "an approval is named as well", "say one of them")
    with looking(url) as gate:
        if id_ is not None:
            _show(gate.approvals.show(id_, tenant=tenant or DEFAULT_TENANT), json=json)
            return OK
        listed = gate.approvals
        found = listed.unused(tenant=tenant) if approved else listed.list(tenant=tenant, kind=kind, expiring=expiring)
        if json:
            for question in found:
                say_json(questions.document(question))
        else:
            say(questions.table(found, SystemClock()))
    return OK


def _show(question: Question, *, json: bool) -> None:
    if json:
        say_json(questions.document(question))
    else:
        say(questions.page(question, SystemClock()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decision:
    """What somebody has come to say.

    Args:
        id: the approval's id.
        url: its ledger.
        tenant: whose question it is.
        by: who says it.
        digest: what they have seen before; None to go by what is shown now.
        yes: whether they have said yes already.
        note: why.
        json: whether the answer is JSON.
    """

    id: str
    url: str
    tenant: str
    by: str
    digest: str | None
    yes: bool
    note: str
    json: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Voice:
    """Under which roles, or with which signature, a vote is given.

    Args:
        roles: those that the command's user vouches for.
        key: the file of a private key to sign with.
        passphrase: whether that has one.
        signed: a vote that was signed elsewhere.
        keyring: the file of the keys whose signatures count.
    """

    roles: tuple[str, ...]
    key: Path | None
    passphrase: bool
    signed: SignedVote | None
    keyring: Path | None

    def check(self) -> None:
        """Refuse options that do not go together, before anything is opened."""
        signs = [name for name, value in (("--key", self.key), ("--signed-vote", self.signed)) if value is not None]
        if len(signs) > 1:
            raise refusal("--signed-vote", "a key to sign with is named as well", "say one of them")
        if signs and self.keyring is None:
            raise refusal("--keyring", "missing", f"{signs[0]} needs whose signatures count: --keyring FILE")
        if signs and self.roles:
            raise refusal("--role", "a signed vote has the roles of its key", f"leave it out beside {signs[0]}")
        if self.passphrase and self.key is None:
            raise refusal("--passphrase", "there is no key to sign with", "name it: --key FILE")

    def of(self, digest: str, verdict: Verdict, by: str) -> dict[str, Any]:
        """Return what a vote carries, once somebody has agreed to give it."""
        if self.key is None:
            return {"roles": self.roles, "signed": self.signed}
        private = SigningKey.load(self.key, passphrase=asked_passphrase(confirm=False) if self.passphrase else None)
        return {"roles": (), "signed": sign_vote(private, approval=digest, verdict=verdict, approver=by)}


def _signed_vote(_context: click.Context, _parameter: click.Parameter, value: str | None) -> SignedVote | None:
    if value is None:
        return None
    try:
        content = read_unchanged(Path(value[1:]), "--signed-vote") if value.startswith("@") else value.encode()
        return SignedVote.from_json(parse(content))
    except (NotCanonical, Misuse, UnicodeEncodeError) as error:
        remedy = "give the JSON that `agentgate keys sign-vote` prints, or @FILE"
        raise refusal("--signed-vote", f"no signed vote ({error})", remedy) from error


def _decides(command: Command) -> Command:
    """Give a command what every decision takes."""
    yes = click.option("--yes", is_flag=True, help="Decide without asking; needed where there is no terminal.")
    return approval_id(common(arguments.by(arguments.digest(yes(arguments.note(command))))))


def _votes(command: Command) -> Command:
    """Give a command what every vote takes."""
    path = click.Path(path_type=Path)
    key = click.option("--key", metavar="FILE", type=path, help="Sign the vote with this private key.")
    signed = click.option(
        "--signed-vote", "signed", metavar="JSON|@FILE", callback=_signed_vote, help="A vote that was signed elsewhere."
    )
    return _decides(arguments.roles(key(arguments.passphrase(signed(arguments.keyring(command))))))


def _split(given: dict[str, Any]) -> tuple[_Decision, _Voice]:
    voice = _Voice(**{name: given.pop(name) for name in _Voice.__slots__})
    voice.check()
    return _Decision(**given), voice


def _vote(verdict: Literal["approve", "reject"], done: str, given: dict[str, Any]) -> int:
    decision, voice = _split(given)

    def vote(gate: agentgate.Gate, question: Question) -> Question:
        carried = {**_about(decision, question), **voice.of(question.digest, verdict, decision.by)}
        approvals = gate.approvals
        return (approvals.approve if verdict == "approve" else approvals.reject)(question.id, **carried)

    return _decide(decision, verdict, done, vote, keyring=voice.keyring)


@click.command(short_help="Say yes to an action, as it is shown.")
@_votes
@answering
def approve(**given: Any) -> int:
    """Say yes to the action that approval ID asks about: exactly what is shown, once."""
    return _vote("approve", "approved", given)


@click.command(short_help="Say no, which is final for the action.")
@_votes
@answering
def reject(**given: Any) -> int:
    """Say no to approval ID, which ends the question at once and, for an approval, the action for good."""
    return _vote("reject", "rejected", given)


@click.command(short_help="Answer an operators' question.")
@click.option("--again", "verdict", flag_value="again", help="Run it once more, although it may have happened.")
@click.option("--applied", "verdict", flag_value="applied", help="It happened.")
@click.option("--not-applied", "verdict", flag_value="not_applied", help="It did not happen, and will not.")
@click.option("--evidence", metavar="TEXT|@FILE", callback=arguments.some_evidence, help="What shows it.")
@click.option("--result", metavar="JSON", callback=arguments.result, help="What the loop is told of what happened.")
@click.option("--worker-known-dead", is_flag=True, help="The worker that began it is known not to come back.")
@_votes
@answering
def answer(
    *,
    verdict: Literal["again", "applied", "not_applied"] | None,
    evidence: str | None,
    result: Json,
    worker_known_dead: bool,
    **given: Any,
) -> int:
    """Say what became of the action that question ID asks operators about, or that it is to run once more.

    To end the question without an answer, reject it.
    """
    if verdict is None:
        raise refusal("--again|--applied|--not-applied", "missing", "say one of them")
    if verdict != "applied" and result is not None:
        raise refusal("--result", "there is none of what is not known to have happened", "leave it out")
    decision, voice = _split(given)
    found: dict[str, Any] = {"evidence": evidence, "result": result, "worker_known_dead": worker_known_dead}

    def say_so(gate: agentgate.Gate, question: Question) -> Question:
        carried = voice.of(question.digest, verdict, decision.by)
        return gate.approvals.answer(question.id, verdict=verdict, **_about(decision, question), **carried, **found)

    word = verdict.replace("_", " ")
    return _decide(decision, f"answer '{word}' to", f"answered '{word}'", say_so, keyring=voice.keyring)


@click.command(short_help="Take a vote back, or end a grant that is not used.")
@_decides
@answering
def revoke(**given: Any) -> int:
    """Take your own vote on approval ID back while nothing is decided; once it is granted, end the grant."""
    decision = _Decision(**given)

    def take_back(gate: agentgate.Gate, question: Question) -> Question:
        return gate.approvals.revoke(question.id, **_about(decision, question))

    return _decide(decision, "revoke", "taken back", take_back)


DECIDING = (approve, reject, revoke, answer)


def _about(decision: _Decision, question: Question) -> dict[str, Any]:
    return {"digest": question.digest, "by": decision.by, "note": decision.note, "tenant": decision.tenant}


def _decide(
    decision: _Decision,
    verb: str,
    done: str,
    work: Callable[[agentgate.Gate, Question], Question],
    *,
    keyring: Path | None = None,
) -> int:
    """Show a question, ask where that is needed, and decide what was shown."""
    asks = must_ask(yes=decision.yes, json=decision.json)
    with opened(decision.url, keyring=keyring) as gate:
        question = gate.approvals.show(decision.id, tenant=decision.tenant)
        if decision.digest not in {None, question.digest}:
            raise VoteRefused(question.id, "other_digest", REMEDIES["other_digest"])
        _check_readable(question, verb, seen=decision.digest is not None)
        if not decision.json:
            say(questions.page(question, SystemClock()))
        what = f"{verb} this, {pages.tool(question.namespace, question.tool)}"
        if asks and not agreed(what, to=verb):
            complain("agentgate: nothing was decided")
            return FOUND
        after = work(gate, question)
    if decision.json:
        say_json(questions.document(after))
    else:
        say(["", _told(after, f"{done} by {pages.text(decision.by)}")])
    return OK


def _check_readable(question: Question, verb: str, *, seen: bool) -> None:
    """Let nobody agree to what they cannot have read; saying no needs no reading."""
    why = questions.UNREADABLE.get(question.shown)
    if why is None or seen or verb in {"reject", "revoke"}:
        return
    remedy = {"sealed": "give its key: --sealing-key FILE", "erased": "reject it, and let the loop propose again"}[why]
    raise refusal("ID", f"what was shown is {why}, and nobody agrees to what they have not read", remedy)


def _told(question: Question, done: str) -> str:
    until = "" if question.state != "granted" or question.until is None else f", until {pages.time(question.until)}"
    so_far = f", {questions.quorum(question)}" if question.state == "pending" else ""
    return f"approval {question.id}: {done}; it is {question.state} now{until}{so_far}"
