"""The page about states is the table itself."""

from support.states_page import PAGE, render


def test_the_page_is_drawn_from_the_table() -> None:
    assert PAGE.read_text("utf-8") == render(), "meant? then: python tests/support/states_page.py --write"
