"""docs/states.md, written from the state table.

Run ``python tests/support/states_page.py --write`` after the table was changed on purpose.
"""

import sys
from pathlib import Path

from agentgate.states import MOVES, NEW, STATES, STAYS, TERMINAL, State, mermaid

PAGE = Path(__file__).resolve().parents[2] / "docs" / "states.md"

HEAD = """# States

Written from `agentgate/states.py` by `python tests/support/states_page.py --write`; nothing else changes a state. An
event without a row here is refused and changes nothing. A word after a dot is a field of the event's body
(`reconciled.verdict`); `failed.unresolved` is a failure while an earlier attempt may still have happened,
`late.clean` a late proof that nothing did.

```mermaid
"""


def render() -> str:
    """Write the page."""
    moves = [
        f"| {'–' if source is NEW else source.value} | `{event}` | {target.value} |"
        for (source, event), target in MOVES.items()
    ]
    stays = [f"| `{event}` | {_listed(states)} |" for event, states in STAYS.items()]
    return "\n".join(
        [
            HEAD + mermaid(),
            "```",
            "",
            f"Terminal: {_listed(TERMINAL)}.",
            "",
            "| from | event | to |",
            "|---|---|---|",
            *moves,
            "",
            "Recorded without moving the action:",
            "",
            "| event | in |",
            "|---|---|",
            *stays,
            "",
        ]
    )


def _listed(states: frozenset[State]) -> str:
    return ", ".join(state.value for state in STATES if state in states)


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(render(), "utf-8")
    else:
        print(render())
