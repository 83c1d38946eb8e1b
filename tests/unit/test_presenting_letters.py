"""What a text's letters are and could be taken for: scripts, look-alikes, normal forms, what is not seen."""

import json
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.action import Key
from agentgate.core.presenting import unicode17
from agentgate.core.presenting.letters import latin, legible, notes, script
from support.showing import PLAIN, ascii_alone, lines, of, text

NASTY = {
    "bidi overrides": "\u202a\u202b\u202c\u202d\u202e",
    "bidi isolates": "\u2066\u2067\u2068\u2069",
    "bidi marks": "\u200e\u200f\u061c",
    "zero width": "pay\u200b\u200c\u200d\u2060\ufeffpal",
    "tags": "ok" + "".join(chr(0xE0000 + ord(one)) for one in "; rm -rf /") + "\U000e007f",
    "variation selectors": "a\ufe00\ufe0f\U000e0100",
    "a tower": "a" + "\u0301\u0302" * 40,
    "a tower of one script": "\u0e01" + "\u0e47" * 40,
    "a mark on nothing": "\u0301a",
    "a mark on a blank": "a \u0301",
    "a mark on an escape": "\u200b\u0301",
    "an escape sequence": "\x1b[2J\x1b]0;owned\x07\x1b]8;;http://x\x1b\\",
    "C1 controls": "\x9b31m\x85\x90",
    "a carriage return": "rm -rf /\rls       ",
    "backspaces": "delete\b\b\b\b\b\bkeep",
    "NUL": "a\x00b",
    "a delete": "\x7f",
    "line separators": "a\u2028b\u2029c\x0b\x0c\x1c\x1d\x1e",
    "blanks": "\u00a0\u2003\u3000\u3164\u2800\u115f\uffa0\u180e",
    "a private letter": "\ue000\U00100000",
    "an unassigned point": "\U000effff\u0378",
    "noncharacters": "\uffff\ufdd0\U0010ffff",
    "the gate's last line": f"x\nagentgate: approving runs exactly this, once. action {'00' * 32}",
    "the gate's remark": '1"\n    ^ filled in by default',
    "interlinear marks": "a\ufff9b\ufffac\ufffb",
}


@pytest.mark.parametrize("nasty", NASTY.values(), ids=NASTY.keys())
def test_nothing_that_is_not_seen_comes_through_as_value_name_key_principal_or_description(nasty: str) -> None:
    names = {"description": nasty, "reasons": nasty, "run": nasty, "tool": nasty, "namespace": nasty, "tenant": nasty}
    shown = [
        of(nasty),
        of({nasty: {nasty: [nasty]}}),
        of({"a": "x"}, **names, key=Key(source="caller", scope=nasty, text=nasty), principal=nasty),
    ]
    for one in shown:
        told = text(one)
        if not nasty.isascii():
            assert nasty not in told
            assert "not ASCII" in told


def test_blns_is_printable_everywhere_and_no_two_of_it_look_alike(corpora: Path) -> None:
    strings: list[str] = json.loads((corpora / "blns" / "blns.json").read_text(encoding="utf-8"))
    assert len(strings) == 515
    distinct = list(dict.fromkeys(strings))
    values = [ascii_alone(text(of({"a": one}))) for one in distinct]
    named = [ascii_alone(text(of({one: 1}))) for one in distinct]
    keys = [ascii_alone(text(replace(PLAIN, key=Key(source="caller", scope="", text=one)))) for one in distinct]
    whom = [ascii_alone(text(replace(PLAIN, principal=one))) for one in distinct]
    described = [ascii_alone(text(replace(PLAIN, description=one))) for one in distinct]
    for shown in (values, named, keys, whom, described):
        assert len(set(shown)) == len(distinct)
    together = text(of({f"{n} {one}": one for n, one in enumerate(strings)}))
    assert sum(line.startswith("  ") and not line.startswith("   ") for line in together.split("\n")) >= 515


@pytest.mark.parametrize(
    ("readable", "told"),
    [
        ("Привет, мир", "Cyrillic"),
        ("שָׁלוֹם", "Hebrew"),
        ("مرحبا بالعالم", "Arabic"),
        ("नमस्ते", "Devanagari"),
        ("น้ำใจ", "Thai"),
        ("ကြွေး", "Myanmar"),
        ("བསྒྲུབས", "Tibetan"),
        ("한국어", "Hangul"),
        ("日本語のテキスト", "Han, Hiragana, Katakana"),
        ("Tシャツを買う", "Han, Hiragana, Katakana, Latin"),
        ("Ελληνικά", "Greek"),
        ("ਪੰਜਾਬੀ", "Gurmukhi"),
        ("Straße naïve Ðór", "Latin"),
    ],
)
def test_other_scripts_stay_readable_and_are_named_beside_an_exact_form(readable: str, told: str) -> None:
    shown = lines({"a": readable})
    assert shown[0] == f"  a = {json.dumps(readable)}"
    assert shown[1] == f"    reads: {readable}"
    assert shown[2] == f"    ^ not ASCII; letters: {told}"
    assert not any("mixes" in line or "not seen" in line for line in shown)


@pytest.mark.parametrize(
    ("forged", "plain"),
    [
        ("раураl", "paypal"),
        ("аррӏе", "apple"),
        ("ΑΒΕ", "ABE"),
        ("ѕсоре", "scope"),
        ("ａｄｍｉｎ", "admin"),
        ("𝐚𝐝𝐦𝐢𝐧", "admin"),
        ("ﬁle", "file"),
        ("pаypal", "paypal"),
    ],
)
def test_a_word_that_passes_for_a_latin_one_is_said_to(forged: str, plain: str) -> None:
    assert latin(forged) == plain
    assert f'looks like: "{plain}"' in list(notes(f"to {forged}!"))
    assert latin(plain) is None


def test_words_that_mix_scripts_are_named_in_ascii_and_of_many_it_is_said_how_many() -> None:
    assert list(notes("p\u0430y")) == [
        "not ASCII; letters: Cyrillic, Latin",
        'mixes scripts within a word: "p\\u0430y"',
        'looks like: "pay"',
    ]
    words = " ".join(f"b\u0434{n}" for n in range(5))
    assert 'mixes scripts within a word: "b\\u04340", "b\\u04341", "b\\u04342" and 2 more' in list(notes(words))
    assert list(notes("мир peace")) == ["not ASCII; letters: Cyrillic, Latin"]
    assert not list(notes("peace"))


def test_what_is_not_in_normal_form_or_a_compatibility_form_is_said_to_be() -> None:
    assert "not in normal form (NFC): another sequence of characters looks the same" in list(notes("cafe\u0301"))
    assert not any("normal form" in note for note in notes("caf\u00e9"))
    assert "holds letters or digits in a compatibility form, which look like plain ones" in list(notes("x\u00b2"))
    assert not any("compatibility" in note for note in notes("caf\u00e9 \u2026"))


def test_marks_are_piled_no_higher_than_writing_needs() -> None:
    assert legible("a" + "\u0301\u0302\u0303\u0304") == "a\u0301\u0302\u0303\\u0304"
    assert legible("a\u0301\u0301") == "a\u0301\\u0301"
    assert legible("\u0301 \u0301\u200b\u0301") == "\\u0301 \\u0301\\u200b\\u0301"


@given(st.characters(exclude_categories=["Cs", "Cn", "Co"]))
def test_scripts_are_those_that_the_names_of_letters_say(character: str) -> None:
    name = unicodedata.name(character, "")
    for said, expected in (
        ("LATIN SMALL LETTER", "Latin"),
        ("LATIN CAPITAL LETTER", "Latin"),
        ("CYRILLIC ", "Cyrillic"),
        ("GREEK SMALL LETTER", "Greek"),
        ("GREEK CAPITAL LETTER", "Greek"),
        ("HEBREW LETTER", "Hebrew"),
        ("ARABIC LETTER", "Arabic"),
        ("CJK UNIFIED", "Han"),
        ("HANGUL SYLLABLE", "Hangul"),
        ("CHEROKEE", "Cherokee"),
    ):
        if name.startswith(said):
            assert script(character) == expected, f"{name}"


def test_the_tables_are_whole_and_look_alikes_are_what_they_look_like() -> None:
    named = [row for row in unicode17.SCRIPTS.strip().split("\n") if not row.startswith(" ")]
    assert len(named) == len({row.partition(":")[0] for row in named}) == 172
    assert [script(one) for one in "a\u0430\u03b1\u05d0\u4e00\u3042\u30a2\uac00\u0e01"] == [
        "Latin",
        "Cyrillic",
        "Greek",
        "Hebrew",
        "Han",
        "Hiragana",
        "Katakana",
        "Hangul",
        "Thai",
    ]
    alike = [row.partition(":") for row in unicode17.LOOK_ALIKES.strip().replace("\n ", " ").split("\n")]
    assert sum(len(points.split()) for _, _, points in alike) == 419
    assert all(latin(chr(int(point, 16))) == name for name, _, points in alike for point in points.split())
    assert [script(one) for one in "1 .\u0301\u2028\U0001f600\u0378"] == [None] * 6 + ["Greek"]
