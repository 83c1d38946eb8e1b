"""No effect begins on a row that the action's events do not tell: any cell of it, edited behind everybody's back."""

import pytest

from support.edits import COLUMNS, TABLES, Refused, others
from support.staging import FORMS, Stage, staged

PLACES = tuple(
    (table, column, form)
    for table, column in (name.split(".") for name in COLUMNS)
    for form in FORMS
    if table == "actions"
    or (table == "attempts" and column != "lease_until_us" and form in {"failed", "unknown"})
    or (table == "approvals" and form in {"granted", "failed"})
)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return staged(tmp_path_factory.mktemp("stage"))


@pytest.mark.parametrize("form", FORMS)
def test_what_nobody_has_touched_runs_once(stage: Stage, form: str) -> None:
    assert stage.fresh().execute(form) == "Done"
    assert stage.ran == [form]


@pytest.mark.parametrize(("table", "column", "form"), PLACES)
def test_an_edited_cell_of_an_actions_rows_starts_no_effect(stage: Stage, table: str, column: str, form: str) -> None:
    rowid, row = stage.fresh().row(table, form)
    for value in others(table, TABLES[table].columns[column], row[column]):
        stage.fresh()
        try:
            stage.copy.set(table, column, rowid, value)
        except Refused:
            continue
        # An action whose id is another is another one's; an action that is said to have ended is not claimed at all.
        assert stage.execute(form) in {"Damaged", "NotFound", "Refused", "Running", "Failed", "Unknown", "Held"}
        assert stage.ran == []
