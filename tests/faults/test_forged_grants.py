"""What a claim that rests on people's answers lets through when somebody has written into the database."""

from pathlib import Path

import pytest

from support.forgeries import CHAIN, ROWS, Forgery, table
from support.scenes import SETTINGS, Scene, staged

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", params=SETTINGS)
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return staged(tmp_path_factory.mktemp("scene"), str(request.param))


def test_what_nobody_has_touched_runs_once_and_only_what_was_granted(scene: Scene) -> None:
    scene.fresh()
    assert [scene.execute(form) for form in ("held", "granted", "used")] == ["Held", "Done", "Done"]
    assert scene.ran == [("granted", 1)]
    assert scene.copy.verify().ok


@pytest.mark.parametrize("forgery", [*ROWS, *CHAIN], ids=lambda one: one.write.__name__)
def test_what_somebody_wrote_comes_to_what_the_table_says(scene: Scene, forgery: Forgery) -> None:
    form = forgery.write(scene.fresh())
    found = scene.execute(form)
    assert found == forgery.comes_to(scene.setting)
    assert bool(scene.ran) is (found == "Done")


@pytest.mark.parametrize("forgery", ROWS, ids=lambda one: one.write.__name__)
def test_verify_finds_every_row_that_no_event_tells(scene: Scene, forgery: Forgery) -> None:
    forgery.write(scene.fresh())
    assert not scene.copy.verify().ok


@pytest.mark.parametrize("forgery", CHAIN, ids=lambda one: one.write.__name__)
def test_what_runs_though_it_was_forged_is_a_record_that_agrees_with_itself(scene: Scene, forgery: Forgery) -> None:
    """Nothing but what was kept outside the database can tell it from the truth."""
    if forgery.comes_to(scene.setting) == "Done":
        forgery.write(scene.fresh())
        assert scene.copy.verify().ok


def test_the_table_in_the_docs_is_the_one_that_is_tested() -> None:
    page = (ROOT / "docs" / "approvals.md").read_text("utf-8")
    assert "\n".join(table()) in page
