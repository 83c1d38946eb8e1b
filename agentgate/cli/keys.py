"""Commands about people's keys: make one, put it into a keyring file or a ledger's table, list and revoke them.

A private key is written by `generate` alone, and read here by `sign` and `sign-vote`; none of them opens a database.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from agentgate.approval import Verdict
from agentgate.canonical import Json, canonical, parse
from agentgate.cli import pages
from agentgate.cli.acting import opened
from agentgate.cli.arguments import answering, as_json, asked_passphrase, by, db, digest, note, some_by
from agentgate.cli.arguments import keyring as keyring_option
from agentgate.cli.arguments import passphrase as passphrase_option
from agentgate.cli.endings import OK, refusal
from agentgate.cli.terminal import say, say_json
from agentgate.clock import SystemClock, to_datetime
from agentgate.errors import Damaged, Misuse, NotCanonical
from agentgate.gate import reading
from agentgate.gate.keyring import KeyTable, ListedKey
from agentgate.keyfile import add_key, revoke_key
from agentgate.keyring import Keyring, LedgerKey, sign_addition
from agentgate.ownfiles import read_unchanged
from agentgate.printable import printable
from agentgate.publickeys import ApproverKey, entry_of, keys_of, read_document, time_us
from agentgate.shape import hash32, identifier, signature64
from agentgate.signing import SigningKey, sign_vote

Command = TypeVar("Command", bound=Callable[..., Any])

_HASH = "give the 64 hexadecimal digits that `agentgate keys list` shows"
_ENTRY = "give the JSON that `agentgate keys generate` prints, or @FILE"
_SIGNED = "give the JSON that `agentgate keys sign` prints, or @FILE"


@click.group(short_help="People's keys: generate, sign, add, list, revoke.")
def keys() -> None:
    """Make and keep the keys that people sign their votes with."""


def _time(_context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    try:
        return time_us(value)
    except ValueError as error:
        raise refusal(parameter.opts[0], "no time", str(error)) from error


def _key(_context: click.Context, _parameter: click.Parameter, value: str) -> bytes:
    if hash32(value, "") is not None:
        raise refusal("KEY", "no hash of a key", _HASH)
    return bytes.fromhex(value)


def _ledger(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str:
    if value is None or identifier(value, "") is not None:
        raise refusal("--ledger", "no ledger's id", "give the 36 characters that `agentgate migrate` prints")
    return value


_path = click.Path(path_type=Path)
_entry = click.argument("entry", metavar="ENTRY")


@keys.command(short_help="Make a key: its private file, its public entry.")
@click.argument("file", type=_path)
@click.option("--name", required=True, help="Whose it is: the approver that its votes count as.")
@click.option("--role", "roles", multiple=True, help="What the person may approve; again for more.")
@click.option("--from", "from_us", metavar="TIME", callback=_time, help="Valid from; now where it is left out.")
@click.option("--until", "until_us", metavar="TIME", callback=_time, help="Valid until; without end where left out.")
@click.option("--trusted-to-add", is_flag=True, help="Keys of a ledger's table are trusted that this one signs.")
@keyring_option
@passphrase_option
@as_json
@answering
def generate(*, file: Path, keyring: Path | None, passphrase: bool, json: bool, **given: Any) -> int:
    """Make a fresh key: the private half in a new FILE that its owner alone may read, the public one as an entry.

    The entry is printed, or put into the file of --keyring.
    """
    clock = SystemClock()
    made = SigningKey.new(clock)
    given["from_us"] = clock.now_us() // 1_000_000 * 1_000_000 if given["from_us"] is None else given["from_us"]
    key = ApproverKey(public=made.public, **given | {"roles": tuple(given["roles"])})
    made.save(file, passphrase=asked_passphrase(confirm=True) if passphrase else None)
    if keyring is not None:
        try:
            add_key(keyring, key, clock=clock)
        except Misuse:
            file.unlink()  # nobody knows this key, and nobody will
            raise
    if json or keyring is None:
        say_json(entry_of(key))
    else:
        where = f"{printable(str(file))}; its public half is in {printable(str(keyring))}"
        say([f"key {key.hash.hex()} of {pages.text(key.name)} is in {where}"])
    return OK


@keys.command(short_help="Sign that a key is to be trusted in a ledger.")
@_entry
@click.option("--ledger", metavar="ID", callback=_ledger, help="The ledger's id.")
@click.option("--signing-key", metavar="FILE", type=_path, required=True, help="Of somebody trusted to add keys.")
@passphrase_option
@answering
def sign(*, entry: str, ledger: str, signing_key: Path, passphrase: bool) -> int:
    """Sign that the key of ENTRY is to be trusted in a ledger; needs no ledger, and prints what `keys add` takes."""
    key, more = _read(entry)
    if more:
        raise refusal("ENTRY", "it is signed already", _ENTRY)
    private = SigningKey.load(signing_key, passphrase=asked_passphrase(confirm=False) if passphrase else None)
    signed = sign_addition(private, key, ledger=ledger)
    say_json(entry_of(key) | {"signer": signed.signer.hex(), "signature": signed.signature.hex()})
    return OK


@keys.command("sign-vote", short_help="Sign a vote where no ledger is.")
@digest
@click.option("--verdict", type=click.Choice(get_args(Verdict)), required=True, help="What is said.")
@by
@click.option("--signing-key", metavar="FILE", type=_path, required=True, help="Of whoever says it.")
@passphrase_option
@answering
def sign_vote_(*, digest: str | None, verdict: Verdict, by: str, signing_key: Path, passphrase: bool) -> int:
    """Sign a vote on the approval whose digest was shown; needs no ledger, and prints what `--signed-vote` takes."""
    if digest is None:
        raise refusal("--digest", "missing", "say which was shown: --digest HEX, as `agentgate approvals ID` shows it")
    private = SigningKey.load(signing_key, passphrase=asked_passphrase(confirm=False) if passphrase else None)
    say_json(sign_vote(private, approval=digest, verdict=verdict, approver=by).to_json())
    return OK


@keys.command(short_help="Put a key into a keyring file or a ledger's table.")
@_entry
@keyring_option
@db
@some_by
@note
@as_json
@answering
def add(*, entry: str, keyring: Path | None, db: str | None, by: str | None, note: str, json: bool) -> int:
    """Put the key of ENTRY into the file of --keyring; with --db, a signed one into a ledger's table.

    The table takes what the keyring file trusts alone: name it as well.
    """
    key, more = _read(entry)
    if keyring is None:
        raise refusal("--keyring", "missing", "name the keyring file: --keyring FILE")
    if db is None and more:
        raise refusal(
            "--db", "missing", "a signed entry goes into a ledger's table: --db URL; a file needs no signature"
        )
    if db is None:
        changed = add_key(keyring, key, clock=SystemClock())
    else:
        _add_signed(db, key, more, keyring=Keyring.load(keyring), by=_named(by), note=note)
        changed = True
    where = printable(str(keyring if db is None else db))
    _tell(key.hash, f"{'added to' if changed else 'stands already in'} {where}", json=json, changed=changed)
    return OK


@keys.command(short_help="Let a key carry nothing any more.")
@click.argument("key", callback=_key)
@keyring_option
@db
@click.option("--since", "since_us", metavar="TIME", callback=_time, help="From when on; now where it is left out.")
@some_by
@note
@as_json
@answering
def revoke(
    *, key: bytes, keyring: Path | None, db: str | None, since_us: int | None, by: str | None, note: str, json: bool
) -> int:
    """Revoke KEY, for good: in the file of --keyring, or with --db in a ledger, for every gate on it."""
    if (keyring is None) == (db is None):
        raise refusal("--keyring|--db", "one of them is needed", "say where: --keyring FILE, or --db URL")
    if keyring is not None:
        clock = SystemClock()
        asked_us = clock.now_us() if since_us is None else since_us
        stands_us = revoke_key(keyring, key, at_us=asked_us, clock=clock)
        _tell(key, f"revoked since {pages.time(to_datetime(stands_us))}", json=json, changed=stands_us == asked_us)
        return OK
    assert db is not None  # one of them was needed
    since = None if since_us is None else to_datetime(since_us)
    with opened(db) as gate:
        changed = gate.keys.revoke(key, by=_named(by), since=since, note=note)
    _tell(key, "revoked" if changed else "was revoked already", json=json, changed=changed)
    return OK


@keys.command("list", short_help="List keys and whether they are valid.")
@keyring_option
@db
@as_json
@answering
def list_(*, keyring: Path | None, db: str | None, json: bool) -> int:
    """List the keys of a keyring file, of a ledger's table, or of both: then the table is judged by the file."""
    if keyring is None and db is None:
        raise refusal("--keyring|--db", "missing", "say which: --keyring FILE, --db URL, or both")
    ring = None if keyring is None else Keyring.load(keyring)
    listed: tuple[ListedKey, ...] = ()
    if db is not None:
        with reading.opened(db) as ledger:
            listed = KeyTable(ledger).list(ring)
    found = [*_of_file(ring, listed), *_of_table(listed, judged=ring is not None)]
    if json:
        for document in found:
            say_json(document)
        return OK
    head = ("key", "name", "roles", "from", "until", "state", "where")
    say(pages.table(head, (_row(document) for document in found)))
    return OK


def _of_file(ring: Keyring | None, listed: tuple[ListedKey, ...]) -> Iterator[dict[str, Json]]:
    revoked = {one.hash: one.revoked_us for one in listed if one.revoked_us is not None}
    now_us = SystemClock().now_us()
    strict = () if ring is None else ring.with_ledger_keys((), revoked=revoked, ledger="", now_us=now_us)
    for key in strict:
        yield _document(key, "file", key.judge(at_us=now_us, now_us=now_us) or "valid")


def _of_table(listed: tuple[ListedKey, ...], *, judged: bool) -> Iterator[dict[str, Json]]:
    now_us = SystemClock().now_us()
    for one in listed:
        if one.added is None:
            continue
        key = one.added
        state: str = "not_judged" if one.refusal is None else one.refusal
        if judged and one.refusal is None:
            state = key.key().judge(at_us=now_us, now_us=now_us) or "valid"
        if one.revoked_us is not None and one.revoked_us <= now_us:
            state = "key_revoked"
        yield _document(key, "table", state) | {"revoked_us": one.revoked_us, "signer": key.signer.hex()}


def _document(key: ApproverKey | LedgerKey, where: str, state: str) -> dict[str, Json]:
    return {
        "key": key.hash.hex(),
        "public": key.public.hex(),
        "name": key.name,
        "roles": [*key.roles],
        "from_us": key.from_us,
        "until_us": key.until_us,
        "revoked_us": getattr(key, "revoked_us", None),
        "trusted_to_add": getattr(key, "trusted_to_add", False),
        "state": state,
        "where": where,
        "signer": None,
    }


def _row(document: dict[str, Any]) -> tuple[str, ...]:
    until_us = document["until_us"]
    return (
        document["key"],
        pages.text(document["name"]),
        ", ".join(map(pages.text, document["roles"])) + (" (adds)" if document["trusted_to_add"] else ""),
        _when(document["from_us"]),
        "-" if until_us is None else _when(until_us),
        document["state"],
        document["where"],
    )


def _when(at_us: int) -> str:
    try:
        return pages.time(to_datetime(at_us))
    except Damaged:  # a row that nobody signed may say anything
        return f"{at_us} us"


def _named(by: str | None) -> str:
    if by is None:
        raise refusal("--by", "missing", "name who does this: --by ops:ada")
    return by


def _read(entry: str) -> tuple[ApproverKey, dict[str, Any]]:
    """Read an entry: the key, and whoever signed for it."""
    content = read_unchanged(Path(entry[1:]), "ENTRY") if entry.startswith("@") else entry.encode("utf-8", "replace")
    try:
        document: Any = parse(content)
    except NotCanonical as error:
        raise refusal("ENTRY", f"no JSON: {error.reason}", _ENTRY) from error
    more = {} if type(document) is not dict else {name: document.pop(name) for name in _MORE if name in document}
    if more and any(name not in more or check(more[name], "") is not None for name, check in _MORE.items()):
        raise refusal("ENTRY", "its signer or signature is none", _SIGNED)
    whole = read_document(canonical({"version": 1, "keys": [document]}), source="ENTRY")
    return keys_of(whole, source="ENTRY")[0], more


_MORE = {"signer": hash32, "signature": signature64}


def _add_signed(url: str, key: ApproverKey, more: dict[str, Any], *, keyring: Keyring, by: str, note: str) -> None:
    if not more:
        raise refusal("ENTRY", "nobody has signed it", _SIGNED)
    added = LedgerKey(
        public=key.public,
        name=key.name,
        roles=key.roles,
        from_us=key.from_us,
        until_us=key.until_us,
        signer=bytes.fromhex(more["signer"]),
        signature=bytes.fromhex(more["signature"]),
    )
    with opened(url) as gate:
        gate.keys.add(added, keyring=keyring, by=by, note=note)


def _tell(key: bytes, done: str, *, json: bool, changed: bool) -> None:
    if json:
        say_json({"key": key.hex(), "changed": changed})
    else:
        say([f"key {key.hex()}: {done}"])
