"""Where the demo plays: a folder with a ledger, two policies and a shop."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib.resources import files
from pathlib import Path

from agentgate.demo.shop import Shop
from agentgate.gate.face import Gate
from agentgate.gate.migrating import migrate
from agentgate.gate.opening import Run
from agentgate.gate.settings import Settings

TICKET = "ticket-4711"
AGENT = "agent:support"
POLICIES = ("policy.yaml", "stricter.yaml")
KEYRING = "keyring.json"
# Short, so that the story goes on within seconds also where a host cannot tell that a process is gone.
SETTINGS = Settings(lease=timedelta(seconds=5))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The stage.

    Args:
        folder: holds everything.
        shop: where effects can be seen.
    """

    folder: Path
    shop: Shop

    @property
    def url(self) -> str:
        """The ledger's URL."""
        return f"sqlite:///{self.folder / 'agent.db'}"

    @contextmanager
    def at_work(self, *, ledger: str | None = None) -> Iterator[tuple[Gate, Run]]:
        """Open the gate as any process of the shop does, and attach to the ticket's run.

        Args:
            ledger: another file of the folder than the shop's own ledger.
        """
        policy, keyring = self.folder / POLICIES[0], self.folder / KEYRING
        url = self.url if ledger is None else f"sqlite:///{self.folder / ledger}"
        with Gate.open(
            url,
            policy=policy,
            tools=self.shop.tools(),
            settings=SETTINGS,
            keyring=keyring if keyring.exists() else None,
        ) as gate:
            yield gate, gate.run(TICKET, principal=AGENT, goal="Help the customer of ticket 4711.")


def prepare(folder: Path | None) -> Scene:
    """Make the folder, its policies and its ledger."""
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="agentgate-demo-"))
    folder.mkdir(exist_ok=True)
    scene = at(folder.resolve())
    for name in POLICIES:
        (scene.folder / name).write_bytes(files("agentgate.demo").joinpath(name).read_bytes())
    migrate(scene.url)
    return scene


def at(folder: Path, *, shop: Shop | None = None) -> Scene:
    """Enter a scene that was prepared, as another process does."""
    return Scene(folder=folder, shop=shop or Shop(folder=folder))
