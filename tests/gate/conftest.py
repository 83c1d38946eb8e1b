"""A fresh ledger for each test."""

from pathlib import Path

import pytest

from agentgate.testing import FakeClock
from support.worlds import World, made


@pytest.fixture
def world(tmp_path: Path) -> World:
    return made(tmp_path)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
