"""A documentation page as a program: its fenced blocks, in order, in one process, in an empty folder.

What runs is every ``python`` block. An HTML comment on the line above a block says otherwise:

    <!-- not run: the reason -->    the block is only shown
    <!-- file: policy.yaml -->      the block is written to that file
    <!-- run -->                    a ``sh`` block is run as the reader would type it

Any other block (output, sh without a mark, mermaid) is shown only.
"""

import re
from dataclasses import dataclass
from pathlib import Path

FENCED = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block: its language, the mark above it, its text and the line its text begins on."""

    language: str
    mark: str
    text: str
    line: int


def blocks(page: str) -> tuple[Block, ...]:
    """Read a page's fenced blocks in order."""
    return tuple(
        Block(
            language=found["language"],
            mark=found["mark"] or "",
            text=found["text"],
            line=page.count("\n", 0, found.start("text")) + 1,
        )
        for found in FENCED.finditer(page)
    )


def program(page: Path) -> str | None:
    """Write the page's runnable blocks as one Python program; None where nothing runs.

    Raises:
        ValueError: a mark is none of the three, or a block is skipped without a reason.
    """
    steps = [_step(page, block) for block in blocks(page.read_text("utf-8"))]
    return "\n".join(["import subprocess, pathlib", *filter(None, steps)]) if any(steps) else None


def _step(page: Path, block: Block) -> str:
    word, _, rest = block.mark.partition(":")
    match word, block.language:
        case "not run", _ if rest.strip():
            return ""
        case "file", _ if rest.strip():
            return f"pathlib.Path({rest.strip()!r}).write_text({block.text!r}, 'utf-8')"
        case "run", "sh":
            return f"subprocess.run({block.text!r}, shell=True, check=True)"
        case "", "python":
            # The blank lines make a traceback point at the page.
            code = "\n" * (block.line - 1) + block.text
            return f"exec(compile({code!r}, {str(page)!r}, 'exec'))"
        case "", _:
            return ""
        case _:
            raise ValueError(f"{page}:{block.line}: {block.mark!r} says neither what to do nor why not")
