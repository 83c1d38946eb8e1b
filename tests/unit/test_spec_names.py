"""Names: what a tool, a server or a tag may be called, and which names look alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.errors import SpecRefused
from agentgate.tools.names import check_name, folded, is_unseen


@pytest.mark.parametrize(
    "name",
    [
        "refund",
        "orgs/custom-properties-for-repos-create-or-update-organization-definitions",
        "uber.eat.order",
        "get weather",
        "{owner}/{repo}",
        "поиск",
        "検索",
        "a" * 256,
        "$"[:0] + "a$",
        "\U0001f600",
    ],
)
def test_real_names_are_taken_as_they_are(name: str) -> None:
    assert check_name(name, tool=name, path="/name") == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a" * 257,
        " refund",
        "refund ",
        "\u00a0refund",
        "re\nfund",
        "re\0fund",
        "refund\x7f",
        "refund\u202e",
        "re\u200bfund",
        "re\u00adfund",
        "re\ufefffund",
        "refund\ufe0f",
        "refund\u3164",
        "refund\u2028",
        "refund\ud800",
        "refund\U000e0041",
        "$ledger",
        None,
        b"refund",
        7,
    ],
)
def test_a_name_that_cannot_be_seen_or_shown_is_refused(name: object) -> None:
    with pytest.raises(SpecRefused) as caught:
        check_name(name, tool="t", path="/name")
    assert caught.value.path == "/name"


def test_a_text_with_methods_of_its_own_is_no_name() -> None:
    class Liar(str):
        __slots__ = ()

    with pytest.raises(SpecRefused):
        check_name(Liar("refund"), tool="t", path="/name")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("refund", "Refund"),
        ("refund", "ＲＥＦＵＮＤ"),
        ("straße", "STRASSE"),
        ("ﬁle", "file"),
        ("refund", "re\u200bfund"),
        ("é", "e\u0301"),
        ("K", "\u212a"),
        ("ſave", "save"),
    ],
)
def test_look_alikes_fold_to_one(one: str, other: str) -> None:
    assert folded(one) == folded(other)


@pytest.mark.parametrize(("one", "other"), [("refund", "refunds"), ("a.b", "a/b"), ("a_b", "a-b"), ("o", "0")])
def test_other_names_stay_apart(one: str, other: str) -> None:
    assert folded(one) != folded(other)


@given(st.text())
def test_folding_is_settled_after_once(name: str) -> None:
    assert folded(folded(name)) == folded(name)


@given(st.text())
def test_nothing_unseen_is_left_after_folding(name: str) -> None:
    assert not any(map(is_unseen, folded(name)))
