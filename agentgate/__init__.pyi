from agentgate.action import Key as Key
from agentgate.approval import Requirement as Requirement
from agentgate.breaker import Breaker as Breaker
from agentgate.canonical import Bounds as Bounds
from agentgate.canonical import Json as Json
from agentgate.core.findings import (
    Difference as Difference,
)
from agentgate.core.findings import (
    NotEvaluated as NotEvaluated,
)
from agentgate.core.findings import (
    NowDenied as NowDenied,
)
from agentgate.core.findings import (
    Recheck as Recheck,
)
from agentgate.core.findings import (
    RecheckProgress as RecheckProgress,
)
from agentgate.core.verification import (
    Break as Break,
)
from agentgate.core.verification import (
    Verification as Verification,
)
from agentgate.effects import Effect as Effect
from agentgate.errors import (
    AgentgateError as AgentgateError,
)
from agentgate.errors import (
    Damaged as Damaged,
)
from agentgate.errors import (
    KeyConflict as KeyConflict,
)
from agentgate.errors import KeyringRefused as KeyringRefused
from agentgate.errors import (
    Misuse as Misuse,
)
from agentgate.errors import (
    NotCanonical as NotCanonical,
)
from agentgate.errors import (
    NotFound as NotFound,
)
from agentgate.errors import (
    NotPossible as NotPossible,
)
from agentgate.errors import (
    PolicyRefused as PolicyRefused,
)
from agentgate.errors import (
    RunConflict as RunConflict,
)
from agentgate.errors import (
    Sealed as Sealed,
)
from agentgate.errors import (
    SpecRefused as SpecRefused,
)
from agentgate.errors import (
    Unavailable as Unavailable,
)
from agentgate.errors import (
    Ungated as Ungated,
)
from agentgate.errors import (
    UnsafeStore as UnsafeStore,
)
from agentgate.errors import (
    VoteRefused as VoteRefused,
)
from agentgate.errors import (
    WrongSchema as WrongSchema,
)
from agentgate.gate.activating import (
    Activated as Activated,
)
from agentgate.gate.activating import (
    ActivePolicy as ActivePolicy,
)
from agentgate.gate.calls import Call as Call
from agentgate.gate.channels import Channel as Channel
from agentgate.gate.face import Gate as Gate
from agentgate.gate.granted import StandingGrant as StandingGrant
from agentgate.gate.inbox import Waiting as Waiting
from agentgate.gate.keyring import KeyTable as KeyTable
from agentgate.gate.keyring import ListedKey as ListedKey
from agentgate.gate.limiting import Allowance as Allowance
from agentgate.gate.migrating import migrate as migrate
from agentgate.gate.opening import Run as Run
from agentgate.gate.overdue import Swept as Swept
from agentgate.gate.questions import (
    Question as Question,
)
from agentgate.gate.questions import (
    VoteView as VoteView,
)
from agentgate.gate.rechecking import recheck as recheck
from agentgate.gate.settings import Settings as Settings
from agentgate.gate.switching import (
    Executing as Executing,
)
from agentgate.gate.switching import (
    Paused as Paused,
)
from agentgate.gate.switching import (
    Resumed as Resumed,
)
from agentgate.gate.switching import (
    Scope as Scope,
)
from agentgate.gate.verifying import verify as verify
from agentgate.keyring import Keyring as Keyring
from agentgate.keyring import LedgerKey as LedgerKey
from agentgate.keyring import sign_addition as sign_addition
from agentgate.limits import Limits as Limits
from agentgate.observation import (
    Error as Error,
)
from agentgate.observation import (
    NoEffect as NoEffect,
)
from agentgate.observation import (
    Observation as Observation,
)
from agentgate.observation import (
    ToolError as ToolError,
)
from agentgate.outcome import (
    Approval as Approval,
)
from agentgate.outcome import (
    Done as Done,
)
from agentgate.outcome import (
    Failed as Failed,
)
from agentgate.outcome import (
    Held as Held,
)
from agentgate.outcome import Late as Late
from agentgate.outcome import (
    Outcome as Outcome,
)
from agentgate.outcome import (
    Proposal as Proposal,
)
from agentgate.outcome import (
    Refused as Refused,
)
from agentgate.outcome import (
    Running as Running,
)
from agentgate.outcome import (
    Unknown as Unknown,
)
from agentgate.policy.decision import (
    Decision as Decision,
)
from agentgate.policy.decision import (
    Reason as Reason,
)
from agentgate.policy.decision import (
    Reserve as Reserve,
)
from agentgate.policy.decision import (
    abort as abort,
)
from agentgate.policy.decision import (
    allow as allow,
)
from agentgate.policy.decision import (
    deny as deny,
)
from agentgate.policy.decision import (
    require_approval as require_approval,
)
from agentgate.policy.evaluation import Policy as Policy
from agentgate.policy.evaluation import python_policy as python_policy
from agentgate.policy.grants import standing_reserve as standing_reserve
from agentgate.policy.request import PolicyRequest as PolicyRequest
from agentgate.policy.request import View as View
from agentgate.publickeys import ApproverKey as ApproverKey
from agentgate.sealing import SealingKey as SealingKey
from agentgate.sealing import SealingKeys as SealingKeys
from agentgate.secrets import EnvironmentSecrets as EnvironmentSecrets
from agentgate.secrets import FileSecrets as FileSecrets
from agentgate.signing import SignedVote as SignedVote
from agentgate.signing import SigningKey as SigningKey
from agentgate.signing import sign_vote as sign_vote
from agentgate.tools.decorator import Function as Function
from agentgate.tools.decorator import Tool as Tool
from agentgate.tools.decorator import gated as gated
from agentgate.tools.decorator import tool as tool
from agentgate.tools.expected import Argument as Argument
from agentgate.tools.expected import expected_state as expected_state
from agentgate.tools.recovery import (
    FunctionName as FunctionName,
)
from agentgate.tools.recovery import (
    Keyed as Keyed,
)
from agentgate.tools.recovery import (
    Operator as Operator,
)
from agentgate.tools.recovery import (
    Probe as Probe,
)
from agentgate.tools.recovery import (
    Repeat as Repeat,
)
from agentgate.tools.recovery import (
    Retry as Retry,
)
from agentgate.tools.recovery import (
    Transactional as Transactional,
)
from agentgate.tools.spec import ToolSpec as ToolSpec
from agentgate.tools.verdicts import Applied as Applied
from agentgate.tools.verdicts import Checked as Checked
from agentgate.tools.verdicts import NotApplied as NotApplied
