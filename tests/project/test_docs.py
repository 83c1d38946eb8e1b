"""README and docs run as printed, and their links lead somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.pages import blocks, program
from support.source import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]+\]\((?!https?://|mailto:|#)([^)#\s]+)[^)]*\)")
SECONDS = 120


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [page for page in PAGES if program(page)], ids=_name)
def test_a_page_runs_as_printed(page: Path, tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text(program(page) or "", "utf-8")
    folder = tmp_path / "reader"
    folder.mkdir()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "error::SyntaxWarning", str(script)],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_a_link_leads_to_a_file(page: Path) -> None:
    broken = [target for target in LINK.findall(page.read_text("utf-8")) if not (page.parent / target).exists()]
    assert not broken


def test_a_block_is_skipped_only_with_a_reason(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- not run: -->\n```python\n1 / 0\n```\n", "utf-8")
    with pytest.raises(ValueError, match=r"page\.md:3: 'not run:' says neither"):
        program(page)


def test_a_traceback_points_at_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```python\nx = 1\n1 / 0\n```\n", "utf-8")
    assert [block.line for block in blocks(page.read_text("utf-8"))] == [4]
    done = subprocess.run([sys.executable, "-c", program(page) or ""], capture_output=True, text=True, check=False)
    assert f'"{page}", line 5' in done.stderr
