"""What a secret did to its tool, or to what interrupted it, and should not: each once, by a test that failed."""

import os
from typing import Any

import pytest

from agentgate import Done, Effect, EnvironmentSecrets, Failed
from support.worlds import World, named, opened

CANARY = "sk-live-CANARY-1234567890"


class Silent(SystemExit):
    """Says nothing of itself."""

    def __repr__(self) -> str:
        raise ValueError(self.args[0])

    __str__ = __repr__


class Fixed(KeyboardInterrupt):
    """Cannot be changed."""

    @property
    def args(self) -> Any:  # type: ignore[override]
        return (CANARY,)


@pytest.mark.parametrize(("raised", "kind"), [(Silent, SystemExit), (Fixed, KeyboardInterrupt)])
def test_an_interruption_that_cannot_be_looked_at_goes_on_as_one_that_says_nothing(
    world: World, raised: type[BaseException], kind: type[BaseException]
) -> None:
    def pay(*, effect: Effect) -> None:
        raise raised(effect.secret("key"))

    with world.gate(named("pay", pay), secrets=lambda _name: CANARY) as gate:
        with pytest.raises(kind) as interruption:
            gate.call(opened(gate), "pay", {}, key="k")
        assert gate.call(opened(gate), "pay", {}, key="k").reason == "cancelled"
    assert type(interruption.value) is kind
    assert interruption.value.args == ()
    assert not world.damage()


def test_a_variable_that_is_no_text_is_a_secret_of_bytes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"\xff\xfe" + CANARY.encode()
    monkeypatch.setenv("AGENTGATE_SECRET_KEY", os.fsdecode(content))

    def read(*, effect: Effect) -> list[object]:
        return [effect.secret_bytes("key") == content, effect.secret_bytes("key")]

    def text(*, effect: Effect) -> str:
        return effect.secret("key")

    with world.gate(named("read", read), named("text", text), secrets=EnvironmentSecrets()) as gate:
        done = gate.call(opened(gate), "read", {})
        failed = gate.call(opened(gate), "text", {})
    assert isinstance(done, Done)
    assert done.observation.value == [True, "[secret key]"]
    assert isinstance(failed, Failed)
    assert (failed.reason, failed.error.message) == (
        "secret_unavailable",
        "the secret 'key' is no text: ask for secret_bytes",
    )


def test_a_provider_that_gives_half_characters_gives_no_secret(world: World) -> None:
    def pay(*, effect: Effect) -> None:
        effect.secret_bytes("key")

    with world.gate(named("pay", pay), secrets=lambda _name: "\ud800" + CANARY) as gate:
        failed = gate.call(opened(gate), "pay", {})
    assert isinstance(failed, Failed)
    assert failed.reason == "secret_unavailable"
    assert CANARY not in repr(failed)
