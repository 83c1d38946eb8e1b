"""Changing a file of public keys: one writer at a time, all of the change or none, every other key as it was.

A reader never waits and sees the file before the change or after it: it is written beside and put in its place.
"""

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentgate.clock import Clock
from agentgate.errors import Misuse, NotFound
from agentgate.ownfiles import read_unchanged
from agentgate.publickeys import VERSION, ApproverKey, entry_of, keys_of, read_document, time_text, time_us
from agentgate.signing import key_hash

_NEW_FILE = 0o644


def add_key(path: Path, key: ApproverKey, *, clock: Clock) -> bool:
    """Add a key to a file, which is made where there is none; return whether it was not there.

    Raises:
        KeyringRefused: the file holds something that is not what it must be; it is left as it was.
        Misuse: it cannot be changed, or holds the key with another name, roles or times.
    """
    with _changing(path, clock) as document:
        stands = _entry(document, key.hash)
        if stands is None:
            document["keys"].append(entry_of(key))
        elif keys_of({"keys": [stands]}, source=str(path)) != (key,):
            raise Misuse(f"keyring: {path} holds the key {key.hash.hex()} otherwise; revoke it and make a new one")
        return stands is None


def revoke_key(path: Path, key: bytes, *, at_us: int, clock: Clock) -> int:
    """Mark a key as revoked; return since when it is, which is earlier where it was already.

    Args:
        path: the file.
        key: the hash of the public key.
        at_us: from when on it carries nothing.
        clock: names the file that is written beside.

    Raises:
        NotFound: there is no such key in the file.
        KeyringRefused: the file holds something that is not what it must be; it is left as it was.
        Misuse: it cannot be changed.
    """
    with _changing(path, clock, create=False) as document:
        entry = _entry(document, key)
        if entry is None:
            raise NotFound("key", key.hex())
        stood = time_us(entry["revoked"]) if "revoked" in entry else at_us
        entry["revoked"] = time_text(min(stood, at_us))
        return min(stood, at_us)


def _entry(document: dict[str, Any], key: bytes) -> dict[str, Any] | None:
    found: Iterator[dict[str, Any]] = (
        entry for entry in document["keys"] if key_hash(bytes.fromhex(entry["public"])) == key
    )
    return next(found, None)


@contextmanager
def _changing(path: Path, clock: Clock, *, create: bool = True) -> Iterator[dict[str, Any]]:
    """Hand out the document of a file to be changed in place, and write it once the block has ended well."""
    path = path.resolve()  # a link stays a link
    try:
        with _alone(path.parent):
            there = path.exists()
            if not there and not create:
                raise Misuse(f"keyring: there is no {path}; name the file that holds the key")
            document = (
                {"version": VERSION, "keys": []}
                if not there
                else read_document(read_unchanged(path, "keyring"), source=str(path))
            )
            before = _written(document)
            yield document
            written = _written(document)
            if written != before:
                read_document(written, source=str(path))  # what cannot be read again is not put there
                _replace(path, written, mode=stat.S_IMODE(path.stat().st_mode) if there else _NEW_FILE, clock=clock)
    except OSError as error:
        raise Misuse(f"keyring: {path} cannot be changed ({error.strerror})") from error


def _written(document: dict[str, Any]) -> bytes:
    return f"{json.dumps(document, indent=2, ensure_ascii=False)}\n".encode()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a folder against others who change keyrings in it; the kernel lets go where the holder dies."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def _replace(path: Path, content: bytes, *, mode: int, clock: Clock) -> None:
    beside = path.with_name(f".{path.name}.{clock.random(8).hex()}")
    number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
