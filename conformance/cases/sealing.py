"""Sealed payloads: the id of a key, the bytes of a sealed text, and what does not open."""

from cases.case import SALT, Case, accepted, encoded, refused
from independent import key_id, payload, sealed

KEY = bytes(range(200, 232))
OTHER = bytes(range(32))
NONCE = bytes(range(50, 62))
CONTENTS = [b"", b"{}", b'{"card":"4000"}', bytes(range(256)), "ü".encode() * 40]


def cases() -> list[Case]:
    """Build the group."""
    return [*_ids(), *_sealed(), *_opened(), *_closed()]


def _ids() -> list[Case]:
    named = [(f"the id of {key[:2].hex()}…", key) for key in (KEY, OTHER)]
    unfit = [(f"no key: {size} bytes", bytes(size)) for size in (0, 16, 31, 33)]
    return [
        *(accepted(name, "sealing_key", {"key": key.hex()}, id=key_id(key)) for name, key in named),
        *(refused(name, "sealing_key", {"key": key.hex()}, "misuse") for name, key in unfit),
    ]


def _given(kind: str, content: bytes, *, key: bytes = KEY, nonce: bytes = NONCE) -> dict[str, str]:
    return {"key": key.hex(), "nonce": nonce.hex(), "kind": kind, "salt": SALT.hex(), "base64": encoded(content)}


def _sealed() -> list[Case]:
    several = [("arguments", content, KEY, NONCE) for content in CONTENTS]
    several += [
        ("raw", CONTENTS[1], KEY, NONCE),
        ("raw", CONTENTS[1], OTHER, NONCE),
        ("raw", CONTENTS[1], KEY, NONCE[::-1]),
    ]
    return [
        accepted(
            f"{len(content)} bytes as {kind}, key {key_id(key)[:4]}…, nonce {nonce[:1].hex()}…",
            "seal",
            _given(kind, content, key=key, nonce=nonce),
            base64=encoded(sealed(key, nonce, kind, SALT, content)),
            sealed_by=key_id(key),
        )
        for kind, content, key, nonce in several
    ]


def _stored(
    text: bytes, *, kind: str = "arguments", by: bytes = KEY, content: bytes = CONTENTS[2]
) -> dict[str, object]:
    """A sealed text as it is found, beside an event that names ``content``."""
    return {
        "keys": [KEY.hex(), OTHER.hex()],
        "kind": kind,
        "digest": payload(kind, SALT, content),
        "sealed_by": key_id(by),
        "base64": encoded(text),
    }


def _opened() -> list[Case]:
    return [
        accepted(
            f"{len(content)} bytes are opened with key {key_id(key)[:4]}…",
            "open",
            _stored(sealed(key, NONCE, "arguments", SALT, content), by=key, content=content),
            base64=encoded(content),
            salt=SALT.hex(),
        )
        for content in CONTENTS
        for key in (KEY, OTHER)
    ]


def _closed() -> list[Case]:
    text = sealed(KEY, NONCE, "arguments", SALT, CONTENTS[2])
    places = (0, 1, 13, 45, len(text) - 1)
    flipped = [(f"a bit of byte {at} is flipped", _flipped(text, at)) for at in places]
    cut = [("the last byte is gone", text[:-1]), ("a byte follows", text + b"\0"), ("it is empty", b"")]
    wrong = [refused(name, "open", _stored(changed), "damaged") for name, changed in flipped + cut]
    return [
        *wrong,
        refused("another payload's text", "open", _stored(text, content=CONTENTS[1]), "damaged"),
        refused("of another kind", "open", _stored(text, kind="supplied"), "damaged"),
        refused("the id of another key of the ring", "open", _stored(text, by=OTHER), "damaged"),
        refused("an unknown id on a text that a key of the ring opens", "open", _stored(text, by=bytes(32)), "damaged"),
        refused(
            "sealed by a key that is not there",
            "open",
            _stored(sealed(bytes(32), NONCE, "arguments", SALT, CONTENTS[2]), by=bytes(32)),
            "sealed",
        ),
    ]


def _flipped(text: bytes, at: int) -> bytes:
    return text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :]
