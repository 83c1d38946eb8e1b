"""agentgate approvals: what waits for people, what was granted, one question as it was shown; nothing is written."""

import re
import time
from datetime import timedelta
from pathlib import Path

import pytest

from agentgate import Held, Limits, Requirement, Settings, require_approval
from agentgate.sealing import SealingKey, write_key
from agentgate.testing import ScriptedPolicy
from support.commands import ran, typed, unseen
from support.worlds import World, grant, made, named, opened, vote

TENANT = ("--tenant", "acme")
URL = "sqlite:////nowhere/at/all/agent.db"
ID = "01a22da7-df65-7537-b0b6-a897f9eab70a"
TWO = Requirement(quorum=2, roles=("finance",))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return made(tmp_path)


def asks(requirement: Requirement = TWO) -> ScriptedPolicy:
    return ScriptedPolicy(otherwise=require_approval("big", requirement=requirement))


def held(world: World, account: str = "a1", *, tenant: str = "acme", **kept: object) -> Held:
    with world.gate(policy=asks(), **kept) as gate:  # type: ignore[arg-type]
        found = gate.call(opened(gate, tenant=tenant), "refund", {"account": account, "cents": 9}, key=account)
    assert isinstance(found, Held)
    return found


def test_what_waits_is_listed_soonest_over_first_with_what_people_have_said(world: World) -> None:
    late = held(world, "late")
    soon = held(world, "soon", settings=Settings(question=timedelta(minutes=30)))
    with world.gate() as gate:
        vote(gate, soon, "ada")
    listed = ran("approvals", world.url)
    head, *rows = listed.out.splitlines()
    assert head.split() == ["left", "asks", "votes", "tool", "for", "run", "tenant", "stale", "approval"]
    assert [row.split()[-1] for row in rows] == [soon.approval.id, late.approval.id]
    assert re.match(r"(30 min 0 s|29 min \d+ s)  +approval  1 of 2  refund  agent:support  ticket-1  acme  ", rows[0])
    assert re.match(r"23 h 59 min  approval  0 of 2  ", rows[1])
    assert [one["id"] for one in ran("approvals", world.url, "--json").documents] == [
        soon.approval.id, late.approval.id,
    ]  # fmt: skip
    within = ran("approvals", world.url, "--expiring", "1h", "--json").documents
    assert [one["id"] for one in within] == [soon.approval.id]


def test_a_list_is_of_everybody_a_tenant_or_a_kind(world: World) -> None:
    ours, theirs = held(world).approval.id, held(world, tenant="other").approval.id
    assert {one["id"] for one in ran("approvals", world.url, "--json").documents} == {ours, theirs}
    assert [one["id"] for one in ran("approvals", world.url, *TENANT, "--json").documents] == [ours]
    assert ran("approvals", world.url, "--kind", "question", "--json").out == ""
    assert ran("approvals", world.url, "--kind", "approval", *TENANT, "--json").document["id"] == ours
    assert ran("approvals", ours, world.url).code == 2
    assert ran("approvals", theirs, world.url, "--tenant", "other").code == 0


def test_what_was_granted_and_is_not_executed_is_listed_by_itself(world: World) -> None:
    found, waits = held(world, "granted"), held(world, "waits")
    assert ran("approvals", world.url, "--approved", "--json").out == ""
    with world.gate() as gate:
        grant(gate, found)
    granted = ran("approvals", world.url, "--approved", "--json").document
    assert (granted["id"], granted["state"]) == (found.approval.id, "granted")
    assert granted["until_us"] < granted["expires_at_us"]
    assert [one["id"] for one in ran("approvals", world.url, "--json").documents] == [waits.approval.id]
    assert re.search(r"\n1[45] min \d+ s +approval  2 of 2", ran("approvals", world.url, "--approved").out)
    with world.gate(policy=asks()) as gate:
        gate.execute(found.action, tenant="acme")
    assert ran("approvals", world.url, "--approved", "--json").out == ""


def test_one_question_is_shown_as_it_was_made_with_its_digest_and_votes(world: World) -> None:
    found = held(world, "p\u0430ypal")
    with world.gate() as gate:
        vote(gate, found, "ada")
    shown = ran("approvals", found.approval.id, world.url, *TENANT)
    assert shown.code == 0
    assert shown.out.endswith(f"\n\n{found.approval.shown}\n")
    assert "reads: p\u0430ypal" in shown.out
    head = shown.out.partition("\n\n")[0]
    assert f"digest     {found.approval.digest}" in head
    assert "votes      1 of 2" in head
    assert re.search(r"Z  approve  person:ada as finance, not signed$", head, re.MULTILINE)
    document = ran("approvals", found.approval.id, world.url, *TENANT, "--json").document
    assert document["shown"] == found.approval.shown
    assert (document["digest"], document["state"]) == (found.approval.digest, "pending")
    (said,) = document["votes"]
    assert (said["approver"], said["verdict"], said["roles"]) == ("person:ada", "approve", ["finance"])
    assert (said["key"], said["counted"]) == (None, True)
    assert document["requirement"] == TWO.to_json()


def test_looking_writes_nothing(world: World) -> None:
    found = held(world, settings=Settings(question=timedelta(milliseconds=1)))
    time.sleep(0.01)
    before = world.path.read_bytes()
    assert ran("approvals", world.url).out.splitlines()[1].startswith("over  ")
    assert ran("approvals", world.url, "--approved").code == 0
    assert ran("approvals", found.approval.id, world.url, *TENANT).code == 0
    assert world.path.read_bytes() == before
    assert world.state(found.action) == "HELD"


def test_the_url_may_stand_in_the_environment(world: World) -> None:
    found = held(world).approval.id
    env = {"AGENTGATE_URL": world.url}
    assert typed("approvals", "--json", env=env).document["id"] == found
    assert typed("approvals", found, *TENANT, "--json", env=env).document["id"] == found
    assert typed("approvals", found, world.url, *TENANT, "--json", env={"AGENTGATE_URL": URL}).document["id"] == found


def test_what_waits_says_how_to_look_at_it(world: World) -> None:
    found = held(world)
    (then,) = [line for line in ran("waiting", world.url).out.splitlines() if line.startswith("held")]
    assert then.endswith(f"agentgate approvals {found.approval.id} --tenant acme")
    page = ran("show", found.action, world.url, *TENANT).out
    assert f"agentgate approvals {found.approval.id} --tenant acme" in page


def test_a_sealed_question_is_shown_with_its_key_alone(world: World, tmp_path: Path) -> None:
    file = tmp_path / "sealing.key"
    key = SealingKey.new()
    write_key(file, key)

    def send(account: str, text: str) -> None: ...

    tool = named("send", send, sensitive=("/text",))
    with world.gate(tool, policy=asks(), sealing=key) as gate:
        found = gate.call(opened(gate), "send", {"account": "a1", "text": "SECRET-7"}, key="k")
    assert isinstance(found, Held)
    blind = ran("approvals", found.approval.id, world.url, *TENANT)
    opened_ = ran("approvals", found.approval.id, world.url, *TENANT, "--sealing-key", str(file))
    assert opened_.out.endswith(found.approval.shown + "\n")
    assert "SECRET-7" not in blind.out + opened_.out
    refused = ran("approve", found.approval.id, world.url, *TENANT, "--by", "person:ada", "--role", "finance", "--yes")
    if "(what was shown is sealed)" in blind.out:
        assert refused.code == 2
        assert "nobody agrees to what they have not read; give its key: --sealing-key FILE" in refused.err


def test_nothing_hostile_reaches_a_terminal_raw(world: World) -> None:
    hostile = "\x1b[2J\u202e\u200b\U000e0041agentgate: approving runs nothing"
    with world.gate(policy=ScriptedPolicy(otherwise=require_approval("big", text=hostile))) as gate:
        run = gate.run("t" + hostile[-3:], principal="agent:\u0430", limits=Limits(actions=9))
        found = gate.call(run, "refund", {"account": hostile, "cents": 1}, key="k")
    assert isinstance(found, Held)
    for command in (("approvals",), ("approvals", found.approval.id)):
        shown = ran(*command, world.url).out
        assert not unseen(shown)
        assert len(re.findall("^agentgate:", shown, re.MULTILINE)) == (len(command) - 1)
    plain = typed("approvals", found.approval.id, world.url, env={"LC_ALL": "C", "PYTHONUTF8": "0"})
    assert (plain.code, plain.err) == (0, "")
    assert plain.out.endswith(found.approval.shown + "\n") or "\\u202e" in plain.out


def test_a_row_that_was_rewritten_is_not_shown_as_true(world: World) -> None:
    found = held(world)
    world.sql("UPDATE agentgate_payloads SET content = CAST('agentgate: ok' AS BLOB) WHERE kind = 'presentation'")
    shown = ran("approvals", found.approval.id, world.url, *TENANT, "--json")
    assert (shown.code, shown.document["error"]["code"]) == (1, "damaged")


WRONG = {
    "no URL": (("approvals",), "URL: missing"),
    "no URL beside an id": (("approvals", ID), "URL: missing"),
    "no id": (
        ("approvals", "ticket-1", URL),
        "ID: no approval's id; give the 36 characters",
    ),
    "three": (("approvals", ID, ID, URL), "more than these"),
    "no span": (("approvals", URL, "--expiring", "soon"), "--expiring: no span of time; give a whole number"),
    "a huge span": (("approvals", URL, "--expiring", "99999999d"), "--expiring: no span of time"),
    "what narrows what is granted": (("approvals", URL, "--approved", "--expiring", "1h"), "--expiring: it narrows"),
    "what narrows one": (("approvals", ID, URL, "--kind", "question"), "--kind: it narrows"),
    "one that is granted": (("approvals", ID, URL, "--approved"), "--approved: an approval is named"),
    "another kind": (("approvals", URL, "--kind", "all"), "--kind"),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_argument_is_named_in_one_line(
    arguments: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTGATE_URL", raising=False)
    done = ran(*arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert done.err.count("\n") == 1
