"""How far an ask has come: what a turn that waits for its caller goes on from, whatever becomes of its actors."""

from typing import Literal, TypeAlias

from actors.core.data.form import Form
from actors.core.values.identity import Binding
from actors.core.values.stream import LeftOut, Usage


class Cause(Form, frozen=True):
    """What kept a provider from answering: the kind of failure, as `actors.adapters.failure` lists them.

    Or what ended the turn here: `limit` (a budget, or a limit of tokens), `time`. `status` is that of HTTP; None if no
    response came, or it broke off.
    """

    kind: str
    status: int | None = None


class Attempt(Form, frozen=True):
    """One turn of an ask, what served it and how it ended; or a request of it that failed and was tried again.

    `error` is one line, empty for a turn that simply ended; `cause` the failure or the bound, if one ended it.
    The `status` of a request that was tried again is `retried`. `wait`: the seconds that were waited before it.
    """

    binding: Binding
    status: str
    error: str = ""
    cause: Cause | None = None
    wait: float = 0.0


RefusalKind: TypeAlias = Literal["transcript", "parameter", "media", "schema"]
"""The part of a request that was refused: its structure (our bug), an optional parameter, an attachment, a schema."""


class RefusedRequest(Form, frozen=True):
    """A request of an ask that a provider, or the judge, refused. The ask went on, if it could.

    Args:
        binding: The binding of its turn.
        kind: The part of the request that was refused.
        reason: The provider's or the judge's words, on one line.
        without: What the next request was made without: names of parameters, or of the schema's parts.
    """

    binding: Binding
    kind: RefusalKind
    reason: str
    without: tuple[str, ...] = ()


class TurnProgress(Form, frozen=True):
    """What a turn has used of its bounds.

    Args:
        rounds: The number of the round it is in, from 1.
        usage: Of all its rounds.
        misses: Rounds running in which every call was refused.
        malformed: Answers that had not the form asked for, and were corrected.
        rewritten: What it left out when its transcript was refused: nothing, old reasoning, or all but plain words.
    """

    rounds: int = 1
    usage: Usage = Usage()
    misses: int = 0
    rewritten: Literal["no", "bare", "plain"] = "no"
    malformed: int = 0


class AskProgress(Form, frozen=True):
    """What an ask has brought: by turns that ended before this one, its `attempts`, their `usage` and what that cost.

    `rounds`, and what was `left_out`, are those of this turn too; `tried` are the pool's members that served turns,
    that of this turn last. `seconds` is how long the ask took, waits left out, where it may take only so long.
    `refusals` are its requests that were refused, in order.
    """

    attempts: tuple[Attempt, ...] = ()
    rounds: int = 0
    usage: Usage = Usage()
    left_out: LeftOut = ()
    tried: tuple[str, ...] = ()
    cost: float | None = 0.0
    seconds: float = 0.0
    refusals: tuple[RefusedRequest, ...] = ()
