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
from support.jsontestsuite import DUPLICATE_KEYS, IMPLEMENTATION_DEFINED, TRANSFORMED, files

NAMES = ["arrays", "french", "structures", "unicode", "values", "weird"]


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
    broken = files(corpora, "n_")
    assert len(broken) == 188
    assert [file.name for file in broken if isinstance(verdict(file), bytes)] == []


def test_93_of_95_good_texts_are_accepted_and_the_two_have_duplicate_keys(corpora: Path) -> None:
    good = files(corpora, "y_")
    assert len(good) == 95
    refused = {file.name: found for file in good if isinstance(found := verdict(file), str)}
    assert refused == dict.fromkeys(DUPLICATE_KEYS, "duplicate_key")


def test_what_the_suite_leaves_open_is_pinned(corpora: Path) -> None:
    assert {file.name: verdict(file) for file in files(corpora, "i_")} == IMPLEMENTATION_DEFINED


def test_texts_that_parsers_transform_are_pinned(corpora: Path) -> None:
    assert {file.name: verdict(file) for file in files(corpora, room="test_transform")} == TRANSFORMED


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
