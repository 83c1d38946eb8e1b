import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.canonical import Json
from agentgate.printable import clipped, printable, printable_json

HOSTILE = {
    "a terminal sequence": "\x1b[2J\x1b]0;owned\x07",
    "a C1 control": "\x9b31m",
    "a line of its own": "ok\nagentgate: approved",
    "a carriage return": "rm -rf /\rls       ",
    "backspaces": "delete\b\b\b\b\b\bkeep",
    "a delete": "\x7f",
    "bidi override": "\u202egpj.exe",
    "bidi isolate": "\u2066a\u2069",
    "zero width": "pay\u200bpal",
    "a joiner": "a\u200db",
    "a byte order mark": "\ufeffx",
    "a soft hyphen": "a\xadb",
    "a filler letter": "\u3164",
    "a blank braille cell": "\u2800",
    "a tag": "\U000e0041",
    "a variation selector": "a\ufe0f",
    "a line separator": "a\u2028b",
    "a no-break space": "a\xa0b",
    "a lone surrogate": "\ud800",
    "a private letter": "\ue000",
    "an unassigned point": "\U000effff",
    "an enclosing circle": "a\u20dd",
    "a mark with nothing to stand on": "\u0301a",
    "a tower of marks": "a" + "\u0301" * 40,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_would_not_be_seen_as_it_is_is_escaped(text: str) -> None:
    shown = printable(text)
    assert shown != text
    assert "\\" in shown
    assert shown.encode()  # a lone surrogate would raise
    assert not {unicodedata.category(character)[0] for character in shown} & {"C"}


@pytest.mark.parametrize("text", ["refund", "Grüße, 你好", "שָׁלוֹם", "tiê\u0301ng", "😀", "a b", "'\"{}|~"])
def test_readable_text_of_any_script_stays_readable(text: str) -> None:
    assert printable(text) == text


def test_the_backslash_is_escaped_so_that_an_escape_cannot_be_forged() -> None:
    assert printable("\\u001b") == "\\\\u001b"
    assert printable("\x1b") == "\\u001b"


@given(st.text(st.characters(exclude_categories=())))
def test_printed_text_is_one_line_that_means_one_thing(text: str) -> None:
    # Law: printable is injective; what is printed can be read back.
    shown = printable(text)
    assert shown.splitlines() in ([shown], [])
    assert shown.encode("ascii", "backslashreplace").decode("unicode_escape").encode("utf-16", "surrogatepass") == (
        text.encode("utf-16", "surrogatepass")
    )


def test_json_is_printed_as_ascii_that_reads_back() -> None:
    value: Json = {"a\x7f": ["\x1b[2J", "\u202e", "é", 1, None, True]}
    shown = printable_json(value)
    assert shown.isascii()
    assert shown.isprintable()
    assert json.loads(shown) == value


def test_a_long_text_is_cut_in_the_middle_and_says_so() -> None:
    shown = clipped("a" * 500 + "; rm -rf /", 100)
    assert shown.startswith("a" * 50 + " [cut: 510 characters] ")
    assert shown.endswith("; rm -rf /")
    assert clipped("short", 100) == "short"
