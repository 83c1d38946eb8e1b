"""The runner finds who does not conform, by the case that shows it, and reports who does not keep to the protocol."""

import json
import re
import time
from pathlib import Path

import pytest

from support.vectors import CASES, CONFORMANCE, CONTENTS, PATIENCE, python, run, speaking

# --- who does not conform is found ----------------------------------------------------------------------------

START = f"""
import json, sys
sys.path.insert(0, {str(CONFORMANCE)!r})
import adapter_agentgate as right
Refusal, OPS = right.Refusal, right.OPS
"""

# group, a likely mistake as code, a case that shows it
MISTAKES: list[tuple[str, str, str]] = [
    (
        "canonical",
        """
def canonical(given):
    OPS_canonical(given)
    raw = given["text"] if "text" in given else right._bytes(given)
    return {"text": json.dumps(right.parse(raw), sort_keys=True, ensure_ascii=False, separators=(",", ":"))}
OPS_canonical, OPS["canonical"] = OPS["canonical"], canonical
""",
        "names are ordered by UTF-16 unit, not by code point",
    ),
    (
        "digests",
        """
import hashlib
OPS["payload_digest"] = lambda given: {"digest": hashlib.sha256(
    b"agentgate/payload/v1" + given["kind"].encode() + bytes.fromhex(given["salt"]) + right._bytes(given)
).hexdigest()}
""",
        "b'{\"a\":1}' as arguments with salt 0001…",
    ),
    (
        "documents",
        """
def identity(given):
    listed = [{"name": one["name"], "document": right.document_digest("policy", right._bytes(one)).hex()}
              for one in given["documents"]]
    return {"digest": right.digest("policy", {**given, "documents": listed}).hex()}
OPS["policy_identity"] = identity
""",
        "identity: several documents, sorted by name",
    ),
    (
        "authority",
        """
def action(given):
    bound = {name: given.get(name) for name in ("spec", "arguments", "provenance")}
    return {"digest": right.digest("action", {**given, **bound}).hex()}
OPS["action_digest"] = action
""",
        "action: without arguments to complete",
    ),
    (
        "keys",
        """
OPS["same_arguments"] = lambda given: {"same": any(
    value == given["recorded"].get(name) for name, value in given["new"].items()
)}
""",
        "the same call? bytes that are there go before a fingerprint",
    ),
    (
        "defaults",
        """
def complete(given):
    value, schema = right.parse(given["value"]), given["schema"]
    if isinstance(value, dict) and isinstance(schema, dict):
        for name, inner in schema.get("properties", {}).items():
            if "default" in inner:
                value.setdefault(name, inner["default"])
    return {"text": right.canonical(value).decode()}
OPS["complete"] = complete
""",
        "a default that its own subschema refuses is never filled",
    ),
    (
        "events",
        """
def event(given):
    document = json.loads(json.dumps(given["event"]))
    if isinstance(document.get("body"), dict):
        document["body"].pop("surprise", None)
    return OPS_event({"event": document})
OPS_event, OPS["event"] = OPS["event"], event
""",
        "charged with a field of another version",
    ),
    (
        "states",
        """
def state(given):
    return {"state": "READY"} if given == {"state": "READY", "event": "late"} else OPS_state(given)
OPS_state, OPS["state"] = OPS["state"], state
""",
        "READY, late: UNKNOWN",
    ),
    (
        "chain",
        """
def chain(given):
    try:
        return OPS_chain(given)
    except Refusal as refusal:
        if refusal.said["reason"] != "prev":
            raise
        return {"n": len(given["links"]), "hash": given["links"][-1]["hash"]}
OPS_chain, OPS["chain"] = OPS["chain"], chain
""",
        "prev: an event edited with its hash, the next one left",
    ),
    (
        "fold",
        """
def fold(given):
    found = OPS_fold(given)
    for attempt in found["attempts"].values():
        attempt["unresolved"] = attempt["state"] == "in_doubt"
    return found
OPS_fold, OPS["fold"] = OPS["fold"], fold
""",
        "reconciled: it happened",
    ),
    (
        "sealing",
        """
def unsealed(given):
    try:
        return OPS_open(given)
    except Refusal:
        return {"base64": "", "salt": ""}
OPS_open, OPS["open"] = OPS["open"], unsealed
""",
        "another payload's text",
    ),
    (
        "signatures",
        """
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
def verified(given):
    public, signature, message = (bytes.fromhex(given[name]) for name in ("public", "signature", "message"))
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except Exception:
        return {"valid": False}
    return {"valid": True}
OPS["verify"] = verified
""",
        "signature: a key of small order: 01" + "00" * 31,
    ),
]


def test_there_is_a_mistake_for_each_group() -> None:
    assert {group for group, _, _ in MISTAKES} == set(CONTENTS)


@pytest.mark.parametrize(("group", "mistake", "name"), MISTAKES, ids=[group for group, _, _ in MISTAKES])
def test_an_implementation_with_one_mistake_fails_in_its_group_by_the_case_that_shows_it(
    tmp_path: Path, group: str, mistake: str, name: str
) -> None:
    adapter = tmp_path / "wrong.py"
    adapter.write_text(f"{START}{mistake}\nright.serve()\n", "utf-8")
    done = run(adapter)
    assert done.returncode == 1, done.stdout + done.stderr
    failed = re.findall(r"^FAILED (\w+): (.*) \(\w+\)$", done.stdout, re.MULTILINE)
    assert (group, name) in failed
    assert {where for where, _ in failed} == {group}
    total = len(CONTENTS[group]["cases"])
    assert 0 < len(failed) < total
    assert f"{group}: {total - len(failed)} of {total}" in done.stdout.splitlines()
    assert done.stdout.splitlines()[-1] == f"{len(CASES) - len(failed)} of {len(CASES)} cases passed"


REFUSALS = [case for case in CONTENTS["canonical"]["cases"] if "refused" in case]


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ('"out": {"text": "null"}', len(REFUSALS)),
        ('"refused": {"reason": "no"}', len(REFUSALS)),
        ('"refused": "no"', len(REFUSALS)),
        ('"refused": {}', len(REFUSALS)),
    ],
)
def test_whoever_refuses_for_no_reason_or_not_at_all_fails_every_refusal(
    tmp_path: Path, answer: str, wrong: int
) -> None:
    refusals = tmp_path / "vectors"
    refusals.mkdir()
    content = {**CONTENTS["canonical"], "cases": REFUSALS}
    (refusals / "canonical.json").write_text(json.dumps(content), "utf-8")
    done = run(speaking(tmp_path, f"print('{{\"id\": %d, {answer}}}' % asked, flush=True)"), "--vectors", refusals)
    assert done.returncode == 1
    assert done.stdout.count("FAILED canonical: ") == wrong


@pytest.mark.parametrize(("said", "passed"), [("0", 1), ("0.0", 0), ("false", 0), ("-0.0", 0), ('"0"', 0)])
def test_a_number_is_not_answered_by_what_python_takes_for_the_same(tmp_path: Path, said: str, passed: int) -> None:
    (case,) = (case for case in CONTENTS["chain"]["cases"] if case["name"] == "no link yet")
    folder = tmp_path / "vectors"
    folder.mkdir()
    (folder / "chain.json").write_text(json.dumps({**CONTENTS["chain"], "cases": [case]}), "utf-8")
    answer = f'"out": {{"n": {said}, "hash": "{case["out"]["hash"]}"}}'
    done = run(speaking(tmp_path, f"print('{{\"id\": %d, {answer}}}' % asked, flush=True)"), "--vectors", folder)
    assert done.stdout.splitlines()[-1] == f"{passed} of 1 cases passed"


# --- an adapter that breaks the protocol is reported, and nothing hangs -----------------------------------------


BREACHES = [
    ("it ends", "sys.exit(3)", "it ended without an answer (exit code 3)"),
    ("it is killed", "os.kill(os.getpid(), 9)", "it ended without an answer (exit code -9)"),
    ("it raises", "raise SystemError", "it ended without an answer (exit code 1)"),
    ("it stops speaking", "os.close(1); time.sleep(60)", "it ended without an answer"),
    ("no JSON", "print('hello', flush=True)", "no JSON: hello"),
    ("an empty line", "print(flush=True)", "no JSON:"),
    ("no UTF-8", "os.write(1, b'\\xff\\n')", "no JSON: "),
    ("no object", "print('[]', flush=True)", "neither {id, out} nor {id, refused}: []"),
    ("no answer", "print('{\"id\": %d}' % asked, flush=True)", "neither {id, out} nor {id, refused}"),
    ("both", "print('{\"id\": %d, \"out\": {}, \"refused\": {}}' % asked, flush=True)", "neither {id, out} nor"),
    ("more", "print('{\"id\": %d, \"out\": {}, \"why\": 0}' % asked, flush=True)", "neither {id, out} nor"),
    ("another's answer", "print('{\"id\": %d, \"out\": {}}' % (asked + 1), flush=True)", "an answer to another"),
    ("an id that is no number", "print('{\"id\": \"%d\", \"out\": {}}' % asked, flush=True)", "an answer to another"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "said"), [one[1:] for one in BREACHES], ids=[one[0] for one in BREACHES])
def test_an_adapter_that_does_not_keep_to_the_protocol_is_reported_by_the_case(
    tmp_path: Path, statement: str, said: str
) -> None:
    done = run(speaking(tmp_path, statement), "--group", "keys")
    assert done.returncode == 2, done.stdout
    first, second, *_ = done.stdout.splitlines()
    assert first == "FAILED keys: downstream: the caller's key (idempotency_key)"
    assert second.strip().startswith(said)
    assert "given up: the adapter broke the protocol 3 times" in done.stdout


def test_an_adapter_that_hangs_is_waited_for_only_so_long(tmp_path: Path) -> None:
    start = time.monotonic()
    done = run(speaking(tmp_path, "time.sleep(600)"), "--group", "keys", timeout=0.2)
    assert done.returncode == 2
    assert done.stdout.count("no answer in 0.2 s") == 3
    assert time.monotonic() - start < PATIENCE


def test_after_one_crash_the_rest_is_still_asked_and_it_is_no_pass(tmp_path: Path) -> None:
    adapter = tmp_path / "fragile.py"
    crash = (
        "OPS['same_arguments'] = lambda given: OPS['fingerprint'](given) if given['recorded'] == {} else same(given)"
    )
    adapter.write_text(f"{START}same = OPS['same_arguments']\n{crash}\nright.serve()\n", "utf-8")
    done = run(adapter, "--group", "keys", "--group", "states")
    assert done.returncode == 2
    keys, states = len(CONTENTS["keys"]["cases"]), len(CONTENTS["states"]["cases"])
    assert f"keys: {keys - 2} of {keys}" in done.stdout.splitlines()
    assert f"states: {states} of {states}" in done.stdout.splitlines()


def test_a_command_that_does_not_exist_is_reported() -> None:
    done = python(CONFORMANCE / "run.py", "--", "/no/such/command")
    assert done.returncode == 2
    assert "cannot run: " in done.stdout


def test_without_a_command_there_is_nothing_to_run() -> None:
    assert python(CONFORMANCE / "run.py").returncode == 2
