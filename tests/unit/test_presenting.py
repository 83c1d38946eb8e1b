"""What people are shown: every name, each value by its type, nothing cut in silence, the last line the gate's."""

import json
import re
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from agentgate import Requirement
from agentgate.action import Key
from agentgate.canonical import Json, canonical, parse
from agentgate.core.presenting.letters import reshown
from agentgate.core.presenting.rendering import present
from agentgate.core.presenting.shown import Doubt, LateAnswer, Masked, Previous
from support.showing import PLAIN, ascii_alone, lines, of, text

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(
    ["", "1", "true", "null", "[sensitive]", "a\nb", "none", "a" * 401, "\n" * 70, " " * 12, "e\u0301", "\u00e9", "\\n"]
)
SCALARS = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e15, 1e15) | TEXTS
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5), max_leaves=20
).map(lambda value: parse(json.dumps(value)))
TWINS: list[tuple[Json, Json]] = [
    ("1", 1),
    (1, True),
    (0, False),
    (None, "null"),
    ("true", True),
    ("[]", []),
    ("{}", {}),
    ([], {}),
    ("[sensitive]", "sensitive"),
    ("\u00e9", "e\u0301"),
    ("paypal", "p\u0430ypal"),
    ("\\u0430", "\u0430"),
    ("a\nb", "a\\nb"),
    ("a\n", "a"),
    ("a ", "a"),
    ("a\t", "a "),
    ("a\u00a0b", "a b"),
    ("\u212b", "\u00c5"),
    ("list of 2:", [1, 2]),
    (["a", "b"], ["a, b"]),
    ([[1], [2]], [[1, 2]]),
    ({"a": {"b": 1}}, {"a": 1, "b": 1}),
    ("x" * 500, "x" * 250 + "y" + "x" * 249),
    (list(range(100)), [*range(40), 7, *range(41, 100)]),
    ("\n" * 200, "\n" * 201),
]


@pytest.mark.parametrize(("one", "other"), TWINS)
def test_two_values_that_look_alike_are_shown_as_what_they_are(one: Json, other: Json) -> None:
    shown = [ascii_alone(text(of(value))) for value in (one, other)]
    assert shown[0] != shown[1]
    named = [ascii_alone(text(of({"a": value, "b": 1}))) for value in (one, other)]
    assert named[0] != named[1]


@given(VALUES, VALUES)
def test_two_arguments_are_never_shown_alike(one: Json, other: Json) -> None:
    """Law: present(x) = present(y) implies x = y; with nothing but ASCII, and without a remark."""
    assume(canonical(one) != canonical(other))
    assert ascii_alone(text(of(one))) != ascii_alone(text(of(other)))


@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=5), st.data())
def test_two_objects_that_differ_in_one_name_are_never_shown_alike(members: dict[str, Json], data: Any) -> None:
    was, now = data.draw(st.sampled_from(sorted(members))), data.draw(TEXTS)
    assume(now not in members)
    other = {now if name == was else name: value for name, value in members.items()}
    assert ascii_alone(text(of(members))) != ascii_alone(text(of(other)))


FIELDS = ("tool", "namespace", "description", "tenant", "principal", "run", "reasons")


@given(TEXTS, TEXTS, st.sampled_from(FIELDS))
@example("", " ", "namespace")
@example("paypal", "p\u0430ypal", "principal")
def test_two_names_are_never_shown_alike(one: str, other: str, field: str) -> None:
    assume(one != other)
    shown = [ascii_alone(text(replace(PLAIN, **{field: value}))) for value in (one, other)]  # type: ignore[arg-type]
    assert shown[0] != shown[1]


@given(st.tuples(TEXTS, TEXTS), st.tuples(TEXTS, TEXTS))
def test_two_keys_and_two_requirements_are_never_shown_alike(one: tuple[str, str], other: tuple[str, str]) -> None:
    assume(one != other)
    keys = [Key(source="outside", scope=scope, text=key) for scope, key in (one, other)]
    assert len({ascii_alone(text(replace(PLAIN, key=key))) for key in keys}) == 2
    duties = [Requirement(obligations=pair) for pair in (one, other)]
    assert len({ascii_alone(text(replace(PLAIN, requirement=one))) for one in duties}) == 2


def _names(value: Json) -> list[str]:
    if type(value) is dict:
        return [*value, *(name for item in value.values() for name in _names(item))]
    return [name for item in value for name in _names(item)] if type(value) is list else []


@given(VALUES)
def test_no_member_is_dropped(value: Json) -> None:
    told = text(of(value))
    for name in _names(value):
        escaped = json.dumps(name)[1:-1].replace("\x7f", "\\u007f")
        seen = re.sub(r"( {8})( +)", lambda found: found[1] + "\\u0020" * len(found[2]), escaped)
        assert seen[:60] in told


def test_of_very_many_arguments_and_of_very_long_names_none_is_dropped() -> None:
    many: Json = {f"argument_{n}": n for n in range(5_000)}
    assert [line for line in lines(many) if " = " in line] == [f"  {name} = {n}" for name, n in sorted(many.items())]  # type: ignore[union-attr]
    deep: Json = {"rows": [{"n": n, "x" * 300 + str(n): {"in": [{"side": "a" * 200}]}} for n in range(100)]}
    told = lines(deep)
    assert sum(line.strip() == "n = 7" for line in told) == 1
    assert sum(line.endswith('"' + " = object of 1:") and '7"' in line for line in told) == 10
    assert sum(line.strip().startswith("side = ") for line in told) == 100


def test_a_long_name_is_cut_in_the_middle_and_bound() -> None:
    name = "safe" * 100 + "_but_not_the_end"
    (line,) = lines({name: 1})
    digest = sha256(json.dumps(name).encode()).hexdigest()
    assert line.startswith('  "safesafe')
    assert f"296 of 416 characters left out, cut, sha256 {digest} of its 418 bytes" in line
    assert line.endswith('_but_not_the_end" = 1')


def test_a_long_text_keeps_its_dangerous_end_and_says_what_is_left_out() -> None:
    dangerous = "ls " + "-a " * 5_000 + "; rm -rf /"
    told = lines({"command": dangerous})
    assert told[0].endswith(f"cut, sha256 {sha256(json.dumps(dangerous).encode()).hexdigest()} of its 15,015 bytes:")
    assert told[2] == "    ... 14,693 of 15,013 characters left out ..."
    assert told[3].endswith("-a ; rm -rf /")


def test_of_a_long_list_both_ends_are_kept_and_of_one_with_objects_all() -> None:
    told = lines({"ids": list(range(1_000))})
    assert told[0].startswith("  ids = list of 1,000, cut, sha256 ")
    assert "    ... 952 of 1,000 items left out ..." in told
    assert [told[1], told[-1]] == ["    [0] = 0", "    [999] = 999"]
    assert len(lines({"rows": [{"id": n} for n in range(1_000)]})) == 1_001


def test_lines_of_a_text_are_shown_as_lines_that_begin_no_line_of_the_gate() -> None:
    forged = f"agentgate: approving runs exactly this, once. action {'00' * 32}"
    body = f"Dear\n  indented\n\r{forged}\n\n{forged} "
    assert lines({"body": body}) == [
        f"  body = text of 5 lines, {len(body)} characters:",
        "    | Dear",
        "    |   indented",
        f"    | \\r{forged}",
        "    |",
        f"    | {forged}\\u0020",
        "    ^ 1 of its characters are not seen, move what is, or run over it: they are written as escapes",
    ]
    told = text(of({forged: forged}, description=f"\n{forged}", reasons=forged, run=f"\n{forged}"))
    assert told.count(forged) == 5
    assert "described  by its server, in words that nobody has checked:\n  |\n  | agentgate: " in told


def test_a_run_of_spaces_pushes_nothing_out_of_sight() -> None:
    assert lines({"a": "ok" + " " * 300 + "; rm"}) == [
        f'  a = "ok{" " * 8}{chr(92) + "u0020"}' + "\\u0020" * 291 + '; rm"'
    ]


def test_what_is_nested_as_deep_as_it_may_be_is_shown() -> None:
    value: Json = 1
    for _ in range(255):
        value = {"a": value, "b": "x" * 130}
    assert sum(line.strip().startswith("b = ") for line in lines(value)) == 255


def test_sensitive_values_are_marks_and_a_text_of_the_same_letters_is_a_text() -> None:
    shown = Masked(value={"card": "[sensitive]", "note": "[sensitive]"}, hidden=frozenset({("card",)}), unnamed=2)
    told = lines(None, arguments=shown, supplied=shown)
    assert told == [
        "  card = [sensitive]",
        '  note = "[sensitive]"',
        "  [sensitive]: 2 more, not declared by the tool",
    ]


def test_what_was_filled_in_or_changed_or_is_not_declared_is_marked_where_it_stands() -> None:
    supplied = Masked(value={"a": {"x": 1}, "n": "1", "list": [{}]})
    completed: Json = {"a": {"x": 1, "y": {"z": 2}}, "n": 1, "list": [{"d": 3}], "more": True, "b": {}}
    assert lines(completed, supplied=supplied, undeclared=("more", "n")) == [
        "  a = object of 2:",
        "    x = 1",
        '    y = {"z": 2}',
        "      ^ filled in by default",
        "  b = {}",
        "    ^ filled in by default",
        "  list = list of 1:",
        "    [0] = object of 1:",
        "      d = 3",
        "        ^ filled in by default",
        "  more = true",
        "    ^ not declared by the tool",
        "    ^ filled in by default",
        "  n = 1",
        "    ^ not declared by the tool",
        '    ^ changed: it was sent as "1"',
    ]


def test_arguments_that_are_no_object_are_one_argument_that_no_name_imitates() -> None:
    assert lines([1, "a"]) == ['  (the one argument) = [1, "a"]']
    assert lines({"(the one argument)": [1, "a"]}) == ['  "(the one argument)" = [1, "a"]']
    assert lines({}) == ["  (none)"]
    assert lines("x", supplied=Masked(value="y")) == ['  (the one argument) = "x"', '    ^ changed: it was sent as "y"']


def _since(was: Json, now: Json, **fields: Any) -> list[str]:
    told = text(of(now, previous=Previous(action="an-id", arguments=Masked(value=was, **fields)))).split("\n")
    return told[told.index("since the last approved call of this tool, action an-id") + 1 : -1]


def test_the_difference_to_the_last_approved_call_is_added_removed_and_changed() -> None:
    was: Json = {"cents": 5, "to": {"name": "ada", "tags": [1, 2]}, "old": "x", "same": 1, "type": "1"}
    now: Json = {"cents": 99_999, "to": {"name": "bob", "tags": [1, 3]}, "new": "x", "same": 1, "type": 1}
    assert _since(was, now) == [
        "  changed cents",
        "    was = 5",
        "    now = 99999",
        "  added new",
        "  removed old",
        '    was = "x"',
        "  changed to / name",
        '    was = "ada"',
        '    now = "bob"',
        "  changed to / tags / [1]",
        "    was = 2",
        "    now = 3",
        "  changed type",
        '    was = "1"',
        "    now = 1",
    ]
    assert _since(now, now) == ["  nothing differs"]
    assert _since(True, 1) == ["  changed (the one argument)", "    was = true", "    now = 1"]


def test_what_is_sensitive_is_not_compared_and_says_so() -> None:
    told = _since({"card": "[sensitive]", "a": 1}, {"card": "other", "a": 1}, hidden=frozenset({("card",)}))
    assert told == ["  nothing else differs", "  [sensitive]: not compared"]
    told = _since({"card": "[sensitive]"}, {}, hidden=frozenset({("card",)}))
    assert told == ["  removed card", "    was = [sensitive]", "  [sensitive]: not compared"]


@pytest.mark.parametrize(
    ("previous", "line"),
    [
        (None, "no approved call of this tool has run for this principal before"),
        (
            Previous(action="an-id", arguments=None, why="gone"),
            "the last approved call of this tool cannot be shown, because its arguments are gone: action an-id",
        ),
        (
            Previous(action="an-id", arguments=None, why="sealed"),
            "the last approved call of this tool cannot be shown, because no key here opens it: action an-id",
        ),
        (
            Previous(action="an-id", arguments=None, why="damaged"),
            "the last approved call of this tool cannot be shown, because it is not what was recorded: action an-id",
        ),
    ],
)
def test_a_last_approved_call_that_cannot_be_shown_is_said_to_be_one(previous: Previous | None, line: str) -> None:
    assert text(replace(PLAIN, previous=previous)).split("\n")[-2] == line


DOUBT = Doubt(
    attempt=1,
    started_at_us=1_700_000_000_000_000,
    code="timed_out",
    late=(
        LateAnswer(at_us=1_700_000_100_000_001, ok=True),
        LateAnswer(at_us=1_700_000_200_000_000, ok=False, code="\u202econflict"),
    ),
)


def test_an_attempt_that_may_have_happened_is_told_with_its_number_time_error_and_late_answers() -> None:
    told = text(replace(PLAIN, doubts=(DOUBT,))).split("\n")
    assert told[0] == "asked      whether this may run, once more, although an earlier attempt may have happened"
    at = told.index("earlier attempts that may have happened")
    assert told[at + 1 : at + 8] == [
        "  attempt 1 began 2023-11-14 22:13:20.000000 UTC, and its outcome is unknown",
        "    because timed_out",
        "    late, 2023-11-14 22:15:00.000001 UTC, it said that it happened",
        '    late, 2023-11-14 22:16:40.000000 UTC, it said an error, "\\u202econflict"',
        "    reads: \\u202econflict",
        "    ^ not ASCII; letters: Latin",
        "    ^ 1 of its characters are not seen, move what is, or run over it: they are written as escapes",
    ]


def test_an_operators_question_says_which_three_answers_there_are_and_what_each_does() -> None:
    told = text(replace(PLAIN, doubts=(DOUBT,), asks_about=1, requirement=Requirement(kind="question"))).split("\n")
    assert told[0] == "asked      what became of attempt 1, which nobody knows"
    assert [line.split()[0] for line in told[-4:-1]] == ["again", "applied", "not_applied"]
    assert told[-1].startswith("agentgate: an answer is about attempt 1 of exactly this, and nothing else. action ")
    assert not any(line.startswith("stands for") for line in told)


@pytest.mark.parametrize(
    ("grant_us", "told"),
    [(900_000_000, "15 minutes"), (93_784_000_001, "1 day, 2 hours, 3 minutes, 4 seconds, 1 microseconds"), (1, "1 m")],
)
def test_how_long_it_can_be_answered_and_how_long_a_grant_stands_are_said(grant_us: int, told: str) -> None:
    shown = text(replace(PLAIN, grant_us=grant_us))
    assert f"\nstands for {told}" in shown
    assert "\nuntil      2027-01-15 08:00:00.000000 UTC; no answer is a no\n" in shown


@given(VALUES, TEXTS)
def test_a_terminal_that_escapes_once_more_shows_the_same(value: Json, description: str) -> None:
    """Law: reshown(line) = line for every line of a presentation."""
    for line in present(of(value, description=description)).decode().split("\n"):
        assert reshown(line) == line


def test_a_line_that_somebody_rewrote_is_escaped_where_it_is_printed() -> None:
    assert reshown("  a = \u202e1\x1b[2J\\u0041\u200b") == "  a = \\u202e1\\u001b[2J\\u0041\\u200b"
