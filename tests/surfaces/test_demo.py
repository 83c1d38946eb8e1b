"""The demo tells its story, asserts it, and leaves a ledger that can be looked at."""

import json
import re
from pathlib import Path

import agentgate
from agentgate.demo import tell
from support.commands import ran, typed, unseen
from support.pages import blocks
from support.source import ROOT
from support.terminals import on_a_terminal
from support.transcript import GOLDEN, masked

CLI_PAGE = ROOT / "docs" / "cli.md"


def test_the_demo_tells_its_story_as_written_down(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    told = typed("demo", "--folder", str(folder), folder=tmp_path)
    assert (told.code, told.err) == (0, "")
    assert masked(told.out, folder) == GOLDEN.read_text("utf-8"), (
        "meant? then: python tests/support/transcript.py --write"
    )


def test_the_story_reads_the_same_without_a_capable_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    told = on_a_terminal("demo", "--folder", str(folder), env={"TERM": "dumb"})
    assert masked(told.decode().replace("\r\n", "\n"), folder) == GOLDEN.read_text("utf-8")


def test_colours_are_left_out_where_nobody_wants_them(tmp_path: Path) -> None:
    shown = {
        name: on_a_terminal("demo", "--folder", str(tmp_path / name), env={"TERM": "xterm", **env})
        for name, env in (("plain", {"NO_COLOR": "1"}), ("coloured", {"NO_COLOR": ""}))
    }
    assert b"\x1b" not in shown["plain"]
    assert b"\x1b[1m" in shown["coloured"]
    assert set(re.findall(rb"\x1b\[[0-9;]*m", shown["coloured"])) == set(re.findall(rb"\x1b[^m]*m", shown["coloured"]))


def test_the_demo_runs_beside_files_that_are_named_like_its_code(tmp_path: Path) -> None:
    (tmp_path / "agentgate.py").write_text("raise SystemExit('the wrong code')\n", "utf-8")
    told = typed("demo", "--json", folder=tmp_path, env={"TMPDIR": str(tmp_path)})
    assert (told.code, told.err) == (0, "")
    document = told.document
    assert document["holds"] is True
    assert Path(document["folder"]).parent == tmp_path.resolve()
    assert Path(document["folder"]).stat().st_mode & 0o077 == 0
    assert all(one["held"] for chapter in document["chapters"] for one in chapter["expected"])


def test_the_demo_leaves_a_ledger_to_look_at(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    url = ran("demo", "--folder", str(folder), "--json").document["url"]
    assert agentgate.verify(url).ok
    states = [action["state"] for action in ran("show", "ticket-4711", url, "--json").document["actions"]]
    assert {state: states.count(state) for state in set(states)} == {"SUCCEEDED": 14, "REFUSED": 5}
    for look in (("runs",), ("show", "ticket-4711"), ("events", "ticket-4711"), ("verify",)):
        assert not unseen(ran(*look, url).out)
    assert ran("recheck", str(folder / "policy.yaml"), url).code == 0
    stricter = ran("recheck", str(folder / "stricter.yaml"), url)
    assert stricter.code == 1
    assert re.search(r"executed, would now be denied +3  of 14 actions", stricter.out)
    assert ran("verify", f"sqlite:///{folder / 'forged.db'}").code == 1


def test_what_does_not_come_out_as_told_is_said_and_ends_with_1(tmp_path: Path) -> None:
    (tmp_path / "bank.txt").write_text(json.dumps({"account": "a1", "cents": 1_250}) + "\n", "utf-8")
    story = tell(tmp_path, write=None)
    assert not story.holds
    wrong = [one.what for chapter in story.chapters for one in chapter.expectations if not one.held]
    assert wrong == ["the bank moved 12.50 once", "the bank still moved 12.50 once"]


def test_the_demo_takes_an_empty_folder_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    refused = ran("demo", "--folder", str(tmp_path))
    assert refused.code == 2
    assert "--folder: is not empty" in refused.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_the_page_shows_the_story_as_it_is_told() -> None:
    golden = GOLDEN.read_text("utf-8")
    shown = [block.text for block in blocks(CLI_PAGE.read_text("utf-8")) if block.text.startswith("7. ")]
    assert shown
    assert all(text in golden for text in shown)
