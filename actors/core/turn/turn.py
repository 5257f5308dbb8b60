"""A turn as a conversation: it says what it needs next and is told what came of it.

It does nothing itself: a session's child drives it with real actors over a frozen view of the session (binding,
settings, tools), a test with a list. Its legal states are this table; anything else is a programming error.

    state        asks for                  is told                  goes on to
    idle         -                         -                        rendering
    rendering    RenderStep(tools_off)     Ready                    generating
                                           Unfit (judge refused)    rewriting, or closing
                                           HandedOver, Stopped      closing
    rewriting    RewriteStep               Ready                    rendering
                                           Stopped                  closing
    generating   GenerateStep              Answered, with calls     executing; closing at a limit
                                           Answered, no calls       closing
                                           Answered, empty          rendering or correcting, once; then closing
                                           Answered, call unparsed  correcting, once; then closing
                                           Answered, not forced     correcting, once; then closing
                                           Unfit (400)              rewriting, or closing
                                           ParameterRefused         rendering, thrice at most a round
                                           MediaRefused             rewriting, thrice at most a round; or closing
                                           Broke, too long          shrinking, thrice at most a round
                                           Broke, Stopped           closing
                 (with a form asked for)   Answered, no calls       checking
    shrinking    ShrinkStep(why)           Shrunk, something        rendering
                                           Shrunk, nothing; Stopped closing
    executing    BatchStep(calls)          Ran                      rendering
                                           Ran, some awaited        awaiting
                                           Stopped                  closing
    awaiting     AwaitStep(calls)          Resolved                 rendering
                                           Resolved, some approved  executing
                                           Stopped                  closing
    checking     CheckStep(message)        Checked, as asked for    closing
                                           Checked, otherwise       correcting; closing at a limit
                                           Stopped                  closing
    correcting   InstructStep(words)       Ready                    rendering
                                           Stopped                  closing
    closing      CloseStep(status)         -                        idle (the generator ends)

A turn that awaits may be put down: its step says how far it had come, and `turn(bounds, step)` goes on from there.
A turn rewrites a refused structure at most twice: without old reasoning if that alone was refused, then with the
conservative render. Refused attachments are replaced by notes: those that the provider points at, the third time all.
Rounds are bounded, and so is correction: after `max_corrections` rounds running in which every call was refused for its
arguments, where calls are repeated to no end, and at the last round, the model is asked once more with tools off, for a
final text (U-06, U-13). An answer that has not the form asked for is corrected as often, in rounds of their own beyond
the limit. So is an answer without content (`actors.core.turn.no_content`), but once: behind tool results the model is
told, elsewhere the same request is sent again. If the next answer has no content either, the turn has failed, or is
complete if tools ran in it, and the answer's `cut` tells which. A model that accepts no forced tool choice is told in
words to call a tool, and once more if it does not.
"""

from collections.abc import Generator
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from actors.core.log.events import Omission, TurnStatus
from actors.core.settings.asking import forced_instruction
from actors.core.settings.values import ToolChoice, ToolChoiceSetting
from actors.core.turn.bounds import Bounds
from actors.core.turn.no_content import EMPTY, NUDGE, unparsed_note
from actors.core.values.content import Message, ToolCall
from actors.core.values.progress import Cause, TurnProgress
from actors.core.values.stream import Cut, Usage

SHRINKS: Final = 3
"""Times that a history is made shorter for one request because that is too long."""


PARAMETER_REFUSALS: Final = 3
"""Times that parameters are left out of one request because the provider refuses them, each time others."""
MEDIA_REFUSALS: Final = 3
"""Times that attachments are left out for one request because the provider refuses them."""


class RenderStep(Struct, frozen=True):
    """Render the history for the turn's binding.

    `tools_off`: for a final text. `again`: why the request of the round before is sent again; empty if it is not.
    `omitted`: parameters left out since they were refused. `follows_batch`: a handoff among its results counts.
    """

    round: int
    tools_off: bool = False
    again: str = ""
    omitted: tuple[Omission, ...] = ()
    follows_batch: bool = False


class RewriteStep(Struct, frozen=True):
    """Begin an epoch: the transcript was refused.

    With notes in place of `media`, where some are named; else, if `plain`, with the conservative render; else without
    old reasoning.
    """

    why: str
    plain: bool = True
    media: tuple[str, ...] = ()


class GenerateStep(Struct, frozen=True):
    """Send the rendered request and read the answer."""

    round: int


class ShrinkStep(Struct, frozen=True):
    """Make the history shorter: the request was too long, as `why` says. `again`: it has been made shorter before."""

    why: str
    again: bool = False


class BatchStep(Struct, frozen=True):
    """Run these calls at the same time and record how each ended. `approved`: they are known, and may run."""

    calls: tuple[ToolCall, ...]
    approved: bool = False


class AwaitStep(Struct, frozen=True):
    """Wait for the caller: for results of `external` calls, and for somebody to approve of others."""

    external: tuple[ToolCall, ...] = ()
    approvals: tuple[ToolCall, ...] = ()
    so_far: TurnProgress = TurnProgress()

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """All that are waited for."""
        return (*self.external, *self.approvals)


class CheckStep(Struct, frozen=True):
    """See whether an answer has the form asked for."""

    message: Message


class InstructStep(Struct, frozen=True):
    """Tell the model what is wrong with its answer: its form, or that it has no content."""

    words: str


class CloseStep(Struct, frozen=True):
    """Close what is open: the calls `unrun` will not be run, the calls `awaited` no longer waited for.

    Then the turn has ended, as all else here says.
    `message` is its last word, `visible` whether any of a failed answer reached the caller, `elsewhere` whether another
    backend may be asked instead, `refused` that its transcript was refused for its structure to the end; `handover` is
    the target that the ask goes on with, where the model said so.
    `malformed` counts the answers of the ask that had not its form, and were corrected.
    """

    status: TurnStatus
    why: str
    unrun: tuple[ToolCall, ...] = ()
    awaited: tuple[ToolCall, ...] = ()
    message: Message | None = None
    rounds: int = 0
    usage: Usage = Usage()
    visible: bool = False
    elsewhere: bool = False
    refused: bool = False
    cause: Cause | None = None
    handover: str | None = None
    malformed: int = 0


Asking: TypeAlias = (
    RenderStep | RewriteStep | GenerateStep | ShrinkStep | BatchStep | CheckStep | InstructStep
)
Step: TypeAlias = Asking | AwaitStep | CloseStep


class Ready(Struct, frozen=True):
    """It is done."""


class HandedOver(Struct, frozen=True):
    """A call of the last batch handed the conversation over to `target`; or could not, and `why` says for what."""

    target: str
    why: str = ""


class Unfit(Struct, frozen=True):
    """The judge or the provider refused the transcript. `reasoning`: only for reasoning that is replayed in it."""

    why: str
    reasoning: bool = False
    cause: Cause | None = None


class ParameterRefused(Struct, frozen=True):
    """The provider refused optional parameters, which the request can go without.

    `forced`: the tool choice that the model was told in words instead, if that was refused.
    """

    omitted: tuple[Omission, ...]
    forced: ToolChoiceSetting | None = None


class MediaRefused(Struct, frozen=True):
    """The provider refused attachments, here by their names in the log.

    Args:
        media: Those that its words point at.
        others: The others that it may mean: those that no answered request has held, or all.
    """

    why: str
    media: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    cause: Cause | None = None


class Answered(Struct, frozen=True):
    """The model's whole message of this round. `cut` tells why it is not a whole answer, if it is not."""

    message: Message
    usage: Usage
    cut: Cut | None = None


class Broke(Struct, frozen=True):
    """The provider failed for good. `message` is what could be kept of its answer; the rest is as in `CloseStep`.

    `too_long`: a shorter history would help.
    """

    why: str
    elsewhere: bool = True
    visible: bool = False
    message: Message | None = None
    usage: Usage = Usage()
    cause: Cause | None = None
    too_long: bool = False


class Shrunk(Struct, frozen=True):
    """The history is shorter, if it is `done`; `why` says why not. `usage` is that of the request for a summary."""

    done: bool
    why: str = ""
    usage: Usage = Usage()
    message: None = None


class Ran(Struct, frozen=True):
    """Every call of the batch is closed, but those that wait for the caller.

    `refused` counts those whose arguments or name were invalid; the others are as in `AwaitStep`. `stuck`: calls are
    repeated, and the turn is to end.
    """

    refused: int = 0
    external: tuple[ToolCall, ...] = ()
    approvals: tuple[ToolCall, ...] = ()
    stuck: bool = False


class Resolved(Struct, frozen=True):
    """Nothing is awaited any more. The calls `approved` are still to be run. `stuck` is as in `Ran`."""

    approved: tuple[ToolCall, ...] = ()
    stuck: bool = False


class Checked(Struct, frozen=True):
    """The answer was read.

    Args:
        correction: What to tell the model where it has not the form asked for.
        lacks: What it lacks, for the caller. Without a correction: why nobody could read it; the turn has failed.
    """

    correction: str | None = None
    lacks: str = ""


class Stopped(Struct, frozen=True):
    """The turn was cancelled during this step.

    `message` and `usage` are those of an answer that was arriving, `awaited` the calls that wait for the caller.
    """

    message: Message | None = None
    usage: Usage = Usage()
    awaited: tuple[ToolCall, ...] = ()


Refused: TypeAlias = Unfit | ParameterRefused | MediaRefused
Outcome: TypeAlias = (
    Ready | HandedOver | Refused | Answered | Broke | Shrunk | Ran | Resolved | Checked | Stopped
)


def turn(bounds: Bounds, waited: AwaitStep | None = None, malformed: int = 0) -> Generator[Step, Outcome]:
    """Conduct one turn, or the rest of one that waited. `malformed`: as turns of its ask before it left it.

    Send it the outcome of each step it yields; the last is a `CloseStep`, which has none.
    """
    rules = _TurnRules(bounds, waited.so_far if waited is not None else TurnProgress(malformed=malformed))
    step: Step = waited or rules.render()
    while not isinstance(step, CloseStep):
        step = rules.next(step, (yield step))
    yield step


class _TurnRules:
    """Where a turn is, and how it would end now."""

    def __init__(self, bounds: Bounds, so_far: TurnProgress) -> None:
        self._bounds = bounds
        self._misses = so_far.misses
        self._tools_off = bounds.max_rounds <= 1
        self._rewritten, self._shrinks, self._media = so_far.rewritten, 0, 0
        self._has_called = self._is_lacking = False
        self._forced = bounds.forced  # until it is met, or the model was corrected
        self._refusals, self._omitted = 0, tuple[Omission, ...]()
        self._end = CloseStep(
            "complete", "", rounds=so_far.rounds, usage=so_far.usage, malformed=so_far.malformed
        )

    def render(self) -> RenderStep:
        return RenderStep(self._end.rounds, self._tools_off, omitted=self._omitted)

    def next(self, step: Step, outcome: Outcome) -> Step:  # noqa: C901  a case for each row
        """Return what follows; the table above, row by row."""
        match step, outcome:
            case _, Stopped():
                self._take(outcome, cause=None)  # what ended it is the cancel
                return replace(
                    self._close("cancelled", "cancelled", outcome.message), awaited=outcome.awaited
                )
            case RenderStep(), Ready():
                return GenerateStep(self._end.rounds)
            case RenderStep(), HandedOver():
                return self._handed_over(outcome)
            case CheckStep(), Checked():
                return self._checked(outcome.correction, outcome.lacks)
            case RewriteStep() | InstructStep(), Ready():
                return self.render()
            case RenderStep() | GenerateStep(), Unfit():
                return self._rewrite(outcome)
            case GenerateStep(), ParameterRefused() if self._refusals < PARAMETER_REFUSALS:
                self._refusals += 1
                self._omitted += outcome.omitted
                self._forced = outcome.forced or self._forced
                return self.render()
            case GenerateStep(), MediaRefused():
                return self._leave_out(outcome)
            case GenerateStep(), Answered():
                self._shrinks = 0
                self._media = self._refusals = 0
                self._omitted = ()
                return self._answered(outcome)
            case GenerateStep(), Broke(too_long=True) if self._shrinks < SHRINKS:
                self._shrinks += 1
                self._take(outcome, cause=outcome.cause)
                return ShrinkStep(outcome.why, again=self._shrinks > 1)
            case ShrinkStep(why=why), Shrunk(done=done):
                self._take(outcome)
                failed = f"{why}; {outcome.why}"
                return self.render() if done else self._close("failed", failed, elsewhere=True)
            case GenerateStep(), Broke():
                self._take(outcome, visible=self._end.visible or outcome.visible, cause=outcome.cause)
                return self._close("failed", outcome.why, outcome.message, outcome.elsewhere)
            case BatchStep(approved=True), Ran(stuck=stuck):
                return self._following(stuck)
            case BatchStep(calls=calls), Ran():
                return self._ran(len(calls), outcome)
            case AwaitStep(), Resolved(approved=calls, stuck=stuck):
                return BatchStep(calls, approved=True) if calls else self._following(stuck)
            case _:
                raise AssertionError(f"{type(outcome).__name__} does not answer {type(step).__name__}")

    def _take(
        self, outcome: Answered | Broke | Shrunk | Stopped, **more: Any
    ) -> None:  # Any: fields of the end
        end = self._end
        said, usage = outcome.message or end.message, end.usage + outcome.usage
        self._end = replace(end, message=said, usage=usage, **more)

    def _close(
        self, status: TurnStatus, why: str, unrun: Message | None = None, elsewhere: bool = False
    ) -> CloseStep:
        """Return the end of the turn. The calls of the message `unrun` will not be run."""
        calls = unrun.calls if unrun is not None else ()
        return replace(self._end, status=status, why=why, unrun=calls, elsewhere=elsewhere)

    def _handed_over(self, handed: HandedOver) -> CloseStep:
        """Return the end of a turn that is over before its next round, which is another turn's."""
        end = replace(self._end, rounds=self._end.rounds - 1, handover=None if handed.why else handed.target)
        status: TurnStatus = "failed" if handed.why else "handed_over"
        return replace(end, status=status, why=handed.why or f"the model handed over to {handed.target}")

    def _rewrite(self, unfit: Unfit) -> Step:
        """Leave out old reasoning first, if that is what was refused; then say everything in plain words."""
        self._end = replace(self._end, cause=unfit.cause or self._end.cause)
        if self._rewritten == "plain":
            self._end = replace(self._end, refused=True)
            return self._close("failed", unfit.why, elsewhere=True)
        self._rewritten = "bare" if unfit.reasoning and self._rewritten == "no" else "plain"
        return RewriteStep(unfit.why, plain=self._rewritten == "plain")

    def _leave_out(self, refused: MediaRefused) -> Step:
        """Put notes in place of refused attachments; in the end, let another backend answer."""
        self._end = replace(self._end, cause=refused.cause)
        if self._media == MEDIA_REFUSALS:
            return self._close("failed", refused.why, elsewhere=True)
        self._media += 1
        is_last = self._media == MEDIA_REFUSALS
        media = (*refused.media, *refused.others) if is_last or not refused.media else refused.media
        return RewriteStep(refused.why, plain=False, media=media)

    def _answered(self, answered: Answered) -> Step:
        self._take(answered, cause=None)
        calls = answered.message.calls
        if answered.cut in ("empty", "unparsed"):
            return self._without_content(answered, is_unparsed=answered.cut == "unparsed")
        self._is_lacking = False
        if calls and not self._tools_off:
            if self._forced == "required" or self._forced in [ToolChoice(call.name) for call in calls]:
                self._forced = None
            return BatchStep(calls)
        if self._forced is not None and not self._tools_off:
            words, self._forced = forced_instruction(self._forced), None
            self._end = replace(self._end, rounds=self._end.rounds + 1)
            return InstructStep(words)
        if not self._bounds.form:
            why = "the limit of rounds was reached" if calls else ""
            return self._close("complete", why, answered.message)
        if calls:
            return self._close("failed", "the limit of rounds was reached before an answer", answered.message)
        return CheckStep(answered.message)

    def _without_content(self, answered: Answered, *, is_unparsed: bool) -> Step:
        """Try once more; report the second of two running. The corrections of a form are counted by that."""
        note = unparsed_note(tools_off=self._tools_off) if is_unparsed else NUDGE
        if is_unparsed and self._bounds.form:
            return self._checked(note, "it is a tool call as text")
        if not self._is_lacking:
            self._is_lacking = True
            self._end = replace(self._end, rounds=self._end.rounds + 1)
            says = is_unparsed or self._has_called
            return InstructStep(note) if says else replace(self.render(), again=EMPTY)
        if self._bounds.form:
            return CheckStep(answered.message)
        if is_unparsed or self._has_called:
            return self._close("complete", "")
        self._end = replace(self._end, cause=Cause("model_fault"))
        return self._close("failed", f"{EMPTY}, twice", elsewhere=True)

    def _checked(self, correction: str | None, lacks: str) -> Step:
        if correction is None:
            return self._close("failed" if lacks else "complete", lacks)
        if self._end.malformed >= self._bounds.max_corrections:
            return self._close("failed", f"the answer does not have the form asked for: {lacks}")
        self._end = replace(self._end, rounds=self._end.rounds + 1, malformed=self._end.malformed + 1)
        return InstructStep(correction)

    def _ran(self, calls: int, ran: Ran) -> Step:
        self._misses = self._misses + 1 if ran.refused == calls else 0
        if ran.external or ran.approvals:
            end = self._end
            so_far = TurnProgress(end.rounds, end.usage, self._misses, self._rewritten, end.malformed)
            return AwaitStep(ran.external, ran.approvals, so_far)
        return self._following(ran.stuck)

    def _following(self, stuck: bool) -> RenderStep:
        """Begin the next round; the last one, and one after too many misses or repetitions, with tools off."""
        self._has_called = True
        self._end = replace(self._end, rounds=self._end.rounds + 1)
        if (
            stuck
            or self._end.rounds >= self._bounds.max_rounds
            or self._misses >= self._bounds.max_corrections
        ):
            self._tools_off = True
        return replace(self.render(), follows_batch=True)
