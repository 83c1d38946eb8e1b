"""The vectors: agentgate passes them, they are whole and closed, and they are what the generator writes."""

import ast
import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agentgate.bodies import BODIES
from agentgate.states import EVENTS, STATES
from support.vectors import CASES, CONFORMANCE, CONTENTS, OPS, SCHEMA, VECTORS, loaded, python, run

# --- agentgate passes -----------------------------------------------------------------------------------------


def printed_commands() -> list[list[str]]:
    blocks = re.findall(r"```sh\n(.*?)```", (CONFORMANCE / "README.md").read_text("utf-8"), re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


@pytest.mark.parametrize("command", printed_commands(), ids=" ".join)
def test_the_commands_of_the_readme_end_well(command: list[str]) -> None:
    done = python(*(sys.executable if word == "python" else word for word in command[1:]))
    assert done.returncode == 0, done.stdout + done.stderr


def test_agentgate_answers_every_case_as_it_stands_there() -> None:
    done = run(CONFORMANCE / "adapter_agentgate.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        *(f"{group}: {len(content['cases'])} of {len(content['cases'])}" for group, content in CONTENTS.items()),
        f"{len(CASES)} of {len(CASES)} cases passed",
    ]
    assert len(CASES) > 1_000


def test_one_group_can_be_asked_alone() -> None:
    done = run(CONFORMANCE / "adapter_agentgate.py", "--group", "keys", "--group", "chain")
    assert [line.partition(":")[0] for line in done.stdout.splitlines()[:-1]] == ["keys", "chain"]


# --- the vectors are whole and are what is generated ------------------------------------------------------------


def test_every_operation_is_asked_and_the_adapter_knows_no_other() -> None:
    assert {case["op"] for _, case in CASES if "out" in case} == OPS
    assert set(loaded("adapter_agentgate").OPS) == OPS


def test_every_type_of_event_and_every_pair_of_the_state_table_is_asked() -> None:
    read = [json.loads(case["out"]["text"])["type"] for _, case in CASES if case["op"] == "event" and "out" in case]
    assert set(read) == set(BODIES)
    pairs = {(case["in"]["state"], case["in"]["event"]) for _, case in CASES if case["op"] == "state"}
    assert pairs >= {(state, event) for state in (*STATES, "NEW") for event in EVENTS}


def test_the_version_is_one_number_everywhere() -> None:
    version = int((CONFORMANCE / "VERSION").read_text("ascii"))
    assert {content["version"] for content in CONTENTS.values()} == {version}
    assert SCHEMA["properties"]["version"] == {"const": version}


def copied(tmp_path: Path) -> Path:
    folder = tmp_path / "conformance"
    shutil.copytree(CONFORMANCE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.parametrize("seed", ["1", "2"])
def test_generating_again_elsewhere_writes_the_same_bytes(tmp_path: Path, seed: str) -> None:
    folder = copied(tmp_path)
    for path in (folder / "vectors").iterdir():
        path.unlink()
    done = python(folder / "generate.py", cwd=tmp_path, seed=seed)
    assert done.returncode == 0, done.stderr
    assert {path.name: path.read_bytes() for path in (folder / "vectors").iterdir()} == {
        path.name: path.read_bytes() for path in VECTORS.iterdir()
    }


def test_a_vector_that_was_edited_or_left_over_is_found(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    path = folder / "vectors" / "keys.json"
    path.write_text(path.read_text("ascii").replace("downstream", "upstream", 1), "ascii")
    (folder / "vectors" / "extra.json").write_text("{}", "ascii")
    done = python(folder / "generate.py", "--check", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [f"{name}.json is not what would be written" for name in ("extra", "keys")]


def test_nothing_is_written_where_agentgate_and_the_second_computation_disagree(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    independent = folder / "independent.py"
    text = independent.read_text("utf-8")
    independent.write_text(
        text.replace('b"agentgate/payload/v1" + NUL + kind', 'b"agentgate/payload/v1" + kind'), "utf-8"
    )
    done = python(folder / "generate.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "payload_digest: b'{\"a\":1}' as arguments" in done.stderr
    for path in (folder / "vectors").iterdir():
        assert path.read_bytes() == (VECTORS / path.name).read_bytes()


@pytest.mark.parametrize("name", ["run", "closed", "independent", "aes"])
def test_what_others_run_needs_the_standard_library_alone(name: str) -> None:
    tree = ast.parse((CONFORMANCE / f"{name}.py").read_text("utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    foreign = {module.partition(".")[0] for module in imported} - set(sys.stdlib_module_names)
    assert foreign == {"run": {"closed"}, "independent": {"aes"}}.get(name, set())


# --- the schema is closed -------------------------------------------------------------------------------------


def spoilt(case: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a case with something in it, or without something, that the schema must not let pass."""
    for place in ("", "in", "out", "refused"):
        if place and place not in case:
            continue
        wrong = json.loads(json.dumps(case))
        (wrong[place] if place else wrong)["surprise"] = 0
        yield f"a surprise in {place or 'the case'}", wrong
    for name in case:
        yield f"without {name}", {key: value for key, value in case.items() if key != name}
    yield "another operation", {**case, "op": "genesys"}
    yield "both", {**case, "out": case.get("out", {}), "refused": {"reason": "x"}}
    yield "no text for a name", {**case, "name": 1}
    for name in case["in"]:
        if case["op"] not in {"canonical", "complete"} or name not in {"schema", "bounds"}:
            yield f"null for {name}", {**case, "in": {**case["in"], name: None}}


def test_the_runners_few_words_of_json_schema_say_what_json_schema_says() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    faults = loaded("closed").faults
    real = {op: Draft202012Validator({**SCHEMA["$defs"][f"op-{op}"], "$defs": SCHEMA["$defs"]}) for op in OPS}
    for group, content in CONTENTS.items():
        assert list(faults(content, SCHEMA, SCHEMA)) == [], group
    assert [case["name"] for _, case in CASES if not real[case["op"]].is_valid(case)] == []
    whole = Draft202012Validator(SCHEMA)
    for case in {case["op"] + str("out" in case): case for _, case in CASES}.values():
        for how, wrong in spoilt(case):
            content = {"group": "g", "version": 1, "cases": [wrong]}
            agreed = [whole.is_valid(content), not list(faults(content, SCHEMA, SCHEMA))]
            free = (case["op"], how) in {("event", "null for event"), ("outcome_fingerprint", "null for result")}
            assert agreed == [free, free], (case["op"], how)


def test_a_word_that_the_runner_does_not_check_is_an_error_of_the_schema() -> None:
    faults = loaded("closed").faults
    with pytest.raises(ValueError, match="maxLength"):
        list(faults("x", {"maxLength": 1}, {}))


def _edit(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def edit(content: dict[str, Any]) -> None:
        *way, last = path.split("/")
        found: Any = content
        for step in way:
            found = found[int(step) if step.isdecimal() else step]
        found[last] = value

    return edit


BROKEN_VECTORS: list[tuple[str, Callable[[dict[str, Any]], None], str]] = [
    ("an unknown key of a case", _edit("cases/0/note", "x"), "/cases/0/note: unknown"),
    ("an unknown key of what goes in", _edit("cases/0/in/salt", "x"), "/cases/0/in/salt: unknown"),
    ("an unknown key of what comes out", _edit("cases/0/out/why", "x"), "/cases/0/out/why: unknown"),
    ("an unknown operation", _edit("cases/0/op", "guess"), "/cases/0/op: none of the operations"),
    ("another version", _edit("version", 2), "/version: not 1"),
    ("another group's name", _edit("group", "other"), "/group: not 'keys'"),
    ("a name twice", _edit("cases/1/name", "downstream: the caller's key"), "two cases are named"),
]


@pytest.mark.parametrize(("edit", "said"), [one[1:] for one in BROKEN_VECTORS], ids=[one[0] for one in BROKEN_VECTORS])
def test_vectors_that_are_not_what_the_schema_allows_are_not_run(
    tmp_path: Path, edit: Callable[[dict[str, Any]], None], said: str
) -> None:
    content = json.loads((VECTORS / "keys.json").read_text("utf-8"))
    edit(content)
    (tmp_path / "keys.json").write_text(json.dumps(content), "utf-8")
    done = run("never started", "--vectors", tmp_path)
    assert done.returncode == 2
    assert done.stdout.startswith("cannot run: ")
    assert said in done.stdout


@pytest.mark.parametrize(
    ("options", "said"), [(["--group", "nothing"], "the groups there are"), ([], "the groups there are none")]
)
def test_a_group_that_is_not_there_is_no_pass(tmp_path: Path, options: list[str], said: str) -> None:
    done = run("never started", *(options or ["--vectors", str(tmp_path)]))
    assert done.returncode == 2
    assert said in done.stdout
