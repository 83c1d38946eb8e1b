"""The demo's transcript with everything masked that differs from one telling to the next.

Run ``python tests/support/transcript.py --write`` after the story was changed on purpose.
"""

import io
import re
import sys
import tempfile
from pathlib import Path

from agentgate.demo import tell

GOLDEN = Path(__file__).resolve().parents[1] / "surfaces" / "demo_transcript.txt"

_MASKS = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "<" + "id".center(34, "-") + ">"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<digest>"),
    (re.compile(r'"key": "[0-9a-f]{12}"'), '"key": "<key>"'),
    (re.compile(r"in \d+\.\d s\."), "in 1.0 s."),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} UTC"), "<time>"),
)


def masked(text: str, folder: Path) -> str:
    """Mask ids, digests, the folder and the time that it took."""
    text = text.replace(str(folder.resolve()), "<folder>")
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text


def told() -> str:
    """Tell the story in a folder of its own, and return it masked."""
    with tempfile.TemporaryDirectory() as name:
        out = io.StringIO()
        tell(Path(name), write=out)
        return masked(out.getvalue(), Path(name))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        GOLDEN.write_text(told(), "utf-8")
    else:
        sys.stdout.write(told())
