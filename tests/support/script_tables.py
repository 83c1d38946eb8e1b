"""Make agentgate/core/presenting/unicode17.py: `python tests/support/script_tables.py Scripts.txt confusables.txt`.

The two files are Unicode's, of the version that the module states; they are not kept here.
"""

import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

MODULE = Path(__file__).parents[2] / "agentgate" / "core" / "presenting" / "unicode17.py"
_WIDTH = 118


def rows(path: Path) -> Iterator[list[str]]:
    """Read the fields of each line that is data."""
    for line in path.read_text(encoding="utf-8-sig").splitlines():
        data = line.partition("#")[0].strip()
        if data:
            yield [field.strip() for field in data.split(";")]


def scripts(path: Path) -> dict[str, list[str]]:
    """Join the ranges of each script where nothing of another lies between them."""
    found = sorted((*_range(points), name) for points, name in rows(path))
    joined: list[tuple[int, int, str]] = []
    for start, end, name in found:
        if joined and joined[-1][2] == name:
            start = joined.pop()[0]  # noqa: PLW2901 - what follows goes on with it
        joined.append((start, end, name))
    table: dict[str, list[str]] = {}
    for start, end, name in joined:
        if name not in {"Common", "Inherited"}:
            table.setdefault(name, []).append(f"{start:X}-{end:X}" if start != end else f"{start:X}")
    return table


def _range(points: str) -> tuple[int, int]:
    start, _, end = points.partition("..")
    return int(start, 16), int(end or start, 16)


def look_alikes(path: Path) -> dict[str, list[str]]:
    """Find the letters that pass for one of ASCII, and do not say so by their own decomposition."""
    table: dict[str, list[str]] = {}
    for point, plain, *_ in rows(path):
        if " " in point or " " in plain:
            continue
        letter, read = chr(int(point, 16)), chr(int(plain, 16))
        is_letter = unicodedata.category(letter)[0] == "L" or unicodedata.category(letter) == "Cn"
        if letter.isascii() or not (read.isascii() and read.isalnum()) or not is_letter:
            continue
        if unicodedata.normalize("NFKC", letter) == letter:
            table.setdefault(read, []).append(f"{ord(letter):X}")
    return table


def written(table: dict[str, list[str]]) -> str:
    """Write each entry on a line, and go on below it, after four spaces, where it is too long."""
    lines = []
    for name in sorted(table):
        line = f"{name}:"
        for value in table[name]:
            if len(line) + 1 + len(value) > _WIDTH:
                lines.append(line)
                line = f"    {value}"
            else:
                line += f" {value}"
        lines.append(line)
    return "\n".join(lines)


def main(scripts_txt: str, confusables_txt: str) -> None:
    """Put both tables into the module, and leave the rest of it as it is."""
    head = MODULE.read_text(encoding="utf-8").partition("SCRIPTS: Final")[0]
    first, second = written(scripts(Path(scripts_txt))), written(look_alikes(Path(confusables_txt)))
    tables = f'SCRIPTS: Final = """\n{first}\n"""\n\nLOOK_ALIKES: Final = """\n{second}\n"""\n'
    MODULE.write_text(head + tables, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
