"""Ed25519 as a gate takes it: the library's verdicts, but for keys under which anybody can sign."""

import json
import pickle
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from agentgate.approval import vote_digest
from agentgate.errors import Misuse
from agentgate.signing import SignedVote, SigningKey, Vote, key_hash, sign_vote, unfit, verify
from agentgate.testing import FakeClock
from support.signers import SMALL_ORDER, private_forms, seed, signer

ADA = signer("ada")
SHOWN = bytes(range(32))
PRIME = 2**255 - 19
D = -121_665 * pow(121_666, -1, PRIME) % PRIME


def library(public: bytes, signature: bytes, message: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def test_every_vector_of_wycheproof_is_answered_as_it_says(corpora: Path) -> None:
    found = json.loads((corpora / "wycheproof" / "testvectors_v1" / "ed25519_test.json").read_text("utf-8"))
    asked = [
        (test["tcId"], test["result"] == "valid", bytes.fromhex(group["publicKey"]["pk"]), test)
        for group in found["testGroups"]
        for test in group["tests"]
    ]
    wrong = [
        number
        for number, valid, public, test in asked
        if verify(public, bytes.fromhex(test["sig"]), bytes.fromhex(test["msg"])) is not valid
    ]
    assert (len(asked), wrong) == (151, [])
    assert {valid for _, valid, _, _ in asked} == {True, False}


def forgery(public: bytes) -> tuple[bytes, bytes]:
    """Find a message that the library takes as signed under a key, without its private key: S = 0, R of small order."""
    for number in range(256):
        message = b"pay %d" % number
        for first in (bytes.fromhex(SMALL_ORDER[0]), public):
            if library(public, first + bytes(32), message):
                return first + bytes(32), message
    raise AssertionError("no forgery found")


@pytest.mark.parametrize("encoded", SMALL_ORDER)
def test_a_key_of_small_order_is_refused_though_the_library_takes_what_nobody_signed(encoded: str) -> None:
    public = bytes.fromhex(encoded)
    signature, message = forgery(public)
    assert library(public, signature, message)
    assert not verify(public, signature, message)
    assert "small order" in (unfit(public) or "")


def doubled(point: tuple[int, int]) -> tuple[int, int]:
    x, y = point
    square = D * x * x * y * y
    return (
        2 * x * y * pow(1 + square, -1, PRIME) % PRIME,
        (y * y + x * x) * pow(1 - square, -1, PRIME) % PRIME,
    )


def x_of(y: int) -> int | None:
    square = (y * y - 1) * pow(D * y * y + 1, -1, PRIME) % PRIME
    root = pow(square, (PRIME + 3) // 8, PRIME)
    root = root if root * root % PRIME == square else root * pow(2, (PRIME - 1) // 4, PRIME) % PRIME
    return root if root * root % PRIME == square else None


def test_the_list_is_all_encodings_of_all_points_whose_order_divides_8() -> None:
    """8·P = 1, by doubling thrice; and 8 points there are, of which those with y < 19 have more than one encoding."""
    points = set()
    for encoded in SMALL_ORDER:
        number = int.from_bytes(bytes.fromhex(encoded), "little")
        sign, y = number >> 255, (number & (2**255 - 1)) % PRIME
        x = x_of(y)
        assert x is not None
        point = (-x % PRIME if x % 2 != sign else x, y)
        points.add(point)
        assert doubled(doubled(doubled(point))) == (0, 1)
    assert len(points) == 8
    every = {
        (y + more * PRIME | sign << 255).to_bytes(32, "little").hex()
        for x, y in points
        for more in (0, 1)
        if y + more * PRIME < 2**255
        for sign in ((0, 1) if x == 0 else (x % 2,))
    }
    assert every == set(SMALL_ORDER)


def test_an_encoding_that_is_not_canonical_or_no_point_is_no_key() -> None:
    assert [unfit((PRIME + more).to_bytes(32, "little")) for more in range(19)].count(None) == 0
    assert unfit((PRIME + 3).to_bytes(32, "little")) == "it is not canonical: the same key has another encoding"
    no_point = next(y for y in range(2, 100) if x_of(y) is None)
    assert unfit(no_point.to_bytes(32, "little")) == "it is no point of the curve"
    some = [y for y in range(2, 100) if x_of(y) is not None]
    assert all(unfit(y.to_bytes(32, "little")) is None for y in some)
    assert all(unfit(signer(str(number)).public) is None for number in range(50))


@given(st.binary(max_size=70), st.binary(max_size=70), st.binary(max_size=70))
def test_bytes_that_are_no_key_or_no_signature_are_false_and_never_an_error(a: bytes, b: bytes, message: bytes) -> None:
    assert not verify(a, b, message)
    assert not verify(ADA.public, b, message)
    assert not verify(a, ADA.sign(message), message)
    assert verify(ADA.public, ADA.sign(message), message)


@pytest.mark.parametrize("broken", [None, "ab", bytearray(64), 7, b"", bytes(63), bytes(65)])
def test_what_is_no_bytes_of_the_right_length_is_false(broken: Any) -> None:
    assert not verify(ADA.public, broken, b"m")
    assert not verify(broken, bytes(64), b"m")


def test_every_flipped_bit_of_a_signed_vote_is_refused() -> None:
    signed = sign_vote(ADA, approval=SHOWN, verdict="approve", approver="person:ada")
    digest = signed.vote.digest
    for whole, place in ((ADA.public, 0), (signed.signature, 1), (digest, 2)):
        for bit in range(len(whole) * 8):
            changed = (int.from_bytes(whole, "big") ^ 1 << bit).to_bytes(len(whole), "big")
            assert not verify(
                *[changed if at == place else one for at, one in enumerate((ADA.public, signed.signature, digest))]
            )


# --- votes ----------------------------------------------------------------------------------------------------


def test_a_signed_vote_is_over_the_vote_digest_with_the_hash_of_its_key() -> None:
    signed = sign_vote(ADA, approval=SHOWN.hex(), verdict="approve", approver="person:ada", clock=FakeClock())
    assert signed.key == ADA.hash == key_hash(ADA.public)
    assert len(signed.nonce) == 16
    expected = vote_digest(approval=SHOWN, verdict="approve", approver="person:ada", key=ADA.hash, nonce=signed.nonce)
    assert signed.vote.digest == expected
    assert verify(ADA.public, signed.signature, expected)
    assert sign_vote(ADA, approval=SHOWN, verdict="approve", approver="person:ada", clock=FakeClock()) == signed


def test_two_votes_of_one_person_have_two_nonces() -> None:
    one, other = (sign_vote(ADA, approval=SHOWN, verdict="approve", approver="person:ada") for _ in range(2))
    assert one.nonce != other.nonce
    assert one.signature != other.signature


@pytest.mark.parametrize(
    "change",
    [
        {"approval": bytes(32)},
        {"verdict": "reject"},
        {"approver": "person:eve"},
        {"key": signer("eve").hash},
        {"nonce": bytes(16)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_signature_fits_no_other_vote(change: dict[str, Any]) -> None:
    signed = sign_vote(ADA, approval=SHOWN, verdict="approve", approver="person:ada")
    assert not verify(ADA.public, signed.signature, replace(signed, **change).vote.digest)


def test_an_unsigned_vote_has_a_digest_of_its_own() -> None:
    signed = sign_vote(ADA, approval=SHOWN, verdict="approve", approver="person:ada").vote
    unsigned = Vote(approval=signed.approval, verdict=signed.verdict, approver=signed.approver, nonce=signed.nonce)
    assert unsigned.key is None
    assert unsigned.digest != signed.digest


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"approval": "ABCD"}, "approval"),
        ({"approval": SHOWN.hex().upper()}, "approval"),
        ({"approval": SHOWN[:31]}, "approval"),
        ({"approval": None}, "approval"),
        ({"verdict": "yes"}, "verdict"),
        ({"verdict": None}, "verdict"),
        ({"approver": ""}, "approver"),
        ({"approver": "ada\u202e"}, "approver"),
        ({"approver": b"ada"}, "approver"),
    ],
)
def test_what_is_no_vote_is_not_signed_and_the_error_names_the_field(change: dict[str, Any], field: str) -> None:
    given: dict[str, Any] = {"approval": SHOWN, "verdict": "approve", "approver": "person:ada"}
    with pytest.raises(Misuse, match=rf"^{field}: give "):
        sign_vote(ADA, **given | change)


def test_a_vote_is_signed_with_a_signing_key_alone() -> None:
    given: Any = seed("ada")
    with pytest.raises(Misuse, match=r"^signing_key: give a SigningKey$"):
        sign_vote(given, approval=SHOWN, verdict="approve", approver="person:ada")


def test_a_signed_vote_is_carried_as_json() -> None:
    signed = sign_vote(ADA, approval=SHOWN, verdict="reject", approver="person:ada")
    assert SignedVote.from_json(json.loads(json.dumps(signed.to_json()))) == signed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"signature": "00"}, "/signature: give 64 bytes"),
        ({"key": 7}, "/key: give the hash"),
        ({"nonce": None}, "/nonce: give 16 random bytes"),
        ({"more": 1}, "/more: leave it out"),
        ({"verdict": "maybe"}, "/verdict: give one of approve, reject, again, applied, not_applied"),
    ],
)
def test_json_that_is_no_signed_vote_is_refused_with_its_place(change: dict[str, Any], words: str) -> None:
    told = sign_vote(ADA, approval=SHOWN, verdict="reject", approver="person:ada").to_json() | change
    with pytest.raises(Misuse, match=words):
        SignedVote.from_json({name: value for name, value in told.items() if value is not None})
    with pytest.raises(Misuse, match="signed vote: /: give an object"):
        SignedVote.from_json([])


# --- private keys ---------------------------------------------------------------------------------------------


def test_a_key_is_saved_for_its_owner_alone_and_loaded_again(tmp_path: Path) -> None:
    path = tmp_path / "ada.pem"
    ADA.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text("ascii").startswith("-----BEGIN PRIVATE KEY-----\n")
    assert SigningKey.load(path).public == ADA.public


def test_a_key_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "ada.pem"
    ADA.save(path)
    before = path.read_bytes()
    with pytest.raises(Misuse, match="exists; a key that is overwritten is lost: name a new file"):
        signer("eve").save(path)
    link = tmp_path / "link.pem"
    link.symlink_to(tmp_path / "elsewhere.pem")
    with pytest.raises(Misuse, match="exists"):
        signer("eve").save(link)
    assert path.read_bytes() == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ["ada.pem", "link.pem"]


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o602, 0o620, 0o610, 0o601, 0o644, 0o666, 0o777])
def test_a_key_that_others_may_read_or_change_is_refused(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "ada.pem"
    ADA.save(path)
    path.chmod(mode)
    with pytest.raises(Misuse) as caught:
        SigningKey.load(path)
    assert str(caught.value) == f"signing key: others may read or change {path}; run: chmod 600 {path}"


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_a_key_that_is_its_owners_alone_is_taken(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "ada.pem"
    ADA.save(path)
    path.chmod(mode)
    assert SigningKey.load(path).hash == ADA.hash


def test_a_passphrase_is_needed_to_load_what_was_saved_with_it(tmp_path: Path) -> None:
    plain, hidden = tmp_path / "plain.pem", tmp_path / "hidden.pem"
    ADA.save(plain)
    ADA.save(hidden, passphrase="correct hörse")
    assert "ENCRYPTED" in hidden.read_text("ascii")
    assert SigningKey.load(hidden, passphrase="correct hörse").hash == ADA.hash
    for path, passphrase, words in (
        (hidden, None, "is saved with a passphrase; give it"),
        (hidden, "wrong", "cannot be read with this passphrase"),
        (plain, "any", "has no passphrase; give none"),
        (hidden, "", "passphrase: give a text that is not empty"),
    ):
        with pytest.raises(Misuse, match=words):
            SigningKey.load(path, passphrase=passphrase)
    with pytest.raises(Misuse, match="passphrase: give a text that is not empty"):
        ADA.save(tmp_path / "new.pem", passphrase="")
    assert not (tmp_path / "new.pem").exists()


def test_a_file_that_holds_no_such_key_is_refused_and_nothing_waits(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric import x25519
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    other = x25519.X25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path = tmp_path / "key.pem"
    for content, words in ((other, "another kind of key"), (b"", "holds no key"), (b"\xff" * 99, "holds no key")):
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(Misuse, match=f"{words}; `agentgate keys generate FILE` makes one"):
            SigningKey.load(path)
    with pytest.raises(Misuse, match="cannot be read"):
        SigningKey.load(tmp_path / "nowhere.pem")
    with pytest.raises(Misuse, match=r"is no file|cannot be read"):
        SigningKey.load(tmp_path)
    private: Any = other
    with pytest.raises(Misuse, match=r"^private: give an Ed25519 private key"):
        SigningKey(private)


def test_a_private_key_shows_itself_in_no_repr_error_or_pickle(tmp_path: Path) -> None:
    path = tmp_path / "ada.pem"
    ADA.save(path)
    told = [
        repr(ADA),
        str(ADA),
        f"{ADA!r}",
        repr([ADA]),
        repr(sign_vote(ADA, approval=SHOWN, verdict="approve", approver="a")),
    ]
    for act in (lambda: ADA.save(path), lambda: SigningKey.load(path, passphrase="x"), lambda: pickle.dumps(ADA)):
        with pytest.raises((Misuse, TypeError)) as caught:
            act()
        told += [repr(caught.value), str(caught.value), repr(caught.value.__context__)]
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(Misuse) as caught_again:
        SigningKey.load(path)
    told += [repr(caught_again.value), repr(caught_again.value.__context__)]
    said = "\n".join(told).encode()
    assert ADA.hash.hex().encode() in said
    assert not [form for form in private_forms("ada") if form in said]
