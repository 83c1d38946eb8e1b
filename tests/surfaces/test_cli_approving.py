"""approve, reject and revoke: they show, and what they decide is what they have shown, or nothing."""

import json
import subprocess
from pathlib import Path

import pytest

from agentgate import Done, Gate, Held, Requirement, require_approval
from agentgate.testing import ScriptedPolicy
from support import forking
from support.commands import AGENTGATE, SECONDS, ran, typed, unseen
from support.signers import entry, keyring_file, signer
from support.terminals import answered
from support.worlds import World, grant, made, opened

TENANT = ("--tenant", "acme")
ADA = (*TENANT, "--by", "person:ada", "--role", "finance")
BOB = (*TENANT, "--by", "person:bob", "--role", "finance")
TWO = Requirement(quorum=2, roles=("finance",))
ONE = Requirement(roles=("finance",))
SIGNED = Requirement(roles=("finance",), signed=True)
URL = "sqlite:////nowhere/at/all/agent.db"
ID = "01a22da7-df65-7537-b0b6-a897f9eab70a"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return made(tmp_path)


def asks(requirement: Requirement) -> ScriptedPolicy:
    return ScriptedPolicy(otherwise=require_approval("big", requirement=requirement))


def call(gate: Gate, *, cents: int = 900) -> object:
    return gate.call(opened(gate), "refund", {"account": "a1", "cents": cents}, key="k")


def held(world: World, requirement: Requirement = ONE) -> Held:
    with world.gate(policy=asks(requirement)) as gate:
        found = call(gate)
    assert isinstance(found, Held)
    return found


def votes(world: World) -> list[tuple[str, str]]:
    return [(str(a), str(b)) for a, b in world.sql("SELECT approver, verdict FROM agentgate_votes ORDER BY n")]


def test_two_people_approve_and_the_loop_executes_once(world: World) -> None:
    found = held(world, TWO)
    first = ran("approve", found.approval.id, world.url, *ADA, "--yes", "--note", "looked at it")
    assert (first.code, first.err) == (0, "")
    assert f"\n\n{found.approval.shown}\n\n" in first.out
    assert first.out.endswith(f"approval {found.approval.id}: approved by person:ada; it is pending now, 1 of 2\n")
    again = ran("approve", found.approval.id, world.url, *ADA, "--yes", "--json").document
    assert (again["state"], len(again["votes"])) == ("pending", 1)
    second = ran("approve", found.approval.id, world.url, *BOB, "--yes", "--json").document
    assert (second["state"], second["digest"]) == ("granted", found.approval.digest)
    with world.gate(policy=asks(TWO)) as gate:
        assert isinstance(call(gate), Done)
        assert isinstance(call(gate), Done)
    assert world.downstream.total == 1
    steps = ran("show", found.action, world.url, *TENANT, "--json").document["steps"]
    assert [step["texts"] for step in steps if step["type"] == "voted"] == [{"note": "looked at it"}, {}]
    assert not world.damage()


def test_a_no_is_final_and_a_grant_can_be_taken_back_before_it_is_used(world: World) -> None:
    found = held(world)
    assert ran("approve", found.approval.id, world.url, *ADA, "--yes").code == 0
    taken = ran("revoke", found.approval.id, world.url, *TENANT, "--by", "ops:eve", "--yes")
    assert taken.out.endswith("taken back by ops:eve; it is revoked now\n")
    late = ran("approve", found.approval.id, world.url, *ADA, "--yes", "--json")
    assert (late.code, late.document["error"]["code"], late.document["error"]["reason"]) == (
        1, "vote_refused", "revoked",
    )  # fmt: skip
    with world.gate(policy=asks(ONE)) as gate:
        other = gate.call(opened(gate), "refund", {"account": "a2", "cents": 1}, key="other")
    assert isinstance(other, Held)
    said = ran("reject", other.approval.id, world.url, *ADA, "--yes")
    assert said.out.endswith("rejected by person:ada; it is rejected now\n")
    assert world.state(other.action) == "REFUSED"
    assert world.downstream.total == 0


def test_on_a_terminal_it_shows_asks_and_takes_yes_alone(world: World) -> None:
    found = held(world)
    command = ("approve", found.approval.id, world.url, *ADA)
    question = b"Type yes to approve: "
    for answer in (b"y\n", b"\n", b"no\n", b"refund\n", b"YES!\n", b"\x04"):
        code, shown = answered(*command, answers={question: answer})
        assert (code, votes(world)) == (1, []), answer
        assert b"nothing was decided" in shown
    code, shown = answered(*command, answers={question: b"yes\n"})
    assert code == 0
    text = shown.decode().replace("\r\n", "\n")
    assert found.approval.shown in text.partition(question.decode())[0]
    assert f"digest     {found.approval.digest}" in text
    assert not unseen(text)
    assert votes(world) == [("person:ada", "approve")]


def test_what_was_typed_before_the_question_stood_there_is_no_answer(world: World) -> None:
    found = held(world)
    command = ("approve", found.approval.id, world.url, *ADA)
    code, _ = answered(*command, answers={b"Type yes to approve: ": b"no\n"}, before=b"yes\n")
    assert (code, votes(world)) == (1, [])


def test_an_interrupt_at_the_question_decides_nothing(world: World) -> None:
    found = held(world)
    code, _ = answered("approve", found.approval.id, world.url, *ADA, answers={b"Type yes to approve: ": b"\x03"})
    assert (code, votes(world)) == (130, [])


def test_an_end_of_input_at_the_question_decides_nothing(world: World) -> None:
    found = held(world)
    code, _ = answered("approve", found.approval.id, world.url, *ADA, answers={b"Type yes to approve: ": b"\x04"})
    assert (code, votes(world)) == (1, [])


def test_what_is_asked_anew_between_the_text_and_the_answer_is_refused_and_no_vote_used(world: World) -> None:
    found = held(world)

    def replaced() -> bytes:
        with world.gate(policy=asks(ONE)) as gate:
            arguments = {"account": "a1", "cents": 99_999}
            gate.propose(opened(gate), "refund", arguments, key="k", supersede=True)
        return b"yes\n"

    code, shown = answered("approve", found.approval.id, world.url, *ADA, answers={b"Type yes to approve: ": replaced})
    assert code == 1
    assert b": void; another question, or another call, has taken its place; look at what waits now" in shown
    assert votes(world) == []
    (now,) = ran("approvals", world.url, "--json").documents
    assert "cents = 99999" in now["shown"]
    assert ran("approve", now["id"], world.url, *ADA, "--yes", "--digest", found.approval.digest).code == 1
    assert votes(world) == []
    assert not world.damage()


def test_a_script_says_yes_and_may_say_what_it_has_seen(world: World) -> None:
    found = held(world)
    other = "0" * 64
    refused = ran("approve", found.approval.id, world.url, *ADA, "--yes", "--digest", other)
    assert (refused.code, refused.out) == (1, "")
    assert "other_digest; the digest is not that of what is asked; look at the question again" in refused.err
    assert votes(world) == []
    seen = ran("approvals", found.approval.id, world.url, *TENANT, "--json").document["digest"]
    assert ran("approve", found.approval.id, world.url, *ADA, "--yes", "--digest", seen.upper()).code == 0


@pytest.mark.parametrize("verb", ["approve", "reject", "revoke"])
def test_without_a_terminal_and_without_yes_nothing_is_decided(world: World, verb: str) -> None:
    found = held(world)
    by = ADA if verb != "revoke" else (*TENANT, "--by", "person:ada")
    done = typed(verb, found.approval.id, world.url, *by)  # stdin is /dev/null
    assert (done.code, done.out) == (2, "")
    assert "--yes: missing; there is no terminal to ask on: look first, then say --yes" in done.err
    piped = subprocess.run(
        [AGENTGATE, verb, found.approval.id, world.url, *by], input=b"yes\n", capture_output=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    assert piped.returncode == 2
    assert (votes(world), world.state(found.action)) == ([], "HELD")


def test_where_the_text_cannot_be_written_nothing_is_decided(world: World) -> None:
    found = held(world)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [AGENTGATE, "approve", found.approval.id, world.url, *ADA, "--yes"],
            stdout=full, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=SECONDS, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert b"stdout cannot be written" in done.stderr
    assert b"Traceback" not in done.stderr
    assert votes(world) == []


def test_a_locale_without_letters_changes_nothing(world: World) -> None:
    found = held(world)
    env = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = typed("approve", found.approval.id, world.url, *ADA, "--yes", "--note", "dés\u202e", env=env)
    assert (done.code, done.err) == (0, "")


def test_two_processes_that_approve_at_once_are_two_votes_and_one_grant(world: World) -> None:
    found = held(world, TWO)
    command: list[str] = [str(AGENTGATE), "approve", found.approval.id, world.url, "--yes", "--json"]
    many = [
        subprocess.Popen([*command, *who], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        for who in map(list, (ADA, BOB, ADA, BOB))
    ]
    said = [(process.communicate(timeout=SECONDS)[0], process.returncode) for process in many]
    assert {code for _, code in said} == {0}
    assert "granted" in {json.loads(out)["state"] for out, _ in said}
    assert sorted(votes(world)) == [("person:ada", "approve"), ("person:bob", "approve")]
    assert world.words(found.action).count("approved") == 1
    assert not world.damage()


def test_pending_approvals_survive_a_sigkill_and_are_decided_from_the_command_line(world: World) -> None:
    def ask_and_die() -> None:
        call(world.gate(policy=asks(TWO)))
        forking.die()

    assert forking.run(ask_and_die) == forking.KILLED
    listed = typed("approvals", world.url, "--json").document
    shown = typed("approvals", listed["id"], world.url, *TENANT).out
    assert shown.endswith(listed["shown"] + "\n")
    for who in (ADA, BOB):
        said = typed("approve", listed["id"], world.url, *who, "--yes", "--digest", listed["digest"])
        assert said.code == 0, said.err
    assert typed("approvals", world.url, "--approved", "--json").document["id"] == listed["id"]
    with world.gate(policy=asks(TWO)) as gate:
        assert isinstance(call(gate), Done)
    assert world.downstream.total == 1
    assert typed("approvals", world.url, "--approved", "--json").out == ""
    assert not world.damage()


def test_what_does_not_count_is_said_with_what_would_do(world: World) -> None:
    found = held(world)
    by_nobody = (*TENANT, "--by", "person:eve")
    own = (*TENANT, "--by", "agent:support", "--role", "finance")
    for options, words in (
        (by_nobody, "no_role; you hold none of the roles it asks for; ask somebody who does"),
        (own, "own_request; who proposed a call does not approve it; ask somebody else"),
    ):
        done = ran("approve", found.approval.id, world.url, *options, "--yes")
        assert (done.code, done.err.count("\n")) == (1, 1)
        assert words in done.err
    assert votes(world) == []
    assert ran("revoke", found.approval.id, world.url, *by_nobody, "--yes").code == 1
    assert ran("approve", found.approval.id, world.url, "--by", "person:ada", "--yes").code == 2  # of another tenant
    with world.gate() as gate:
        grant(gate, found)
    assert "granted; it is granted already" in ran("approve", found.approval.id, world.url, *BOB, "--yes").err


def test_a_vote_is_signed_here_or_elsewhere_and_judged_by_the_keyring(world: World, tmp_path: Path) -> None:
    ring = str(keyring_file(tmp_path / "ring.json", entry("ada"), entry("bob")))
    private = tmp_path / "ada.pem"
    signer("ada").save(private)
    found = held(world, SIGNED)
    ada, of = ("--by", "person:ada"), (found.approval.id, world.url, *TENANT)
    unsigned = ran("approve", *of, *ada, "--yes")
    assert (unsigned.code, "unsigned; it takes signed votes alone" in unsigned.err) == (1, True)
    elsewhere = ran(
        "keys", "sign-vote", "--digest", found.approval.digest, "--verdict", "approve", *ada,
        "--signing-key", str(private),
    )  # fmt: skip
    vote = tmp_path / "vote.json"
    vote.write_text(elsewhere.out, "utf-8")
    stranger = ran("approve", *of, "--by", "person:bob", "--yes", "--signed-vote", f"@{vote}", "--keyring", ring)
    assert (stranger.code, "wrong_approver" in stranger.err) == (1, True)
    no = ran("reject", *of, *ada, "--yes", "--signed-vote", f"@{vote}", "--keyring", ring)
    assert (no.code, "wrong_verdict" in no.err) == (1, True)
    assert votes(world) == []
    given = ran("approve", *of, *ada, "--yes", "--signed-vote", f"@{vote}", "--keyring", ring, "--json").document
    assert (given["state"], given["votes"][0]["key"]) == ("granted", signer("ada").hash.hex())
    again = ran("approve", *of, *ada, "--yes", "--signed-vote", elsewhere.out.strip(), "--keyring", ring)
    assert (again.code, len(votes(world))) == (0, 1)

    with world.gate(policy=asks(SIGNED)) as gate:
        other = gate.call(opened(gate), "refund", {"account": "a2", "cents": 1}, key="other")
    assert isinstance(other, Held)
    here = (other.approval.id, world.url, *TENANT, *ada, "--yes", "--key", str(private), "--keyring", ring, "--json")
    assert ran("approve", *here).document["state"] == "granted"
    assert not world.damage()


def test_a_passphrase_is_asked_once_it_was_shown_and_agreed_to(world: World, tmp_path: Path) -> None:
    ring = str(keyring_file(tmp_path / "ring.json", entry("ada")))
    private = tmp_path / "ada.pem"
    signer("ada").save(private, passphrase="Zq-secret-7")
    found = held(world, SIGNED)
    options = ("--by", "person:ada", "--key", str(private), "--passphrase", "--keyring", ring)
    answers = {b"Type yes to approve: ": b"yes\n", b"Passphrase: ": b"Zq-secret-7\n"}
    code, shown = answered("approve", found.approval.id, world.url, *TENANT, *options, answers=answers)
    assert code == 0, shown
    assert b"Zq-secret-7" not in shown
    assert b"it is granted now" in shown


BY = ("--by", "person:ada")
WRONG = {
    "nobody": (("approve", ID, URL, "--yes"), "--by: missing; name who does this"),
    "no id": (("approve", "refund-1", URL, *BY, "--yes"), "ID: no approval's id; give the 36 characters"),
    "a position": (("approve", "1", URL, *BY, "--yes"), "ID: no approval's id"),
    "a URL for an id": (("reject", URL, ID, *BY, "--yes"), "ID: this is a URL"),
    "no digest": (("approve", ID, URL, *BY, "--yes", "--digest", "5f"), "--digest: no digest; give the 64"),
    "an empty role": (("approve", ID, URL, *BY, "--yes", "--role", ""), "--role"),
    "a key without a keyring": (("approve", ID, URL, *BY, "--yes", "--key", "a"), "--keyring: missing; --key needs"),
    "a key and a vote": (
        ("approve", ID, URL, *BY, "--yes", "--key", "a", "--keyring", "r", "--signed-vote", json.dumps(
            {"approval": "0" * 64, "verdict": "approve", "approver": "a", "key": "0" * 64, "nonce": "0" * 32,
             "signature": "0" * 128})),
        "--signed-vote: a key to sign with is named as well",
    ),
    "no vote": (("approve", ID, URL, *BY, "--yes", "--signed-vote", "{}"), "--signed-vote: no signed vote"),
    "a vote in no file": (("approve", ID, URL, *BY, "--yes", "--signed-vote", "@/no"), "--signed-vote: no signed vote"),
    "a role beside a key": (
        ("approve", ID, URL, *BY, "--yes", "--key", "a", "--keyring", "r", "--role", "b"), "--role: a signed vote has"
    ),
    "a passphrase of nothing": (("approve", ID, URL, *BY, "--yes", "--passphrase"), "--passphrase: there is no key"),
    "json without yes": (("approve", ID, URL, *BY), "--yes: missing"),
    "no answer": (("answer", ID, URL, *BY, "--yes"), "--again|--applied|--not-applied: missing; say one of them"),
    "a result of nothing": (("answer", ID, URL, *BY, "--yes", "--again", "--result", "1"), "--result: there is none"),
    "empty evidence": (("answer", ID, URL, *BY, "--yes", "--applied", "--evidence", " "), "--evidence: empty"),
    "a vote on nothing": (
        ("keys", "sign-vote", "--verdict", "approve", *BY, "--signing-key", "a"), "--digest: missing",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_argument_is_named_in_one_line(arguments: tuple[str, ...], words: str) -> None:
    done = ran(*arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert done.err.count("\n") == 1
