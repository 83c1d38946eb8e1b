"""Canaries: values that must leave nothing behind, the places where they are planted, and the search for them."""

import base64
import contextlib
import html
import io
import json
import logging
import threading
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import agentgate
from agentgate import Effect, Gate, NoEffect, SealingKey, SealingKeys, ToolError
from agentgate.cli import main
from agentgate.testing import ScriptedPolicy
from agentgate.tools.decorator import AnyTool
from support.worlds import World, grant, opened

KEY = SealingKey(bytes(range(32)))
COUNT = 20  # at least
# Each has what an encoding must escape, so that no form of it is another one's.
NAMES = tuple(f"canary-{n:02d}-Zq{n * 7919:06d}/ä\"'" for n in range(COUNT + 12))
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"token": {}, "how": {"type": "string"}, "box": {"type": "object"}},
    "required": ["how"],
}


def forms(canary: str) -> set[bytes]:
    """Write a canary in every form in which it is looked for."""
    content = canary.encode()
    texts = {canary, json.dumps(canary)[1:-1], json.dumps(canary, ensure_ascii=False)[1:-1], repr(canary)[1:-1]}
    texts |= {quote(canary), quote(canary, safe=""), html.escape(canary), content.hex(), content.hex().upper()}
    texts |= {repr(content)[2:-1]}
    for pad in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode(b"\0" * pad + content).decode()
            texts.add(whole[(0, 2, 3)[pad] : (pad + len(content)) * 8 // 6])
    # What is left of one that was cut is a hit as well.
    return {text.encode() for text in texts} | {canary[:16].encode()}


@dataclass
class Traces:
    """Everything that a program could have left somewhere, by where that is."""

    found: dict[str, bytes] = field(default_factory=dict)

    def add(self, where: str, what: object) -> None:
        content = what if isinstance(what, bytes) else str(what).encode("utf-8", "surrogatepass")
        self.found[where] = self.found.get(where, b"") + b"\n" + content

    def error(self, where: str, error: BaseException) -> None:
        self.add(where, f"{error!s} {error!r} {''.join(traceback.format_exception(error))}")
        self.add(where, repr(getattr(error, "args", ())) + repr(getattr(error, "__notes__", ())))

    def hits(self, canaries: Mapping[str, str]) -> list[str]:
        """Name every place where one of the canaries is, with the place where it was planted."""
        return sorted(
            f"{planted} in {where}"
            for planted, canary in canaries.items()
            for where, content in self.found.items()
            if any(form in content for form in forms(canary))
        )


class Perch:
    """Plants each canary in a place of its own; ``open_`` is the control: nothing is sensitive, nothing brokered."""

    def __init__(self, world: World, *, open_: bool) -> None:
        self.world = world
        self.open = open_
        self.traces = Traces()
        self.planted: dict[str, str] = {}
        self.release = threading.Event()
        self.actions: list[str] = []

    def canary(self, where: str) -> str:
        """Take the canary of a place."""
        if where not in self.planted:
            self.planted[where] = NAMES[len(self.planted)]
        return self.planted[where]

    # --- the tools ----------------------------------------------------------------------------

    def tool(self, *, undeclared: Any = "deny", name: str = "login") -> AnyTool:
        """Make a tool that does with its sensitive arguments and secrets whatever a careless one would."""
        sensitive = [] if self.open else ["/token", "/box"]
        spec = agentgate.ToolSpec(
            name=name,
            input_schema=SCHEMA,
            sensitive=sensitive,
            undeclared=undeclared,
            timeout=timedelta(milliseconds=400),
        )
        return agentgate.gated(spec, self._login)

    def _login(self, *, effect: Effect, how: str, token: Any = None, box: Any = None, **more: Any) -> Any:
        got = self.canary(f"secret {how}") if self.open else effect.secret(how)
        told = {"echo": token, "box": box, "more": more, "secret": f"Basic {got}", str(got): str(got).encode()}
        match how:
            case "returned":
                return told
            case "clean":
                raise NoEffect(f"refused {token} {got}", details=told, suggested_action=f"not {token}")
            case "doubtful":
                raise ToolError("upstream", f"lost {token} {got}", details=told) from ValueError(token, got)
            case "raised":
                error = RuntimeError(token, got)
                error.add_note(f"{token} {got}")
                raise error
            case "interrupted":
                try:
                    raise KeyError(got)  # noqa: TRY301 - it is what the interruption is raised from
                except KeyError as cause:
                    cause.add_note(str(token))
                    raise SystemExit(f"{token} {got}") from cause
            case "late":
                self.release.wait(60)
                return told
        return told

    def provide(self, name: str) -> str:
        return self.canary(f"secret {name}")

    # --- the story ----------------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        return {} if self.open else {"secrets": self.provide, "sealing": KEY}

    def tell(self) -> None:
        """Run through every place that an argument, a secret or a result can come to."""
        with self._listening():
            self._call_all()
            self._ask_people()
            self._look_back()
        for path in sorted(self.world.folder.iterdir()):
            if path.name.startswith("agent.db"):
                self.traces.add(f"file {path.name.removeprefix('agent.db') or 'database'}", path.read_bytes())

    def _call_all(self) -> None:
        with self.world.gate(self.tool(), **self.options()) as gate:
            gate.run("ticket", principal="agent", goal=self.canary("goal"))
            for how in ("returned", "clean", "doubtful", "raised", "late"):
                arguments = {"token": self.canary(f"argument {how}"), "how": how}
                self._call(gate, "login", arguments, key=how)
            with_box = {"how": "returned", "box": {self.canary("name of a member"): [self.canary("nested")]}}
            self._call(gate, "login", with_box, provenance={"from": self.canary("provenance")})
            self._call(gate, "login", {"tokn": self.canary("misspelt argument"), "how": "returned"})
            self._call(gate, "login", {self.canary("undeclared name"): 1, "how": "returned"})
            self._call(gate, "login", {"how": 1, "token": self.canary("wrong type")})
            broken = f'{{"how": "returned", "{"raw-" + self.canary("broken raw")[:16]}": 1e999}}'
            self.planted["broken raw"] = "raw-" + self.planted["broken raw"][:16]
            self._call(gate, "login", broken)
            self._call(gate, "logni", {"token": self.canary("misspelt tool")})
            self._call(gate, "nothing", json.dumps({"token": self.canary("unknown tool")}))
            self._call(gate, "login", {"how": "interrupted", "token": self.canary("argument interrupted")})
            self.release.set()
            self._await_late(gate)

    def _call(self, gate: Gate, tool: str, arguments: Any, **more: Any) -> None:
        run = gate.run(f"run-{len(self.actions)}", principal="agent")  # an unknown outcome would block the next call
        try:
            outcome = gate.call(run, tool, arguments, **more)
        except BaseException as error:  # noqa: BLE001 - what the tool raised is passed on
            self.traces.error("exception", error)
            return
        self.actions.append(outcome.action)
        self.traces.add("repr of an outcome", repr(outcome) + outcome.observation.text())
        if more.get("key"):
            again = gate.propose(run, tool, arguments, key=more["key"])
            self.traces.add("repr of a proposal", repr(again))

    def _await_late(self, gate: Gate) -> None:
        for _ in range(600):
            if any(event.type == "late" for event in self.world.events()):
                return
            threading.Event().wait(0.05)
        raise AssertionError(f"nothing came late to {gate!r}")

    def _ask_people(self) -> None:
        """Hold, cancel and reconcile actions, and try what must be refused."""
        held = agentgate.require_approval("people", f"look at {self.canary('words of a policy')}")
        policy = ScriptedPolicy(otherwise=held)
        tool = self.tool(undeclared="allow")
        with self.world.gate(tool, policy=policy, **self.options()) as gate:
            run = opened(gate, tenant="default")
            words = self.canary("words of a policy")
            outcome = gate.call(run, "login", {"how": "returned", "token": words, "tokn": words}, key="held")
            self.traces.add("repr of an outcome", repr(outcome))
            self.traces.add("request to a policy", repr(policy.requests))
            self.actions.append(outcome.action)
            gate.cancel(outcome.action, by="ops", note=f"not {words}")
            try:
                gate.propose(run, "login", {"how": "returned", "token": words + "!"}, key="held")
            except agentgate.KeyConflict as error:
                self.traces.error("exception", error)
            doubt = next(action for action in self.actions if self.world.state(action) == "UNKNOWN")
            token = self.canary("argument doubtful")
            shown = gate.reconcile(doubt, applied=True, by="ops", evidence={"saw": token}, result={"saw": token})
            self.traces.add("repr of a proposal", repr(shown))
        self._decide(held)

    def _decide(self, held: agentgate.Decision) -> None:
        """Approve one action and have it run; deny another one."""
        words = self.canary("words of a policy")
        denied = agentgate.deny("known", f"not {words} again")
        policy = ScriptedPolicy(held, held, denied)
        with self.world.gate(self.tool(), policy=policy, **self.options()) as gate:
            run = gate.run("decided", principal="agent")
            arguments = {"how": "returned", "token": words}
            outcome = gate.call(run, "login", arguments, key="approved")
            assert isinstance(outcome, agentgate.Held)
            grant(gate, outcome)
            done = gate.execute(outcome.action)
            assert isinstance(done, agentgate.Done)
            refused = gate.call(run, "login", arguments, key="denied")
            assert isinstance(refused, agentgate.Refused)
            for told in (done, refused):
                self.actions.append(told.action)
                self.traces.add("repr of an outcome", repr(told) + told.observation.text())

    def _look_back(self) -> None:
        """Read everything that can be read, with the key and without."""
        keys: list[SealingKeys | None] = [None, SealingKeys(KEY)]
        for sealing in keys:
            self.traces.add("verification", repr(agentgate.verify(self.world.url, sealing=sealing)))
            recheck = agentgate.recheck(self.world.url, ScriptedPolicy(), sealing=sealing)
            self.traces.add("recheck", repr(recheck) + json.dumps(recheck.to_json()))
        path = self.world.folder / "keys"
        path.write_text(KEY.text())
        path.chmod(0o600)
        commands = [["runs"], ["waiting"], ["verify"], ["show", "ticket"], ["events", "ticket"]]
        commands += [[word, action] for action in dict.fromkeys(self.actions) for word in ("show", "events")]
        for command in commands:
            for key in ([], ["--sealing-key", str(path)]):
                for form in ([], ["--json"]):
                    self._run([*command, self.world.url, *key, *form], "opened " if key else "")

    def _run(self, command: list[str], how: str) -> None:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(command)
        assert code == 0, (command, err.getvalue())
        self.traces.add(f"{how}output of {command[0]}{' --json' if '--json' in command else ''}", out.getvalue())
        self.traces.add("stderr", err.getvalue())

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        """Take down every line of log, of whomever."""
        written = io.StringIO()
        handler = logging.StreamHandler(written)
        handler.setFormatter(logging.Formatter("%(name)s %(message)s %(args)s"))
        root = logging.getLogger()
        before = {name: logging.getLogger(name).level for name in ("", "agentgate")}
        root.addHandler(handler)
        for name in before:
            logging.getLogger(name).setLevel(logging.DEBUG)
        try:
            yield
        finally:
            root.removeHandler(handler)
            for name, level in before.items():
                logging.getLogger(name).setLevel(level)
            self.traces.add("log", written.getvalue())
