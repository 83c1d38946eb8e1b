r"""A text in its exact form: ASCII that means one text, whatever font or terminal shows it.

It is the text's JSON string: everything beyond printable ASCII is a ``\u`` escape. A long run of spaces is escaped too,
because it could push the rest out of sight, and so is one at the end of a line that no quote closes.
"""

import json
import re
from typing import Final

from agentgate.core.presenting.letters import legible

LONGEST: Final = 400
"""Characters of a line of text that is shown whole."""

KEPT: Final = 160
"""Characters that are shown of each end of a longer one."""

MOST_LINES: Final = 60
"""Lines of a text that are all shown."""

KEPT_LINES: Final = 24
"""Lines that are shown of each end of a longer one."""

LONGEST_NAME: Final = 120
"""Characters of a name that is shown whole; of a longer one half of them at each end."""

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/@-]*", re.ASCII)
_ESCAPE = re.compile(r"\\(.)")
_SPACES = re.compile(r"( {8})( +)")


def quoted(text: str) -> str:
    """Write a text as a JSON string of printable ASCII."""
    return f'"{_escaped(text)}"'


def unquoted(text: str) -> str:
    """Write a line of text without quotes: the same escapes but for the quote's own, and none of its ends is blank."""
    line = _ESCAPE.sub(lambda found: '"' if found[1] == '"' else found[0], _escaped(text))
    return f"{line[:-1]}\\u0020" if line.endswith(" ") else line


def name(text: str) -> str:
    """Write a name: bare where it is a plain word, else quoted; a quoted one never equals a bare one."""
    return text if _BARE.fullmatch(text) else quoted(text)


def ends(text: str, *, longest: int = LONGEST, kept: int = KEPT) -> tuple[str, str] | None:
    """Return the two ends of a text that is too long to be shown whole, else None."""
    return None if len(text) <= longest else (text[:kept], text[len(text) - kept :])


def read_as(text: str) -> str:
    """Write a line of text as its readers read it; its last space is seen."""
    line = legible(text)
    return f"{line[:-1]}\\u0020" if line.endswith(" ") else line


def _escaped(text: str) -> str:
    plain = json.dumps(text, ensure_ascii=True)[1:-1].replace("\x7f", "\\u007f")
    return _SPACES.sub(lambda found: found[1] + "\\u0020" * len(found[2]), plain)
