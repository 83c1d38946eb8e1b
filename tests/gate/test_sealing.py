"""What sensitive arguments leave in the database is sealed; who has the key reads on, who has not is told so."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import agentgate
from agentgate import (
    Damaged,
    Done,
    Failed,
    Held,
    Misuse,
    Refused,
    Sealed,
    SealingKey,
    SealingKeys,
    SpecRefused,
    Unknown,
)
from agentgate.gate import reading
from agentgate.gate.views import ActionView
from agentgate.testing import ScriptedPolicy
from agentgate.tools.decorator import AnyTool
from support.worlds import World, named, opened

CARD = "4000-0012-3456-7899"
KEY = SealingKey(bytes(range(32)))
OTHER = SealingKey(bytes(32))


def charge(**declared: Any) -> AnyTool:
    """Make a tool with a sensitive argument, which it echoes."""

    def charge(card: str, cents: int) -> dict[str, Any]:
        assert card == CARD
        return {"charged": cents, "card": card, "text": f"charged {card}"}

    return named("charge", charge, **{"sensitive": ["/card"]} | declared)


def same(a: int) -> int:
    return a


def called(world: World, **options: Any) -> agentgate.Outcome:
    with world.gate(charge(), sealing=KEY, **options) as gate:
        return gate.call(opened(gate), "charge", {"card": CARD, "cents": 5}, key="k")


def quiet(world: World) -> bool:
    return not any(CARD.encode() in path.read_bytes() for path in world.folder.iterdir())


def flip(world: World, kind: str, place: int = 20) -> None:
    """Flip a bit of a sealed text."""
    run, n, content = world.sql("SELECT run, n, content FROM agentgate_payloads WHERE kind = ?", kind)[0]
    changed = bytearray(content)
    changed[place] ^= 1
    world.sql(
        "UPDATE agentgate_payloads SET content = ? WHERE run = ? AND n = ? AND kind = ?", bytes(changed), run, n, kind
    )


def test_the_effect_gets_the_real_value_and_the_record_none(world: World) -> None:
    outcome = called(world)
    assert isinstance(outcome, Done)
    assert outcome.observation.value == {"charged": 5, "card": "[sensitive]", "text": "charged [sensitive]"}
    assert quiet(world)
    rows = world.sql("SELECT kind, salt, sealed_by FROM agentgate_payloads")
    assert {kind for kind, _, _ in rows} == {"arguments", "result"}
    assert {(salt, by) for _, salt, by in rows} == {(None, KEY.id)}


def test_a_gate_without_a_key_refuses_a_spec_with_sensitive_arguments(world: World) -> None:
    with pytest.raises(SpecRefused, match="sealing="):
        world.gate(charge())
    with world.gate() as gate, pytest.raises(SpecRefused, match="/sensitive"):
        gate.register(charge())


def test_what_is_not_sensitive_is_not_sealed_but_raw_input_always_is(world: World) -> None:
    with world.gate(named("act", same), sealing=KEY) as gate:
        run = opened(gate)
        known = gate.call(run, "act", '{"a": 1 }').action
        broken = gate.call(run, "act", '{"a": 1, "a": 2}').action
        unknown = gate.call(run, "nothing", '{"a": 1}', provenance={"from": "mail"}).action
    kept = {action: sealed(world, action) for action in (known, broken, unknown)}
    assert kept[known] == {"raw": KEY.id, "arguments": None, "result": None}
    assert kept[broken] == {"raw": KEY.id, "result": None}
    # The tool may be a misspelt one with sensitive arguments.
    assert kept[unknown] == {"raw": KEY.id, "provenance": KEY.id, "result": KEY.id}
    assert agentgate.verify(world.url, sealing=KEY).sealed == 0


def sealed(world: World, action: str) -> dict[str, str | None]:
    """Tell which payloads of an action are sealed by which key."""
    places = [(event.run, event.n) for event in world.events(action)]
    rows = world.sql("SELECT run, n, kind, sealed_by FROM agentgate_payloads")
    return {kind: by for run, n, kind, by in rows if (run, n) in places}


def test_a_repeat_is_found_with_the_key_with_older_keys_and_by_fingerprint_without(world: World) -> None:
    first = called(world)
    rotated = SealingKeys(OTHER, (KEY,))
    with world.gate(charge(), sealing=rotated) as gate:
        again = gate.call(opened(gate), "charge", {"card": CARD, "cents": 5}, key="k")
    assert isinstance(first, Done)
    assert isinstance(again, Done)
    assert (again.source, again.observation) == ("replayed", first.observation)
    with world.gate(charge(), sealing=OTHER) as gate:
        run = opened(gate)
        lost = gate.call(run, "charge", {"card": CARD, "cents": 5}, key="k")
        with pytest.raises(agentgate.KeyConflict):
            gate.call(run, "charge", {"card": CARD, "cents": 6}, key="k")
    assert isinstance(lost, Done)
    assert (lost.action, lost.source, lost.observation.notes) == (first.action, "replayed", ("sealed",))


def test_an_action_whose_arguments_cannot_be_opened_is_not_claimed_and_not_lost(world: World) -> None:
    with world.gate(charge(), sealing=KEY) as gate:
        proposal = gate.propose(opened(gate), "charge", {"card": CARD, "cents": 5})
    with world.gate(charge(), sealing=OTHER) as gate, pytest.raises(Sealed) as raised:
        gate.execute(proposal)
    assert (raised.value.what, raised.value.key, raised.value.known) == ("arguments", KEY.id, (OTHER.id,))
    with world.gate() as gate, pytest.raises(Sealed, match="no key"):
        gate.execute(proposal)
    assert world.state(proposal.action) == "READY"
    with world.gate(charge(), sealing=KEY) as gate:
        assert isinstance(gate.execute(proposal), Done)


def test_a_gate_without_the_key_cancels_but_writes_nothing_beside_it(world: World) -> None:
    with world.gate(charge(), sealing=KEY) as gate:
        run = opened(gate)
        one, other = (gate.propose(run, "charge", {"card": CARD, "cents": cents}) for cents in (5, 6))
    with world.gate() as gate:
        gate.cancel(one, by="ops")
        with pytest.raises(Sealed, match="texts"):
            gate.cancel(other, by="ops", note=f"not {CARD}")
    assert (world.state(one.action), world.state(other.action)) == ("REFUSED", "READY")
    assert quiet(world)


def test_people_and_models_are_shown_a_mark_and_the_policy_sees_the_value(world: World) -> None:
    seen: list[Any] = []

    def policy(request: agentgate.PolicyRequest) -> agentgate.Decision:
        seen.append(request.arguments)
        assert CARD not in repr(request)
        reason = agentgate.Reason(code="card", text=f"the card {CARD} is new")
        return agentgate.Decision(
            outcome="require_approval", rule="r", reasons=(reason,), requirement=agentgate.Requirement()
        )

    with world.gate(charge(), sealing=KEY, policy=agentgate.python_policy(policy, identity="p")) as gate:
        outcome = gate.call(opened(gate), "charge", {"card": CARD, "cents": 5}, key="k")
    assert isinstance(outcome, Held)
    assert seen == [{"card": CARD, "cents": 5}]
    assert "card = [sensitive]" in outcome.approval.shown
    assert "the card [sensitive] is new" in outcome.approval.shown
    assert CARD not in repr(outcome)
    assert quiet(world)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"card": CARD}, "/: "),
        ({"card": [CARD], "cents": 5}, "/card"),
        ({"card": CARD, "cents": CARD}, "/cents"),
        ({"card": CARD, "cents": 5, CARD: 1}, "/[sensitive]"),
        (f'{{"card": {{"{CARD}": 1e999}}, "cents": 5}}', "/card"),
        (f'{{"{CARD}": 1e999}}', "/[sensitive]"),
        (f'{{"card": "{CARD}"', "not a JSON value"),
    ],
)
def test_a_refusal_quotes_neither_a_value_nor_a_name_that_the_model_made_up(
    world: World, arguments: Any, told: str
) -> None:
    with world.gate(charge(), sealing=KEY) as gate:
        outcome = gate.call(opened(gate), "charge", arguments)
    assert isinstance(outcome, Refused)
    assert told in outcome.error.message
    assert CARD not in repr(outcome)
    assert quiet(world)


def test_a_path_into_an_unknown_tools_input_is_not_repeated(world: World) -> None:
    for sealing in (None, KEY):
        with world.gate(sealing=sealing) as gate:
            outcome = gate.call(opened(gate), "chrage", f'{{"{CARD}": 1e999}}')
        assert isinstance(outcome, Refused)
        assert CARD not in repr(outcome)
    assert quiet(world)


def test_verify_opens_with_the_key_and_counts_without(world: World) -> None:
    called(world)
    with_key, without = agentgate.verify(world.url, sealing=KEY), agentgate.verify(world.url)
    assert (with_key.ok, with_key.sealed) == (True, 0)
    assert (without.ok, without.sealed, without.to_json()["sealed"]) == (True, 2, 2)
    assert agentgate.verify(world.url, sealing=OTHER).sealed == 2


@pytest.mark.parametrize("place", [0, 1, 13, 60, -1])
def test_a_flipped_bit_of_a_sealed_text_is_found_with_the_key(world: World, place: int) -> None:
    called(world)
    flip(world, "result", place)
    found = agentgate.verify(world.url, sealing=KEY)
    assert [one.kind for one in found.breaks] == ["payload"]
    with world.gate(charge(), sealing=KEY) as gate, pytest.raises(Damaged):
        gate.call(opened(gate), "charge", {"card": CARD, "cents": 5}, key="k")


@pytest.mark.parametrize(
    "edit",
    [
        f"UPDATE agentgate_payloads SET sealed_by = '{OTHER.id}'",
        "UPDATE agentgate_payloads SET sealed_by = NULL",
        "UPDATE agentgate_payloads SET sealed_by = 'nobody'",
        "UPDATE agentgate_payloads SET salt = zeroblob(32)",
        "UPDATE agentgate_payloads SET content = (SELECT max(content) FROM agentgate_payloads)",
        "UPDATE agentgate_payloads SET content = substr(content, 1, 20)",
        "DELETE FROM agentgate_payloads WHERE kind = 'result'",
    ],
)
@pytest.mark.parametrize("ring", [SealingKeys(KEY), SealingKeys(OTHER, (KEY,))])
def test_what_was_done_to_a_sealed_row_is_found_with_the_key(world: World, edit: str, ring: SealingKeys) -> None:
    called(world)
    world.sql(edit)
    assert "payload" in {one.kind for one in agentgate.verify(world.url, sealing=ring).breaks}


def test_a_seal_that_nobody_asked_for_hides_nothing(world: World) -> None:
    with world.gate(named("act", same)) as gate:
        gate.call(opened(gate), "act", {"a": 1})
    world.sql(
        "UPDATE agentgate_payloads SET salt = NULL, content = zeroblob(100), sealed_by = ? WHERE kind = 'arguments'",
        OTHER.id,
    )
    assert [one.kind for one in agentgate.verify(world.url).breaks] == ["payload"]


def test_a_recheck_evaluates_what_its_key_opens(world: World) -> None:
    called(world)
    policy = ScriptedPolicy()
    assert agentgate.recheck(world.url, policy, sealing=KEY).verdict == "same"
    assert agentgate.recheck(world.url, policy).reasons == {"payload_sealed:arguments": 1}
    with ThreadPoolExecutor() as executor:
        assert agentgate.recheck(world.url, policy, sealing=KEY, executor=executor).verdict == "same"
    flip(world, "arguments")
    assert agentgate.recheck(world.url, policy, sealing=KEY).reasons == {"payload_damaged:arguments": 1}


def test_a_view_masks_with_the_key_and_says_what_is_sealed_without(world: World) -> None:
    outcome = called(world)
    with reading.opened(world.url, sealing=KEY) as ledger:
        found = reading.find(ledger, outcome.action, tenant="acme")
    assert isinstance(found, ActionView)
    assert found.proposed == {"arguments": {"card": "[sensitive]", "cents": 5}}
    assert found.sealed == ()
    assert CARD not in repr(found)
    with reading.opened(world.url) as ledger:
        dark = reading.find(ledger, outcome.action, tenant="acme")
    assert isinstance(dark, ActionView)
    assert (dark.proposed, dark.sealed) == ({}, ("arguments", "result"))


def test_evidence_and_results_of_people_are_sealed_and_masked(world: World) -> None:
    def lost(card: str, cents: int) -> None:
        raise RuntimeError(f"lost {card} after {cents}")

    with world.gate(named("charge", lost, sensitive=["/card"]), sealing=KEY) as gate:
        outcome = gate.call(opened(gate), "charge", {"card": CARD, "cents": 5}, key="k")
        assert isinstance(outcome, Unknown)
        assert CARD not in repr(outcome)
        proposal = gate.reconcile(
            outcome.action, applied=True, by="ops", evidence={"seen": CARD}, result={"card": CARD}, tenant="acme"
        )
    assert isinstance(proposal.outcome, Done)
    assert proposal.outcome.observation.value == {"card": "[sensitive]"}
    with reading.opened(world.url, sealing=KEY) as ledger:
        assert CARD not in repr(reading.find(ledger, outcome.action, tenant="acme"))
    assert quiet(world)
    assert agentgate.verify(world.url, sealing=KEY).ok


def test_a_runs_goal_is_sealed_where_there_is_a_key(world: World) -> None:
    with world.gate(charge(), sealing=KEY) as gate:
        gate.run("r", principal="p", goal=f"charge {CARD}")
        gate.run("r", principal="p", goal=f"charge {CARD}")
        with pytest.raises(agentgate.RunConflict):
            gate.run("r", principal="p", goal="another")
    with world.gate() as gate:
        gate.run("r", principal="p")
        with pytest.raises(Sealed):
            gate.run("r", principal="p", goal=f"charge {CARD}")
    assert quiet(world)


def test_undeclared_arguments_of_such_a_tool_count_as_sensitive(world: World) -> None:
    spec = agentgate.ToolSpec(
        name="charge", input_schema={"properties": {"card": {}}}, sensitive=["/card"], undeclared="allow"
    )
    tool = agentgate.gated(spec, lambda **given: given)
    with world.gate(tool, sealing=KEY, policy=ScriptedPolicy(agentgate.require_approval("r", "c"))) as gate:
        outcome = gate.call(opened(gate), "charge", {"crad": CARD, CARD: 1})
    assert isinstance(outcome, Held)
    assert "  [sensitive]: 2 more, not declared by the tool" in outcome.approval.shown
    assert CARD not in repr(outcome)


# --- keys ------------------------------------------------------------------------------------------


def test_a_key_shows_its_id_and_nothing_else() -> None:
    ring = SealingKeys(KEY, (OTHER,))
    assert repr(KEY) == f"SealingKey(id='{KEY.id}')"
    assert KEY.text() not in repr(ring)
    assert str(bytes(range(32)))[5:20] not in repr(ring)
    assert ring.ids == (KEY.id, OTHER.id)
    assert SealingKey.new().id != SealingKey.new().id


def test_keys_come_from_a_private_file_the_environment_or_a_function(
    tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "keys"
    path.write_text(f"# comment\n{KEY.text()}\n\n{OTHER.key.hex()}\n")
    path.chmod(0o644)
    with pytest.raises(Misuse, match="chmod 600"):
        SealingKeys.from_file(path)
    path.chmod(0o600)
    assert SealingKeys.from_file(path) == SealingKeys(KEY, (OTHER,))
    monkeypatch.setenv("KEYS", f"{KEY.text()} {OTHER.text()}")
    assert SealingKeys.from_environment("KEYS") == SealingKeys(KEY, (OTHER,))
    with world.gate(charge(), sealing=lambda: SealingKeys.from_file(path)) as gate:
        assert isinstance(gate.call(opened(gate), "charge", {"card": CARD, "cents": 5}), Done)


@pytest.mark.parametrize("text", ["", "# only a comment", "password", "é" * 43, "A" * 42])
def test_a_file_without_keys_is_refused_without_being_quoted(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(Misuse) as raised:
        SealingKeys.from_file(path)
    assert not text or text not in str(raised.value)


@pytest.mark.parametrize("given", [b"x" * 31, b"x" * 33, "x" * 32, None])
def test_a_key_is_32_bytes(given: Any) -> None:
    with pytest.raises(Misuse, match="32"):
        SealingKey(given)


@pytest.mark.parametrize("given", ["key", b"x" * 32, lambda: None])
def test_a_gate_takes_keys_and_nothing_else(world: World, given: Any) -> None:
    with pytest.raises(Misuse, match="SealingKey"):
        world.gate(sealing=given)


def test_a_missing_key_file_or_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="nowhere"):
        SealingKeys.from_file(tmp_path / "nowhere")
    assert "NO_SUCH" not in os.environ
    with pytest.raises(Misuse, match="NO_SUCH"):
        SealingKeys.from_environment("NO_SUCH")


def test_a_failure_is_told_without_its_key(world: World) -> None:
    def refused(card: str) -> None:
        raise agentgate.NoEffect(f"{card} is blocked", code="card_blocked")

    with world.gate(named("act", refused, sensitive=["/card"]), sealing=KEY) as gate:
        first = gate.call(opened(gate), "act", {"card": CARD}, key="k")
    with world.gate(named("act", refused, sensitive=["/card"]), sealing=OTHER) as gate:
        again = gate.call(opened(gate), "act", {"card": CARD}, key="k")
    assert isinstance(first, Failed)
    assert isinstance(again, Failed)
    assert first.error.message == "[sensitive] is blocked"
    assert again.error.code == "card_blocked"
