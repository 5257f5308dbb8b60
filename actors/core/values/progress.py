"""Define the progress of an ask, as the log stores it.

A turn that waits for results or approvals from its caller resumes from these values after passivation, a crash or a
restart.
"""

from typing import Final, Literal, TypeAlias

from actors.core.data.record import StoredRecord
from actors.core.values.identity import Binding
from actors.core.values.stream import LeftOut, Usage


class Cause(StoredRecord, frozen=True):
    """The reason why a provider gave no answer, or why the runtime ended the turn.

    Args:
        kind: One of the kinds of failure that the reference of errors lists, such as `rate_limit`; or `limit` (a budget
            or a token limit was reached), `time` (a timeout of the runtime expired), `leaving` (the host released the
            session, so the ask was cancelled).
        status: The HTTP status; None if no complete response arrived.
    """

    kind: str
    status: int | None = None


LEAVING: Final = Cause("leaving")
"""The cause of a turn that was cancelled because the host released its session. An ask with a key can be continued."""


class Attempt(StoredRecord, frozen=True):
    """One turn of an ask with its binding and outcome, or a failed request that was retried.

    Args:
        binding: The binding of the turn.
        status: The outcome of the turn, or `retried` for a request that was retried.
        error: The reason for the failure, on one line; empty for a turn that ended normally.
        cause: The failure or the limit that ended the turn; None for any other end.
        wait: Seconds waited before the retry.
    """

    binding: Binding
    status: str
    error: str = ""
    cause: Cause | None = None
    wait: float = 0.0


RefusalKind: TypeAlias = Literal["transcript", "parameter", "media", "schema"]
"""The part of a request that was refused: its structure (our bug), an optional parameter, an attachment or a schema."""


class RefusedRequest(StoredRecord, frozen=True):
    """A request that a provider or the judge refused. The ask continued with a changed request if possible.

    Args:
        binding: The binding of the request's turn.
        kind: The part of the request that was refused.
        reason: The message of the provider or the judge, on one line.
        without: Names of the parameters or schema keywords that the next request omitted.
    """

    binding: Binding
    kind: RefusalKind
    reason: str
    without: tuple[str, ...] = ()


class TurnProgress(StoredRecord, frozen=True):
    """The rounds, tokens and corrections of a turn so far, which count towards its limits.

    Args:
        rounds: Number of the current round, from 1.
        usage: Token usage of all rounds.
        misses: Consecutive rounds in which every call was refused.
        malformed: Answers that were corrected because they did not have the requested format.
        rewritten: The change to the transcript after a refusal: `no` (none), `bare` (without old reasoning) or `plain`
            (tool calls as text).
    """

    rounds: int = 1
    usage: Usage = Usage()
    misses: int = 0
    rewritten: Literal["no", "bare", "plain"] = "no"
    malformed: int = 0


class AskProgress(StoredRecord, frozen=True):
    """The totals of an ask so far.

    Args:
        attempts: The ask's earlier turns and retried requests, in order.
        rounds: Rounds so far, including the current turn.
        usage: Token usage of the earlier turns.
        dropped: Items of answers that were dropped so far, including the current turn.
        tried: Pool members that served turns, in order. The last one is the current member.
        cost: Cost of the earlier turns; None if a price is unknown.
        seconds: Seconds that count towards the ask's timeout, without pauses.
        refusals: The ask's refused requests, in order.
    """

    attempts: tuple[Attempt, ...] = ()
    rounds: int = 0
    usage: Usage = Usage()
    dropped: LeftOut = ()
    tried: tuple[str, ...] = ()
    cost: float | None = 0.0
    seconds: float = 0.0
    refusals: tuple[RefusedRequest, ...] = ()
