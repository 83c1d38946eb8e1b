"""Remembering which events of a run something is true of, in a bit each."""


class Marks:
    """A set of positions in a chain: one bit for each event of the run, however many are in it."""

    def __init__(self) -> None:
        self._bits = bytearray()

    def add(self, n: int) -> None:
        """Put a position in."""
        if n // 8 >= len(self._bits):
            self._bits.extend(bytes(n // 8 + 1 - len(self._bits)))
        self._bits[n // 8] |= 1 << n % 8

    def __contains__(self, n: int) -> bool:
        return n // 8 < len(self._bits) and bool(self._bits[n // 8] >> n % 8 & 1)

    def __len__(self) -> int:
        return self.number().bit_count()

    def count_in(self, other: "Marks", *, without: "Marks") -> int:
        """Count the positions that are also in ``other`` and not in ``without``."""
        return (self.number() & other.number() & ~without.number()).bit_count()

    def number(self) -> int:
        """Return the set as one number, the lowest bit for position 0."""
        return int.from_bytes(self._bits, "little")
