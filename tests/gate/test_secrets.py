"""Secrets are handed to a tool for one attempt, and stand in nothing that it leaves behind."""

import base64
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import agentgate
from agentgate import Done, Effect, EnvironmentSecrets, Failed, FileSecrets, Gate, Misuse, ToolError, Unknown
from support.single import stored
from support.worlds import World, named, opened

CANARY = 's3cr3t/äcanary-"quoted"'
KEY = "[secret stripe-key]"


def use(world: World, function: Any, secrets: Any = lambda _name: CANARY, **declared: Any) -> agentgate.Outcome:
    """Call a tool once, that asks for secrets."""
    with world.gate(named("act", function, **declared), secrets=secrets) as gate:
        return gate.call(opened(gate), "act", {})


def quiet(world: World) -> bool:
    """Tell whether no file of the ledger holds the canary."""
    return not any(CANARY.encode() in path.read_bytes() for path in world.folder.iterdir())


def test_a_secret_reaches_the_tool_and_neither_its_result_nor_the_record(world: World) -> None:
    seen: list[str] = []

    def act(*, effect: Effect) -> dict[str, Any]:
        seen.append(effect.secret("stripe-key"))
        return {"echo": f"Bearer {seen[0]}", seen[0]: [1, seen[0].encode()]}

    outcome = use(world, act)
    assert seen == [CANARY]
    assert isinstance(outcome, Done)
    assert outcome.observation.value == {"echo": f"Bearer {KEY}", KEY: [1, KEY]}
    assert outcome.observation.notes == ("scrubbed",)
    assert KEY in stored(world, outcome.action)
    assert quiet(world)
    assert world.damage() == []


def test_a_secret_is_found_inside_whatever_it_was_written_as(world: World) -> None:
    def act(*, effect: Effect) -> list[str]:
        secret = effect.secret("stripe-key")
        encoded = [base64.b64encode(f"{'x' * pad}{secret}tail".encode()).decode() for pad in range(3)]
        return [secret.encode().hex(), secret.encode().hex().upper(), repr(secret), *encoded]

    outcome = use(world, act)
    assert isinstance(outcome, Done)
    assert isinstance(outcome.observation.value, list)
    assert all(KEY in str(text) for text in outcome.observation.value)


@pytest.mark.parametrize("effect_", ["none", "unknown"])
def test_an_errors_message_details_and_advice_lose_the_secret(world: World, effect_: Any) -> None:
    def act(*, effect: Effect) -> None:
        secret = effect.secret("stripe-key")
        raise ToolError(
            "upstream", f"key {secret}", details={"sent": secret}, suggested_action=f"not {secret}", effect=effect_
        ) from ValueError(secret)

    outcome = use(world, act)
    assert isinstance(outcome, Failed | Unknown)
    assert CANARY not in repr(outcome)
    assert KEY in repr(outcome)
    assert quiet(world)


def test_a_secret_at_the_edge_of_a_long_message_is_not_left_half_there(world: World) -> None:
    def act(*, effect: Effect) -> None:
        raise ValueError("x" * 1_980 + effect.secret("stripe-key"))

    outcome = use(world, act)
    assert isinstance(outcome, Unknown)
    assert "s3cr" not in repr(outcome)


def test_an_interruption_that_is_passed_on_tells_no_secret(world: World) -> None:
    def act(*, effect: Effect) -> None:
        secret = effect.secret("stripe-key")
        try:
            raise ValueError(secret)  # noqa: TRY301 - it is what the interruption is raised from
        except ValueError as error:
            error.add_note(secret)
            raise SystemExit(f"giving up with {secret}") from error

    with pytest.raises(SystemExit) as raised:
        use(world, act)
    error = raised.value
    cause = error.__cause__
    assert error.code == f"giving up with {KEY}"
    assert isinstance(cause, ValueError)
    assert (cause.args, cause.__notes__) == ((KEY,), [KEY])
    assert quiet(world)


def test_an_interruption_that_hides_its_secret_is_replaced_by_a_silent_one(world: World) -> None:
    class Sly(KeyboardInterrupt):
        def __str__(self) -> str:
            return CANARY

    def act(*, effect: Effect) -> None:
        effect.secret("stripe-key")
        raise Sly

    with pytest.raises(KeyboardInterrupt) as raised:
        use(world, act)
    assert type(raised.value) is KeyboardInterrupt
    assert (raised.value.__cause__, raised.value.__context__) == (None, None)


def test_a_result_that_comes_late_loses_the_secret_too(world: World) -> None:
    go, recorded = threading.Event(), threading.Event()

    def act(*, effect: Effect) -> str:
        secret = effect.secret("stripe-key")
        go.wait(30)
        return secret

    with world.gate(named("act", act, timeout=0.2), secrets=lambda _name: CANARY) as gate:
        outcome = gate.call(opened(gate), "act", {})
        assert isinstance(outcome, Unknown)
        go.set()
        for _ in range(300):
            if "late" in world.words(outcome.action):
                break
            recorded.wait(0.1)
    assert "late" in world.words(outcome.action)
    assert quiet(world)
    assert KEY in world.value("SELECT CAST(content AS TEXT) FROM agentgate_payloads WHERE kind = 'evidence'")


@pytest.mark.parametrize("value", [None, "", b""])
def test_a_secret_that_is_not_there_is_a_clean_failure_that_names_it(world: World, value: Any) -> None:
    def act(*, effect: Effect) -> str:
        return effect.secret("stripe-key")

    outcome = use(world, act, lambda _name: value)
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.retryable) == ("secret_missing", False)
    assert "'stripe-key'" in outcome.error.message


def test_without_a_provider_no_secret_is_there(world: World) -> None:
    def act(*, effect: Effect) -> str:
        return effect.secret("stripe-key")

    outcome = use(world, act, None)
    assert isinstance(outcome, Failed)
    assert outcome.reason == "secret_missing"
    assert "secrets=" in outcome.error.message


def test_once_the_first_byte_has_left_a_missing_secret_proves_nothing(world: World) -> None:
    def act(*, effect: Effect) -> str:
        effect.sending()
        return effect.secret("stripe-key")

    outcome = use(world, act, {}.__getitem__)
    assert isinstance(outcome, Unknown)
    assert outcome.reason == "secret_missing"


def test_a_provider_that_raises_or_answers_no_text_is_a_clean_failure_without_its_words(world: World) -> None:
    def act(*, effect: Effect) -> str:
        return effect.secret("stripe-key")

    def broken(_name: str) -> str:
        raise RuntimeError(CANARY)

    for provider in (broken, lambda _name: 7, lambda _name: b"\xff"):
        with world.gate(named("act", act), secrets=provider) as gate:
            outcome = gate.call(opened(gate), "act", {})
        assert isinstance(outcome, Failed)
        assert outcome.reason == "secret_unavailable"
        assert CANARY not in repr(outcome)
    assert quiet(world)


def test_a_slow_provider_is_not_waited_for(world: World) -> None:
    def act(*, effect: Effect) -> str:
        return effect.secret("stripe-key")

    stop = threading.Event()
    settings = agentgate.Settings(secret_within=timedelta(milliseconds=50))
    begun = time.monotonic()
    with world.gate(named("act", act), secrets=lambda _name: str(stop.wait(30)), settings=settings) as gate:
        outcome = gate.call(opened(gate), "act", {})
    stop.set()
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.retryable) == ("secret_unavailable", True)
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize("name", ["", "../passwd", "a/b", ".hidden", "x" * 200, 7])
def test_a_name_that_is_none_is_never_asked_for(world: World, name: Any) -> None:
    asked: list[str] = []

    def act(*, effect: Effect) -> str:
        return effect.secret(name)

    outcome = use(world, act, asked.append)
    assert isinstance(outcome, Failed)
    assert outcome.reason == "secret_missing"
    assert asked == []


def test_secrets_of_two_lengths_mark_each_its_own(world: World) -> None:
    def act(*, effect: Effect) -> list[str]:
        short, long = effect.secret("short"), effect.secret("long")
        return [f"{short} and {long}", short, "xyz is not taken out of a text"]

    outcome = use(world, act, {"short": "xyz", "long": "wxyzabc"}.get)
    assert isinstance(outcome, Done)
    assert outcome.observation.value == [
        "xyz and [secret long]",
        "[secret short]",
        "xyz is not taken out of a text",
    ]


def test_environment_secrets_are_those_of_the_prefix_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_STRIPE_KEY", CANARY)
    secrets = EnvironmentSecrets(prefix="APP_")
    assert secrets("stripe-key") == CANARY
    assert secrets("HOME") is None
    assert CANARY not in repr(secrets)
    with pytest.raises(Misuse, match="prefix"):
        EnvironmentSecrets(prefix="")


def test_file_secrets_are_read_without_their_last_line_break(tmp_path: Path) -> None:
    (tmp_path / "stripe-key").write_text(f"{CANARY}\n")
    (tmp_path / "two").write_bytes(b"a\n\r\n")
    secrets = FileSecrets(tmp_path)
    assert secrets("stripe-key") == CANARY.encode()
    assert secrets("two") == b"a\n"
    assert secrets("other") is None


def test_a_file_that_others_may_change_or_that_lies_elsewhere_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    folder.mkdir()
    (tmp_path / "outside").write_text(CANARY)
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "open").write_text(CANARY)
    (folder / "open").chmod(0o666)
    (folder / "folder").mkdir()
    (folder / "large").write_bytes(b"x" * 70_000)
    for name in ("link", "open", "folder", "large"):
        with pytest.raises(Misuse, match=name) as raised:
            FileSecrets(folder)(name)
        assert CANARY not in str(raised.value)


def test_what_a_tool_says_of_its_progress_is_in_no_record(world: World) -> None:
    def act(*, effect: Effect) -> str:
        effect.progress(0.5, effect.secret("stripe-key"))
        return "done"

    assert isinstance(use(world, act), Done)
    assert quiet(world)


def test_a_gate_shows_no_secret(world: World) -> None:
    with world.gate(secrets={"a": CANARY}.get) as gate:
        assert isinstance(gate, Gate)
        assert CANARY not in repr(gate) + repr(gate._shop.performer)
