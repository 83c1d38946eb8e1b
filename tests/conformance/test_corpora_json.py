"""Other people's vectors: RFC 8785 and JSONTestSuite, each file named where we differ on purpose."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from agentgate.canonical import canonical, parse, snapshot
from agentgate.errors import NotCanonical
from support.documents import identical

NAMES = ["arrays", "french", "structures", "unicode", "values", "weird"]

# Valid by RFC 8259, which lets parsers differ on what they mean; refused here because they do.
DUPLICATE_KEYS = {"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"}

# What the suite leaves to the implementation, pinned: canonical bytes, or the reason of the refusal.
IMPLEMENTATION_DEFINED: dict[str, bytes | str] = {
    "i_number_double_huge_neg_exp.json": b"[0]",
    "i_number_huge_exp.json": "not_finite",
    "i_number_neg_int_huge_exp.json": "not_finite",
    "i_number_pos_double_huge_exp.json": "not_finite",
    "i_number_real_neg_overflow.json": "not_finite",
    "i_number_real_pos_overflow.json": "not_finite",
    "i_number_real_underflow.json": b"[0]",
    "i_number_too_big_neg_int.json": "integer_range",
    "i_number_too_big_pos_int.json": "integer_range",
    "i_number_very_big_negative_int.json": "integer_range",
    "i_object_key_lone_2nd_surrogate.json": "surrogate",
    "i_string_1st_surrogate_but_2nd_missing.json": "surrogate",
    "i_string_1st_valid_surrogate_2nd_invalid.json": "surrogate",
    "i_string_UTF-16LE_with_BOM.json": "encoding",
    "i_string_UTF-8_invalid_sequence.json": "encoding",
    "i_string_UTF8_surrogate_U+D800.json": "encoding",
    "i_string_incomplete_surrogate_and_escape_valid.json": "surrogate",
    "i_string_incomplete_surrogate_pair.json": "surrogate",
    "i_string_incomplete_surrogates_escape_valid.json": "surrogate",
    "i_string_invalid_lonely_surrogate.json": "surrogate",
    "i_string_invalid_surrogate.json": "surrogate",
    "i_string_invalid_utf-8.json": "encoding",
    "i_string_inverted_surrogates_U+1D11E.json": "surrogate",
    "i_string_iso_latin_1.json": "encoding",
    "i_string_lone_second_surrogate.json": "surrogate",
    "i_string_lone_utf8_continuation_byte.json": "encoding",
    "i_string_not_in_unicode_range.json": "encoding",
    "i_string_overlong_sequence_2_bytes.json": "encoding",
    "i_string_overlong_sequence_6_bytes.json": "encoding",
    "i_string_overlong_sequence_6_bytes_null.json": "encoding",
    "i_string_truncated-utf-8.json": "encoding",
    "i_string_utf16BE_no_BOM.json": "encoding",
    "i_string_utf16LE_no_BOM.json": "encoding",
    "i_structure_500_nested_arrays.json": "depth",
    "i_structure_UTF-8_BOM_empty_object.json": "encoding",
}

TRANSFORMED: dict[str, bytes | str] = {
    "number_-9223372036854775808.json": "integer_range",
    "number_-9223372036854775809.json": "integer_range",
    "number_1.0.json": b"[1]",
    "number_1.000000000000000005.json": b"[1]",
    "number_1000000000000000.json": b"[1000000000000000]",
    "number_10000000000000000999.json": "integer_range",
    "number_1e-999.json": b"[0]",
    "number_1e6.json": b"[1000000]",
    "number_9223372036854775807.json": "integer_range",
    "number_9223372036854775808.json": "integer_range",
    "object_key_nfc_nfd.json": b'{"e\xcc\x81":"NFD","\xc3\xa9":"NFC"}',
    "object_key_nfd_nfc.json": b'{"e\xcc\x81":"NFD","\xc3\xa9":"NFC"}',
    "object_same_key_different_values.json": "duplicate_key",
    "object_same_key_same_value.json": "duplicate_key",
    "object_same_key_unclear_values.json": "duplicate_key",
    "string_1_escaped_invalid_codepoint.json": "surrogate",
    "string_1_invalid_codepoint.json": "encoding",
    "string_2_escaped_invalid_codepoints.json": "surrogate",
    "string_2_invalid_codepoints.json": "encoding",
    "string_3_escaped_invalid_codepoints.json": "surrogate",
    "string_3_invalid_codepoints.json": "encoding",
    "string_with_escaped_NULL.json": b'["A\\u0000B"]',
}


def verdict(path: Path) -> bytes | str:
    try:
        return canonical(parse(path.read_bytes()))
    except NotCanonical as error:
        return error.reason


@pytest.mark.parametrize("name", NAMES)
def test_the_vectors_of_rfc_8785_come_out_byte_for_byte(corpora: Path, name: str) -> None:
    folder = corpora / "rfc8785"
    expected = bytes.fromhex((folder / "outhex" / f"{name}.txt").read_text())
    written = canonical(parse((folder / "input" / f"{name}.json").read_bytes()))
    assert written == expected == (folder / "output" / f"{name}.json").read_bytes()
    assert canonical(snapshot(json.loads((folder / "input" / f"{name}.json").read_bytes()))) == expected


def test_no_vector_of_rfc_8785_is_left_out(corpora: Path) -> None:
    assert sorted(path.stem for path in (corpora / "rfc8785" / "input").iterdir()) == NAMES


def test_10_000_numbers_are_written_as_ecmascript_writes_them(corpora: Path) -> None:
    lines = (corpora / "rfc8785" / "es6_numbers_10000.txt").read_text().split()
    pairs = [line.split(",") for line in lines]
    numbers = [(struct.unpack(">d", bytes.fromhex(bits.zfill(16)))[0], text) for bits, text in pairs]
    assert len(numbers) == 10_000
    assert [text for number, text in numbers if canonical(number) != text.encode()] == []


def test_of_these_numbers_84_cannot_be_read_back_and_are_refused_as_text(corpora: Path) -> None:
    texts = [line.split(",")[1] for line in (corpora / "rfc8785" / "es6_numbers_10000.txt").read_text().split()]
    refused = 0
    for text in texts:
        try:
            assert canonical(parse(text)) == text.encode()
        except NotCanonical as error:
            assert error.reason == "integer_range"  # another reader would round these digits
            assert 2**53 <= abs(int(text)) < 10**21
            refused += 1
    assert refused == 84


def test_188_of_188_broken_texts_are_refused(corpora: Path) -> None:
    files = sorted((corpora / "jsontestsuite" / "test_parsing").glob("n_*"))
    assert len(files) == 188
    assert [file.name for file in files if isinstance(verdict(file), bytes)] == []


def test_93_of_95_good_texts_are_accepted_and_the_two_have_duplicate_keys(corpora: Path) -> None:
    files = sorted((corpora / "jsontestsuite" / "test_parsing").glob("y_*"))
    assert len(files) == 95
    refused = {file.name: found for file in files if isinstance(found := verdict(file), str)}
    assert refused == dict.fromkeys(DUPLICATE_KEYS, "duplicate_key")


def test_what_the_suite_leaves_open_is_pinned(corpora: Path) -> None:
    files = sorted((corpora / "jsontestsuite" / "test_parsing").glob("i_*"))
    assert {file.name: verdict(file) for file in files} == IMPLEMENTATION_DEFINED


def test_texts_that_parsers_transform_are_pinned(corpora: Path) -> None:
    files = sorted((corpora / "jsontestsuite" / "test_transform").glob("*.json"))
    assert {file.name: verdict(file) for file in files} == TRANSFORMED


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_real_arguments_and_schemas_are_written_as_rfc8785_alone_writes_them(corpora: Path) -> None:
    values = [tool["schema"] for tool in lines(corpora / "tools" / "tools.jsonl")]
    values += [call["arguments"] for call in lines(corpora / "tools" / "calls.jsonl") if "arguments" in call]
    assert len(values) > 7_000
    for value in values:
        assert canonical(copied := snapshot(value)) == rfc8785.dumps(value)
        assert identical(parse(canonical(copied)), copied)


def test_real_raw_arguments_are_parsed_as_json_loads_parses_them_or_refused(corpora: Path) -> None:
    calls = lines(corpora / "tools" / "calls.jsonl")
    raws = [call["arguments_raw"] for call in calls if "arguments_raw" in call]
    assert len(raws) > 1_000
    refused = []
    for raw in raws:
        try:
            assert parse(raw) == json.loads(raw)
        except NotCanonical as error:
            refused.append(error.reason)
    assert refused == []
