"""What the record hands back is what was recorded, or nothing."""

from contextlib import closing

import pytest

from agentgate import Damaged, Done
from support.worlds import World, opened

ONE = {"account": "a1", "cents": 1}
EDITED = b'{"notes":[],"status":"ok","value":2}'


def test_a_result_that_was_edited_is_not_handed_back(world: World) -> None:
    with world.gate() as gate:
        run = opened(gate)
        assert isinstance(gate.call(run, "refund", ONE, key="k"), Done)
        with closing(world.connect()) as database, database:
            database.execute("UPDATE agentgate_payloads SET content = ? WHERE kind = 'result'", (EDITED,))
        with pytest.raises(Damaged, match="result of its event"):
            gate.call(run, "refund", ONE, key="k")
