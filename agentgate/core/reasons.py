"""Why an action did not run, in words a loop can act on, for every reason code that the gate itself gives."""

from collections.abc import Mapping
from types import MappingProxyType

from agentgate.observation import Error

# code of the error, what happened, what to do instead
_WORDS: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "cancelled": ("cancelled", "the action was cancelled", "propose it again if it is still wanted"),
        "superseded": ("conflict", "a newer call with the same key took its place", "look at the newer call"),
        "rejected": ("policy_denied", "a person said no", "do something else; asking again will not ask them again"),
        "rejected_before": ("policy_denied", "people of this run have said no to the same request",
                            "do something else; asking again will not ask them again"),
        "standing_gone": ("policy_denied", "the standing grant that allowed it is used up, over or taken back",
                          "propose it again with the same key: the policy is asked anew"),
        "question_expired": ("policy_denied", "nobody answered in time", "propose it again with the same key"),
        "grant_expired": ("policy_denied", "the approval expired before it was used", "propose it again"),
        "grant_revoked": ("policy_denied", "the approval was taken back", "do something else"),
        "action_expired": ("conflict", "it was not executed in time", "propose it again with the same key"),
        "spec_changed": ("conflict", "the tool's definition changed since it was proposed", "propose it again"),
        "unstable": ("policy_denied", "the policy asked for a third different approval", "ask the policy's author"),
        "run_halted": ("limit_exceeded", "the run is halted", "end the loop; a person must look at the run"),
        "run_closed": ("limit_exceeded", "the run is closed", "open a new run"),
        "aborted": ("policy_denied", "the policy ended the run", "end the loop"),
        "limit_actions": ("limit_exceeded", "the run has used up its actions", "end the loop"),
        "limit_failures": ("limit_exceeded", "too many attempts failed in a row", "end the loop"),
        "limit_rejections": ("limit_exceeded", "people have said no too often",
                             "end the loop; a person must look at the run"),
        "limit_retries": ("limit_exceeded", "the run has used up its retries", "leave it as a failure"),
        "limit_wall": ("limit_exceeded", "the run's time is over", "end the loop"),
        "limit_active": ("limit_exceeded", "the run's actions have taken all the time they may", "end the loop"),
        "limit_tokens": ("limit_exceeded", "the run has used up its tokens", "end the loop"),
        "limit_money": ("limit_exceeded", "the run has used up its money", "end the loop"),
        "limit_pending": ("limit_exceeded", "too many actions wait for a person", "wait for answers first"),
        "limit_parallel": ("limit_exceeded", "too many actions execute now", "try again shortly"),
        "limit_tenant_actions": ("limit_exceeded", "the tenant has used up its actions",
                                 "end the loop; ask an operator"),
        "limit_tenant_tokens": ("limit_exceeded", "the tenant has used up its tokens", "end the loop; ask an operator"),
        "limit_tenant_money": ("limit_exceeded", "the tenant has used up its money", "end the loop; ask an operator"),
        "limit_tenant_pending": ("limit_exceeded", "too many of the tenant's actions wait for a person",
                                 "wait for answers first"),
        "limit_tool_actions": ("limit_exceeded", "this tool has been used as often as it may be",
                               "go on without it; ask an operator"),
        "limit_tool_failures": ("limit_exceeded", "this tool has failed too often in a row",
                                "go on without it; ask an operator"),
        "limit_tool_pending": ("limit_exceeded", "too many actions of this tool wait for a person",
                               "wait for answers first"),
        "limit_account": ("limit_exceeded", "what is left of an account that this spends from is not enough",
                          "ask for less, or ask an operator"),
        "limit_reserves": ("limit_exceeded", "the policy spends from an account that nobody has bounded",
                           "ask the policy's author, or an operator"),
        "no_progress": ("limit_exceeded", "the same request came to the same outcome again and again", "end the loop"),
        "paused": ("transient", "an operator has paused this; nothing was done, and nothing is lost",
                   "do not repeat it now; make the same call again once it is resumed"),
        "policy_inactive": ("transient", "the policy asked is not the active one; nothing was done",
                            "do not repeat it now; make the same call again once the policy is active"),
        "breaker": ("transient", "this tool kept failing, and is left alone for a while", "try again later"),
        "no_keyring": ("conflict", "it was approved with signatures that this gate has no keyring to check",
                       "execute it at a gate that was opened with keyring="),
        "busy": ("conflict", "another action works on the same resource", "try again shortly"),
        "blocked": ("unknown_outcome", "the outcome of another action like this, or on the same resource, is unknown",
                    "wait until it is reconciled"),
        "duplicate": ("conflict", "the same call was made a short while ago, and happened or may have happened",
                      "use what came of the earlier call; repeat it once the tool's window is over"),
        "policy_asks": ("policy_denied", "the policy does not allow another attempt now", "ask an operator"),
        "probe_unsure": ("unknown_outcome", "it may have happened, and its tool cannot tell", "ask an operator"),
        "worker_alive": ("unknown_outcome", "it has not happened yet, and its worker may still be at it",
                         "ask again once its lease is over"),
        "timeout": ("unknown_outcome", "it did not end in time; it may have happened", "do not repeat it; reconcile"),
        "crashed": ("unknown_outcome", "its worker died; it may have happened", "do not repeat it; reconcile"),
        "lease_lost": ("unknown_outcome", "its worker lost its lease; it may have happened",
                       "do not repeat it; reconcile"),
        "late": ("unknown_outcome", "an earlier attempt answered late; it may have happened",
                 "do not repeat it; reconcile"),
        "happened": ("conflict", "an earlier attempt under this key is known to have happened",
                     "do not repeat it; where it is wanted once more, use a new key"),
        "abandoned": ("unknown_outcome", "nobody will find out whether it happened", "do not repeat it"),
    }
)  # fmt: skip

# After these the same key may be tried again as a new revision (design §8); denied, rejected and revoked are final.
REVISABLE = frozenset(
    {
        "question_expired",
        "grant_expired",
        "action_expired",
        "cancelled",
        "superseded",
        "spec_changed",
        "run_halted",
        "run_closed",
        "limit_actions",
        "limit_failures",
        "limit_wall",
        "limit_active",
        "limit_tokens",
        "limit_money",
        "limit_pending",
        "limit_tenant_actions",
        "limit_tenant_tokens",
        "limit_tenant_money",
        "limit_tenant_pending",
        "limit_tool_actions",
        "limit_tool_failures",
        "limit_tool_pending",
        "limit_account",
        "limit_reserves",
        "standing_gone",
        "duplicate",
    }
)


def error_for(reason: str) -> Error:
    """Put a reason code into words for the loop."""
    words = _WORDS.get(reason)
    if words is None:
        return Error(code=reason, message=f"refused: {reason}")
    code, message, remedy = words
    return Error(code=code, message=message, suggested_action=remedy)


def doubt(reason: str | None, seen: Error | None = None) -> Error:
    """Say that an outcome is unknown, and why.

    Args:
        reason: the code of what put it in doubt.
        seen: what the tool itself said, where it said something; it stands in the details.
    """
    known = error_for(reason or "crashed")
    return Error(
        code="unknown_outcome",
        message=known.message if known.code == "unknown_outcome" else f"it may have happened ({reason})",
        details=None if seen is None else seen.to_json(),
        suggested_action="do not repeat it; an operator reconciles it",
    )
