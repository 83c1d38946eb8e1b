"""What every room of the suite shares: where the corpora are, and how hypothesis runs."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No deadline: a loaded machine is no failure. The example count is what a property is worth in a second or two.
settings.register_profile("agentgate", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("agentgate")


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of data that nobody here wrote, named by AGENTGATE_CORPORA."""
    named = os.environ.get("AGENTGATE_CORPORA")
    if named and Path(named).is_dir():
        return Path(named)
    reason = f"AGENTGATE_CORPORA is {named!r}, which is no folder; set it to a copy of the corpora"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
