"""AES-256-GCM a second time, from FIPS 197 and NIST SP 800-38D alone: slow, not safe against who measures, and plain.

Only what a vector of the format needs: a nonce of 12 bytes, a tag of 16.
"""

Block = bytes


def _times(one: int, other: int) -> int:
    """Multiply in GF(2^8) with the polynomial of AES."""
    product = 0
    while other:
        product ^= one if other & 1 else 0
        one = (one << 1) ^ (0x11B if one & 0x80 else 0)
        other >>= 1
    return product


def _substitution() -> bytes:
    """FIPS 197 §5.1.1: the inverse in GF(2^8), then the affine map."""
    inverse = [0] + [next(b for b in range(1, 256) if _times(a, b) == 1) for a in range(1, 256)]
    return bytes(
        a ^ 0x63 ^ ((a << 1 | a >> 7) ^ (a << 2 | a >> 6) ^ (a << 3 | a >> 5) ^ (a << 4 | a >> 4)) & 0xFF
        for a in inverse
    )


SUBSTITUTION = _substitution()


def _schedule(key: bytes) -> list[bytes]:
    """FIPS 197 §5.2, for 14 rounds: fifteen keys of sixteen bytes."""
    words = [key[at : at + 4] for at in range(0, 32, 4)]
    constant = 1
    for n in range(8, 60):
        word = words[-1]
        if n % 8 == 0:
            word = bytes(SUBSTITUTION[byte] for byte in word[1:] + word[:1])
            word = bytes([word[0] ^ constant]) + word[1:]
            constant = _times(constant, 2)
        elif n % 8 == 4:
            word = bytes(SUBSTITUTION[byte] for byte in word)
        words.append(bytes(a ^ b for a, b in zip(words[-8], word, strict=True)))
    return [b"".join(words[at : at + 4]) for at in range(0, 60, 4)]


def _encrypted(keys: list[bytes], block: Block) -> Block:
    """FIPS 197 §5.1."""
    state = _xor(block, keys[0])
    for n, key in enumerate(keys[1:], start=1):
        shifted = bytes(SUBSTITUTION[state[(at + 4 * (at % 4)) % 16]] for at in range(16))
        state = _xor(shifted if n == len(keys) - 1 else _mixed(shifted), key)
    return state


def _mixed(state: Block) -> Block:
    columns = [state[at : at + 4] for at in range(0, 16, 4)]
    return bytes(
        _times(c[at], 2) ^ _times(c[(at + 1) % 4], 3) ^ c[(at + 2) % 4] ^ c[(at + 3) % 4]
        for c in columns
        for at in range(4)
    )


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=False))


def _hashed(key: int, content: bytes) -> int:
    """SP 800-38D §6.4: GHASH."""
    total = 0
    for at in range(0, len(content), 16):
        total = _product(total ^ int.from_bytes(content[at : at + 16], "big"), key)
    return total


def _product(one: int, other: int) -> int:
    """SP 800-38D §6.3: multiply in GF(2^128)."""
    product = 0
    for bit in range(127, -1, -1):
        product ^= other if one >> bit & 1 else 0
        other = other >> 1 ^ (0xE1 << 120 if other & 1 else 0)
    return product


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 16)


def seal(key: bytes, nonce: bytes, content: bytes, associated: bytes) -> bytes:
    """SP 800-38D §7.1: encrypt, and put the tag behind."""
    keys = _schedule(key)
    counters = (nonce + n.to_bytes(4, "big") for n in range(2, 2 + -(-len(content) // 16)))
    stream = b"".join(_encrypted(keys, counter) for counter in counters)
    text = _xor(content, stream)
    lengths = (8 * len(associated)).to_bytes(8, "big") + (8 * len(text)).to_bytes(8, "big")
    hash_key = int.from_bytes(_encrypted(keys, bytes(16)), "big")
    hashed = _hashed(hash_key, _padded(associated) + _padded(text) + lengths)
    return text + _xor(hashed.to_bytes(16, "big"), _encrypted(keys, nonce + b"\0\0\0\x01"))
