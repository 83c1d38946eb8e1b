"""What users may rely on is written down: a changed promise shows in a diff."""

import agentgate
from support.public_api import GOLDEN, render

NAMES: list[str] = getattr(agentgate, "__all__", [])


def test_the_public_face_is_the_one_written_down() -> None:
    assert render() == GOLDEN.read_text("utf-8"), "meant? then: python tests/support/public_api.py --write"


def test_every_public_name_resolves() -> None:
    assert not [name for name in NAMES if not hasattr(agentgate, name)]


def test_no_public_name_stands_twice() -> None:
    assert len(NAMES) == len(set(NAMES))


def test_looking_around_shows_the_public_face() -> None:
    assert set(NAMES) <= set(dir(agentgate))
