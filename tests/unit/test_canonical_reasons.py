"""The closed set of reasons: each is met, and each refusal can be pickled and never quotes the value."""

import pickle
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from agentgate.canonical import REASONS, Bounds, parse, snapshot
from agentgate.encoding import Offence
from agentgate.errors import Misuse, NotCanonical

EAST = timezone(timedelta(hours=1))


class Odd:
    pass


def loop() -> list[Any]:
    value: list[Any] = ["hunter2"]
    value.append(value)
    return value


EXAMPLES: dict[str, Callable[[], object]] = {
    "cycle": lambda: snapshot(loop()),
    "depth": lambda: parse('["hunter2",' + "[" * 64 + "]" * 65),
    "duplicate_key": lambda: parse('{"a":"hunter2","a":1}'),
    "encoding": lambda: parse(b'"hunter2\xff"'),
    "float_range": lambda: parse('["hunter2",1e17]'),
    "integer_range": lambda: parse('["hunter2",123456789123456789]'),
    "key": lambda: snapshot({1: "hunter2"}),
    "naive_datetime": lambda: snapshot(["hunter2", datetime(2024, 1, 1)]),  # noqa: DTZ001
    "nodes": lambda: parse('["hunter2"]', bounds=Bounds(max_nodes=1)),
    "not_encodable": lambda: snapshot(["hunter2", datetime.min.replace(tzinfo=EAST)]),
    "not_finite": lambda: parse('["hunter2",NaN]'),
    "size": lambda: parse('["hunter2"]', bounds=Bounds(max_bytes=5)),
    "surrogate": lambda: parse('"hunter2\\ud800"'),
    "syntax": lambda: parse("'hunter2'"),
    "type": lambda: snapshot(["hunter2", Odd()]),
}


def test_every_reason_is_met_by_an_example() -> None:
    # "changed" takes a second thread: test_a_dict_changed_in_the_middle_of_its_copy_is_refused_and_no_runtime_error
    assert EXAMPLES.keys() == REASONS - {"changed"}


@pytest.mark.parametrize("reason", EXAMPLES)
def test_a_refusal_says_where_why_and_what_to_do_and_never_the_value(reason: str) -> None:
    with pytest.raises(NotCanonical) as caught:
        EXAMPLES[reason]()
    error = caught.value
    assert error.reason == reason
    assert error.remedy
    assert error.code == "not_canonical"
    assert "hunter2" not in f"{error} {error!r}"
    assert error.__cause__ is None
    assert error.__suppress_context__
    again = pickle.loads(pickle.dumps(error))
    assert (again.path, again.reason, again.remedy) == (error.path, reason, error.remedy)


def test_the_errors_below_the_face_never_leave_it() -> None:
    assert not issubclass(Offence, Misuse)
    with pytest.raises(NotCanonical):
        snapshot(Odd())
