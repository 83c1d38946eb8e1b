"""Every real tool becomes a spec or is refused with a reason, and each spec is its document."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from agentgate.errors import SpecRefused
from agentgate.tools.decorator import gated
from agentgate.tools.registry import ToolSet
from agentgate.tools.spec import ToolSpec, from_document

Real: TypeAlias = tuple[list[ToolSpec], dict[str, SpecRefused]]

TOOLS = 2_516
# What the meta-schema itself refuses; calls of these carry the verdict `bad-schema`.
BROKEN = {
    "8f30a262341638ae": "/input_schema/properties/options/properties/issuer/type",
    "b8625c202b06fefd": "/input_schema/properties/limit/enum",
    "86d1418bc62768ae": "/input_schema/properties/limit/enum",
}


def read(corpora: Path) -> Real:
    made: list[ToolSpec] = []
    refused: dict[str, SpecRefused] = {}
    for line in (corpora / "tools" / "tools.jsonl").read_text("utf-8").splitlines():
        each: dict[str, Any] = json.loads(line)
        stated = {"namespace": each["server"], "name": each["tool"], "description": each["description"] or ""}
        try:
            made.append(ToolSpec(**stated, input_schema=each["schema"]))
        except SpecRefused as refusal:
            refused[each["id"]] = refusal
    return made, refused


def digest_of_all(specs: list[ToolSpec]) -> str:
    return hashlib.sha256(b"".join(spec.digest for spec in specs)).hexdigest()


@pytest.fixture(scope="module")
def real(corpora: Path) -> Real:
    return read(corpora)


def test_every_real_tool_is_a_spec_but_the_truly_broken_ones(real: Real) -> None:
    made, refused = real
    assert len(made) == TOOLS - len(BROKEN)
    assert {each: refusal.path for each, refusal in refused.items()} == BROKEN
    assert all(refusal.remedy for refusal in refused.values())


def test_no_real_name_is_refused(real: Real) -> None:
    assert sum(not spec.name.replace("-", "_").replace("_", "a").isalnum() for spec in real[0]) > 1_000


def test_every_real_spec_reads_back_from_its_document(real: Real) -> None:
    for spec in real[0]:
        back = from_document(spec.document())
        assert (back.document(), back.digest) == (spec.document(), spec.digest)


def test_no_two_real_specs_share_a_digest_unless_they_are_the_same(real: Real) -> None:
    documents = {spec.digest: spec.document() for spec in real[0]}
    assert all(documents[spec.digest] == spec.document() for spec in real[0])
    assert len(documents) == len({spec.document() for spec in real[0]})


def test_a_fresh_process_gives_every_real_spec_the_same_digest(real: Real, corpora: Path) -> None:
    program = (
        "import pathlib, sys; import test_spec_corpora as corpora_;"
        "print(corpora_.digest_of_all(corpora_.read(pathlib.Path(sys.argv[1]))[0]))"
    )
    there = subprocess.run(
        [sys.executable, "-c", program, str(corpora)],
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == digest_of_all(real[0])


def test_all_real_names_stand_in_one_set_and_further_specs_of_a_name_are_refused(real: Real) -> None:
    first = {(spec.namespace, spec.name): spec for spec in reversed(real[0])}
    tools = ToolSet(gated(spec, print) for spec in first.values())
    assert len(tools) == len(first)
    for spec in real[0]:
        if first[spec.namespace, spec.name] is not spec:
            with pytest.raises(SpecRefused, match="another tool"):
                tools.added(gated(spec, print))


def test_real_look_alikes_do_not_exist_inside_a_server(real: Real) -> None:
    first = {(spec.namespace, spec.name): spec for spec in real[0]}
    tools = ToolSet(gated(spec, print) for spec in first.values())
    for namespace, name in first:
        assert tools.near(namespace, name.upper()) == (name,)
