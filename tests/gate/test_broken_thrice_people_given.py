"""What people hand over that is not what was asked for: named, never an error of the machinery."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agentgate import Misuse, NotFound, Requirement
from support.worlds import World

GIVEN: dict[str, Any] = {
    "tool": "refund",
    "by": "person:ada",
    "why": "a sale",
    "uses": 1,
    "until": timedelta(hours=1),
    "where": {"where": [], "rest": "any"},
}


@pytest.mark.parametrize("spec", [[], {}, ["a"], 7])
def test_the_definition_that_was_seen_is_a_text(world: World, spec: Any) -> None:
    with world.gate() as gate, pytest.raises(Misuse, match=r"^spec: "):
        gate.grants.add(**GIVEN, spec=spec)


@pytest.mark.parametrize("id_", ["\ud800", "a\x00b", "", "x" * 300_000])
def test_a_text_that_is_no_grants_id_is_not_found(world: World, id_: str) -> None:
    with world.gate() as gate:
        with pytest.raises(NotFound):
            gate.grants.show(id_)
        with pytest.raises(NotFound):
            gate.grants.revoke(id_, by="person:ada")


@pytest.mark.parametrize("keyring", ["keyring.yaml", 0, {}])
def test_keys_are_listed_beside_a_keyring_and_nothing_else(world: World, keyring: Any) -> None:
    with world.gate() as gate, pytest.raises(Misuse, match=r"^keyring: "):
        gate.keys.list(keyring)


@pytest.mark.parametrize("path", ["a\x00b", "\ud800"])
def test_a_path_that_no_file_can_have_is_named(world: World, path: str) -> None:
    with pytest.raises(Misuse, match=r"^keyring: "):
        world.gate(keyring=path).close()
    with pytest.raises(Misuse, match=r"^keyring: "):
        world.gate(keyring=Path(path)).close()


@pytest.mark.parametrize("quorum", [None, "2", b"2", [2], 1.5, 0])
def test_a_quorum_is_a_whole_number_of_people(quorum: Any) -> None:
    with pytest.raises(Misuse, match=r"^quorum: "):
        Requirement(quorum=quorum)


@pytest.mark.parametrize("name", ["roles", "obligations"])
@pytest.mark.parametrize("value", [None, 7, "finance", [["finance"]], ["finance", None]])
def test_roles_and_obligations_are_texts(name: str, value: Any) -> None:
    with pytest.raises(Misuse, match=rf"^{name}: "):
        Requirement(**{name: value})
