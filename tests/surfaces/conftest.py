"""A ledger with a decision in each place where a policy makes one; told once, since a recheck changes nothing."""

import pytest

from support.rechecks import Story, tell


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return tell(tmp_path_factory.mktemp("story"))
