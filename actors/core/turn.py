"""A turn as a conversation: it says what it needs next and is told what came of it.

The generator runs over a frozen view of the session (binding, settings, tools), so the binding of a turn
cannot change by construction. It does nothing itself: a session's child drives it with real actors, a
test with a list. Its legal states are this table; anything else is a programming error.

    state        asks for                  is told                  goes on to
    idle         -                         -                        rendering
    rendering    RenderStep(tools_off)     Ready                    generating
                                           Unfit (judge refused)    rewriting, or closing
                                           Stopped                  closing
    rewriting    RewriteStep               Ready                    rendering
                                           Stopped                  closing
    generating   GenerateStep              Answered, with calls     executing; closing at a limit
                                           Answered, no calls       closing
                                           Broke (refused)          rewriting, or closing
                                           Broke (failed), Stopped  closing
    executing    BatchStep(calls)          Ran                      rendering
                                           Stopped                  closing
    closing      CloseStep(status)         Ready                    idle (the generator returns)

A turn rewrites at most twice: without old reasoning if that alone was refused, then with the conservative
render. Rounds are bounded, and so is correction: after `corrections` rounds running in which every call was
refused for its arguments, and at the last round, the model is asked once more with tools off, for a
final text (U-06, U-13).
"""

from collections.abc import Generator
from typing import Literal, TypeAlias

from msgspec import Struct

from actors.core.content import Message, ToolCall
from actors.core.events import TurnStatus
from actors.core.feed import Cause
from actors.core.stream import Usage


class Bounds(Struct, frozen=True):
    """How long a turn may go on.

    Args:
        rounds: Most rounds; the last is asked with tools off.
        corrections: Most rounds running in which every call was refused, before tools are turned off.
    """

    rounds: int = 25
    corrections: int = 3


# ---- what a turn asks for


class RenderStep(Struct, frozen=True):
    """Render the history for the turn's binding. `tools_off`: for a final text."""

    round: int
    tools_off: bool = False


class RewriteStep(Struct, frozen=True):
    """Begin an epoch: the transcript was refused. `plain`: with the conservative render; else without old reasoning."""

    why: str
    plain: bool = True


class GenerateStep(Struct, frozen=True):
    """Send the rendered request and read the answer."""

    round: int


class BatchStep(Struct, frozen=True):
    """Run these calls at the same time and record how each ended."""

    calls: tuple[ToolCall, ...]


class CloseStep(Struct, frozen=True):
    """Close what is open: these calls will not be run. Then the turn has ended."""

    status: TurnStatus
    why: str
    unrun: tuple[ToolCall, ...] = ()


Asking: TypeAlias = RenderStep | RewriteStep | GenerateStep | BatchStep
Step: TypeAlias = Asking | CloseStep

# ---- what it is told


class Ready(Struct, frozen=True):
    """It is done."""


class Unfit(Struct, frozen=True):
    """The judge refused the rendered transcript. `reasoning`: only for reasoning that is replayed in it."""

    why: str
    reasoning: bool = False


class Answered(Struct, frozen=True):
    """The model's whole message of this round."""

    message: Message
    usage: Usage


class Broke(Struct, frozen=True):
    """The round failed for good. `refused`: for its structure; else the provider failed.

    `reasoning` is whether only replayed reasoning was refused, `message` what could be kept of this answer, `visible`
    whether any of it reached the caller, `elsewhere` whether another backend may be asked instead.
    """

    why: str
    refused: bool = False
    reasoning: bool = False
    elsewhere: bool = True
    visible: bool = False
    message: Message | None = None
    usage: Usage = Usage()
    cause: Cause | None = None


class Ran(Struct, frozen=True):
    """Every call of the batch is closed. `refused` counts those whose arguments or name were invalid."""

    refused: int = 0


class Stopped(Struct, frozen=True):
    """The turn was cancelled while this step was under way.

    `message` is what could be kept of an answer that was arriving; its calls will not be run. `usage` is what
    that answer took.
    """

    message: Message | None = None
    usage: Usage = Usage()


Outcome: TypeAlias = Ready | Unfit | Answered | Broke | Ran | Stopped


class Ended(Struct, frozen=True):
    """How a turn ended: its last word, and what it took."""

    status: TurnStatus
    why: str
    message: Message | None
    rounds: int
    usage: Usage
    visible: bool = False
    elsewhere: bool = False
    cause: Cause | None = None


def turn(bounds: Bounds) -> Generator[Step, Outcome, Ended]:
    """Conduct one turn. Send it `None` first, then the outcome of each step it yields."""
    conduct = _TurnRules(bounds)
    step: Step = conduct.render()
    while not isinstance(step, CloseStep):
        outcome = yield step
        step = conduct.next(step, outcome)
    yield step
    return conduct.ended(step)


class _TurnRules:
    """Where a turn is, and what it has spent."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._round = 1
        self._misses = 0
        self._tools_off = bounds.rounds <= 1
        self._rewritten: Literal["no", "bare", "plain"] = "no"
        self._usage = Usage()
        self._message: Message | None = None
        self._visible = False
        self._elsewhere = False
        self._cause: Cause | None = None

    def render(self) -> RenderStep:
        return RenderStep(self._round, self._tools_off)

    def next(self, step: Step, outcome: Outcome) -> Step:
        """Return what follows; the table above, row by row."""
        match step, outcome:
            case _, Stopped(message=message, usage=usage):
                self._usage += usage
                self._message = message or self._message
                return CloseStep("cancelled", "cancelled", message.calls if message else ())
            case RenderStep(), Ready():
                return GenerateStep(self._round)
            case RenderStep(), Unfit(why=why, reasoning=reasoning):
                return self._rewrite(why, reasoning)
            case RewriteStep(), Ready():
                return self.render()
            case GenerateStep(), Answered():
                return self._answered(outcome)
            case GenerateStep(), Broke():
                return self._broke(outcome)
            case BatchStep(calls=calls), Ran(refused=refused):
                return self._ran(len(calls), refused)
            case _:
                raise AssertionError(f"{type(outcome).__name__} does not answer {type(step).__name__}")

    def ended(self, close: CloseStep) -> Ended:
        return Ended(
            close.status,
            close.why,
            self._message,
            self._round,
            self._usage,
            self._visible,
            self._elsewhere,
            self._cause,
        )

    def _rewrite(self, why: str, reasoning: bool) -> Step:
        """Leave out old reasoning first, if that is what was refused; then say everything in plain words."""
        if self._rewritten == "plain":
            return CloseStep("failed", why)
        self._rewritten = "bare" if reasoning and self._rewritten == "no" else "plain"
        return RewriteStep(why, plain=self._rewritten == "plain")

    def _answered(self, answered: Answered) -> Step:
        self._usage += answered.usage
        self._message, self._cause = answered.message, None
        calls = answered.message.calls
        if not calls:
            return CloseStep("complete", "")
        if self._tools_off:
            return CloseStep("complete", "the limit of rounds was reached", calls)
        return BatchStep(calls)

    def _broke(self, broke: Broke) -> Step:
        self._usage += broke.usage
        self._visible = self._visible or broke.visible
        self._cause = broke.cause
        if broke.refused:
            return self._rewrite(broke.why, broke.reasoning)
        self._message = broke.message or self._message
        self._elsewhere = broke.elsewhere
        return CloseStep("failed", broke.why, broke.message.calls if broke.message else ())

    def _ran(self, calls: int, refused: int) -> Step:
        self._misses = self._misses + 1 if refused == calls else 0
        self._round += 1
        if self._round >= self._bounds.rounds or self._misses >= self._bounds.corrections:
            self._tools_off = True
        return self.render()
