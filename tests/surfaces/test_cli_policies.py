"""Which policy is active, from the command line."""

import pytest

from agentgate import Done
from support.commands import ran
from support.worlds import World, opened

RULES = "version: 1\nrules:\n  - {name: all, match: {}, outcome: allow}\n"
ADA = ("--by", "ops:ada")


def test_rules_are_activated_listed_and_obeyed_by_a_pinned_gate(world: World) -> None:
    rules = world.folder / "policy.yaml"
    rules.write_text(RULES)
    assert "no policy is active" in ran("policy", "active", world.url).out
    with world.gate(policy=rules, pinned=True) as gate:
        run, one = opened(gate), {"account": "a1", "cents": 1}
        assert gate.call(run, "refund", one, key="k").reason == "policy_inactive"
        done = ran("policy", "activate", str(rules), world.url, *ADA, "--note", "to begin with", "--json")
        assert (done.code, done.document["changed"], done.document["replaced"]) == (0, True, None)
        assert isinstance(gate.call(run, "refund", one, key="k"), Done)
    again = ran("policy", "activate", str(rules), world.url, *ADA)
    assert again.code == 0
    assert "was active already" in again.out
    digest = done.document["active"]["policy"]
    listed = ran("policy", "active", world.url, "--json")
    assert (listed.document["tenant"], listed.document["policy"], listed.document["by"]) == (None, digest, "ops:ada")
    assert digest in ran("policy", "active", world.url).out
    assert not world.damage()


def test_a_tenant_of_its_own_is_told_of_and_kept(world: World) -> None:
    first, second = world.folder / "1.yaml", world.folder / "2.yaml"
    first.write_text(RULES)
    second.write_text(RULES.replace("name: all", "name: everything"))
    with world.gate() as gate:
        opened(gate)
    assert ran("policy", "activate", str(first), world.url, *ADA, "--tenant", "acme").code == 0
    told = ran("policy", "activate", str(second), world.url, *ADA)
    assert "tenant acme goes on with its own" in told.out
    assert len(ran("policy", "active", world.url).out.splitlines()) >= 3


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("policy", "activate", "missing.yaml", "--by", "a"), "missing.yaml"),
        (("policy", "activate", "{rules}"), "--by"),
        (("policy", "activate", "{rules}", "--by", "a", "--tenant", "$ledger"), "tenant"),
    ],
)
def test_a_wrong_argument_is_named(world: World, arguments: tuple[str, ...], named: str) -> None:
    rules = world.folder / "policy.yaml"
    rules.write_text(RULES)
    done = ran(*(one.format(rules=rules) for one in arguments), world.url)
    assert done.code == 2
    assert named in done.err


def test_rules_that_cannot_be_read_and_a_misspelt_tenant_activate_nothing(world: World) -> None:
    rules = world.folder / "policy.yaml"
    rules.write_text(RULES.replace("outcome", "outcom"))
    assert ran("policy", "activate", str(rules), world.url, *ADA).code == 2
    rules.write_text(RULES)
    done = ran("policy", "activate", str(rules), world.url, *ADA, "--tenant", "amce", "--json")
    assert (done.code, done.document["error"]["code"]) == (2, "not_found")
    assert not world.sql("SELECT * FROM agentgate_policies")
