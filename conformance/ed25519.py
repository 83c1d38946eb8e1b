"""Ed25519 a second time, from RFC 8032 §5.1 alone: slow, not safe against who measures, and plain."""

import hashlib

PRIME = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, PRIME) % PRIME

Point = tuple[int, int]


def _add(one: Point, other: Point) -> Point:
    """§5.1.4, in affine coordinates."""
    (x1, y1), (x2, y2) = one, other
    product = D * x1 * x2 * y1 * y2
    x = (x1 * y2 + x2 * y1) * pow(1 + product, -1, PRIME)
    y = (y1 * y2 + x1 * x2) * pow(1 - product, -1, PRIME)
    return x % PRIME, y % PRIME


def _times(factor: int, point: Point) -> Point:
    result = (0, 1)
    while factor:
        result = _add(result, point) if factor & 1 else result
        point = _add(point, point)
        factor >>= 1
    return result


def _base() -> Point:
    """§5.1: y = 4/5, and the x of it that is even."""
    y = 4 * pow(5, -1, PRIME) % PRIME
    square = (y * y - 1) * pow(D * y * y + 1, -1, PRIME) % PRIME
    x = pow(square, (PRIME + 3) // 8, PRIME)
    x = x if x * x % PRIME == square else x * pow(2, (PRIME - 1) // 4, PRIME) % PRIME
    return (x if x % 2 == 0 else PRIME - x, y)


BASE = _base()


def _encoded(point: Point) -> bytes:
    x, y = point
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _number(*parts: bytes) -> int:
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little")


def _secret(seed: bytes) -> tuple[int, bytes]:
    """§5.1.5: the scalar, and the prefix."""
    hashed = hashlib.sha512(seed).digest()
    scalar = int.from_bytes(hashed[:32], "little") & ((1 << 254) - 8) | 1 << 254
    return scalar, hashed[32:]


def public(seed: bytes) -> bytes:
    """Return the public key of 32 private bytes."""
    return _encoded(_times(_secret(seed)[0], BASE))


def sign(seed: bytes, message: bytes) -> bytes:
    """§5.1.6."""
    scalar, prefix = _secret(seed)
    once = _number(prefix, message) % ORDER
    first = _encoded(_times(once, BASE))
    challenge = _number(first, public(seed), message) % ORDER
    return first + ((once + challenge * scalar) % ORDER).to_bytes(32, "little")
