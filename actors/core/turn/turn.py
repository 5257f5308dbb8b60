"""Run a turn as a generator: it yields the next step and receives the outcome of that step.

The session's turn driver runs the steps with real actors, over a frozen view of the session (binding, settings, tools).
Tests run them with a list of outcomes. The generator does no work itself. `actors.core.turn.steps` defines the steps
and the outcomes. The table lists the legal states and outcomes. Any other outcome is a programming error.

    state        yields                    receives                      next state
    idle         -                         -                             rendering
    rendering    RenderStep(tools_off)     Ready                         generating
                                           TranscriptRefused (judge)     rewriting, or closing
                                           HandedOver, Stopped           closing
    rewriting    RewriteStep               Ready                         rendering
                                           Stopped                       closing
    generating   GenerateStep              Answered, with calls          executing; closing at a limit
                                           Answered, no calls            closing
                                           Answered, empty               rendering or correcting, once; then closing
                                           Answered, call unparsed       correcting, once; then closing
                                           Answered, not forced          correcting, once; then closing
                                           TranscriptRefused (400)       rewriting, or closing
                                           ParameterRefused              rendering, at most thrice a round
                                           MediaRefused                  rewriting, at most thrice a round; or closing
                                           RequestFailed, too long       shrinking, at most thrice a round
                                           RequestFailed, Stopped        closing
                 (with a required format)  Answered, no calls            checking
    shrinking    ShrinkStep(reason)        CompactionEnded, done         rendering
                                           CompactionEnded, not; Stopped closing
    executing    BatchStep(calls)          BatchOutcome                  rendering
                                           BatchOutcome, calls wait      awaiting
                                           Stopped                       closing
    awaiting     AwaitStep(calls)          CallsResolved                 rendering
                                           CallsResolved, approvals      executing
                                           Stopped                       closing
    checking     CheckStep(message)        Checked, valid                closing
                                           Checked, invalid              correcting; closing at a limit
                                           Stopped                       closing
    correcting   InstructStep(instruction) Ready                         rendering
                                           Stopped                       closing
    closing      CloseStep(status)         -                             idle (the generator ends)

The generator of a paused turn can be discarded, because the turn's `AwaitStep` contains its progress: `turn(bounds,
step)` continues the turn.

A turn rewrites a rejected transcript at most twice. If only old reasoning was rejected, the first rewrite omits it; any
other rewrite renders tool calls as text. Notes replace rejected attachments: at first only the attachments that the
provider names, and all of them the third time.

Rounds and corrections are bounded. The model gets one more request, with tools off, for a final text (U-06, U-13) in
three cases: at the last round, after `max_corrections` consecutive rounds in which every call was refused for its
arguments, and when calls repeat without progress. An answer without the required format is corrected up to
`max_corrections` times, in extra rounds. An answer without content (`actors.core.turn.answers`) is retried once:
after tool results with a note for the model, otherwise with the same request. If the next answer has no content either,
the turn is complete if it ran tools, and fails otherwise; the answer's `cut` gives the reason. A model that accepts no
forced tool choice is instructed to call the tool, and is corrected once if it does not.
"""

from collections.abc import Generator
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from actors.core.log.events import OmittedParameter, TurnStatus
from actors.core.schemas.repair import RepairMode
from actors.core.settings.asking import StoredAskSettings, forced_instruction
from actors.core.settings.values import ToolChoice, ToolChoiceSetting
from actors.core.turn.answers import EMPTY, EMPTY_ANSWER_NOTE, unparsed_note
from actors.core.turn.guards import Repeats, parse_repeats
from actors.core.turn.steps import (
    Answered,
    AwaitStep,
    BatchOutcome,
    BatchStep,
    CallsResolved,
    Checked,
    CheckStep,
    CloseStep,
    CompactionEnded,
    GenerateStep,
    HandedOver,
    InstructStep,
    MediaRefused,
    Outcome,
    ParameterRefused,
    Ready,
    RenderStep,
    RequestFailed,
    RewriteStep,
    ShrinkStep,
    Step,
    Stopped,
    TranscriptRefused,
)
from actors.core.values.content import Message
from actors.core.values.progress import Cause, TurnProgress

SHRINKS: Final = 3
"""Maximum number of compactions of the history for one request that is too long."""
PARAMETER_REFUSALS: Final = 3
"""Maximum number of times that a request is sent again without the parameters that the provider rejected."""
MEDIA_REFUSALS: Final = 3
"""Maximum number of times that a request is sent again without the attachments that the provider rejected."""


class Bounds(Struct, frozen=True):
    """The limits of one turn, and its policies for invalid and repeated calls.

    Args:
        max_rounds: Number of requests after which the model must write a final text.
        max_corrections: Maximum number of consecutive rounds in which every call is refused. Also the maximum number of
            corrections of an answer's format.
        has_format: True if the answer has a required format.
        max_tool_corrections, on_repeat: See `actors.core.turn.guards`.
        forced: The forced tool choice, if the model receives it as an instruction because it accepts no such setting;
            None otherwise.
        repair: The rule for interpreting malformed arguments and answers.
    """

    max_rounds: int = 25
    max_corrections: int = 3
    has_format: bool = False
    max_tool_corrections: int = 5
    on_repeat: Repeats = "warn"
    forced: ToolChoiceSetting | None = None
    repair: RepairMode = "unambiguous"

    def with_repeats(self, on_repeat: str | None) -> "Bounds":
        """Return these bounds with another policy for repeated calls. `None` keeps the policy.

        Raises:
            ConfigError: The policy is unknown.
        """
        return self if on_repeat is None else replace(self, on_repeat=parse_repeats(on_repeat))

    def for_ask(self, asked: StoredAskSettings | None) -> "Bounds":
        """Return these bounds with the settings of an ask. An ask with `tool_choice="none"` has one round."""
        if asked is None:
            return self
        return replace(
            self,
            max_rounds=1 if asked.tool_choice == "none" else asked.max_rounds or self.max_rounds,
            max_corrections=self.max_corrections if asked.max_corrections is None else asked.max_corrections,
            has_format=asked.output is not None,
            repair=asked.repair or self.repair,
        )


def turn(bounds: Bounds, paused_at: AwaitStep | None = None, malformed: int = 0) -> Generator[Step, Outcome]:
    """Run one turn, or the rest of a paused turn.

    Send the outcome of each step to the generator. The last step is a `CloseStep`, which has no outcome.

    Args:
        bounds: The limits of the turn.
        paused_at: The step at which the turn paused; None for a new turn.
        malformed: Number of answers that were corrected in earlier turns of the ask.
    """
    rules = _TurnRules(
        bounds, paused_at.so_far if paused_at is not None else TurnProgress(malformed=malformed)
    )
    step: Step = paused_at or rules.render_step()
    while not isinstance(step, CloseStep):
        step = rules.next(step, (yield step))
    yield step


class _TurnRules:
    """The progress of a turn, and the rules that choose the next step."""

    def __init__(self, bounds: Bounds, so_far: TurnProgress) -> None:
        self._bounds = bounds
        self._misses = so_far.misses
        self._tools_off = bounds.max_rounds <= 1
        self._rewritten: Literal["no", "bare", "plain"] = so_far.rewritten
        self._shrinks = self._media = 0
        self._has_called = self._is_lacking = False
        # Reset to None once the model has called the tool or was corrected.
        self._forced: ToolChoiceSetting | None = bounds.forced
        self._refusals, self._omitted = 0, tuple[OmittedParameter, ...]()
        self._end = CloseStep(
            "complete", "", rounds=so_far.rounds, usage=so_far.usage, malformed=so_far.malformed
        )

    def render_step(self) -> RenderStep:
        return RenderStep(self._end.rounds, self._tools_off, omitted=self._omitted)

    def next(self, step: Step, outcome: Outcome) -> Step:  # noqa: C901  a case for each row
        """Return the step after this step and its outcome. Each case is a row of the table in the module docstring."""
        match step, outcome:
            case _, Stopped():
                # the cancellation replaces the cause of an earlier failure
                self._record_outcome(outcome, cause=None)
                return replace(
                    self._close("cancelled", "cancelled", outcome.message), awaited=outcome.awaited
                )
            case RenderStep(), Ready():
                return GenerateStep(self._end.rounds)
            case RenderStep(), HandedOver():
                return self._hand_over(outcome)
            case CheckStep(), Checked():
                return self._after_check(outcome.correction, outcome.error_summary)
            case RewriteStep() | InstructStep(), Ready():
                return self.render_step()
            case RenderStep() | GenerateStep(), TranscriptRefused():
                return self._rewrite(outcome)
            case GenerateStep(), ParameterRefused() if self._refusals < PARAMETER_REFUSALS:
                self._refusals += 1
                self._omitted += outcome.omitted
                self._forced = outcome.forced or self._forced
                return self.render_step()
            case GenerateStep(), MediaRefused():
                return self._replace_media(outcome)
            case GenerateStep(), Answered():
                self._shrinks = 0
                self._media = self._refusals = 0
                self._omitted = ()
                return self._after_answer(outcome)
            case GenerateStep(), RequestFailed(too_long=True) if self._shrinks < SHRINKS:
                self._shrinks += 1
                self._record_outcome(outcome, cause=outcome.cause)
                return ShrinkStep(outcome.reason, is_repeated=self._shrinks > 1)
            case ShrinkStep(reason=why), CompactionEnded(done=done):
                self._record_outcome(outcome)
                failed = f"{why}; {outcome.reason}"
                return self.render_step() if done else self._close("failed", failed, can_fail_over=True)
            case GenerateStep(), RequestFailed():
                self._record_outcome(
                    outcome, visible=self._end.visible or outcome.visible, cause=outcome.cause
                )
                return self._close("failed", outcome.reason, outcome.message, outcome.can_fail_over)
            case BatchStep(approved=True), BatchOutcome(stuck=stuck):
                return self._next_round(stuck)
            case BatchStep(calls=calls), BatchOutcome():
                return self._after_batch(len(calls), outcome)
            case AwaitStep(), CallsResolved(approved=calls, stuck=stuck):
                return BatchStep(calls, approved=True) if calls else self._next_round(stuck)
            case _:
                raise AssertionError(
                    f"{type(outcome).__name__} is not a legal outcome of {type(step).__name__}"
                )

    def _record_outcome(
        self, outcome: Answered | RequestFailed | CompactionEnded | Stopped, **fields: Any
    ) -> None:  # Any: each field of `CloseStep` has its own type
        end = self._end
        message, usage = outcome.message or end.message, end.usage + outcome.usage
        self._end = replace(end, message=message, usage=usage, **fields)

    def _close(
        self, status: TurnStatus, reason: str, unrun: Message | None = None, can_fail_over: bool = False
    ) -> CloseStep:
        """Return the step that ends the turn. The calls in the message `unrun` will not run."""
        calls = unrun.calls if unrun is not None else ()
        return replace(self._end, status=status, reason=reason, unrun=calls, can_fail_over=can_fail_over)

    def _hand_over(self, handed: HandedOver) -> CloseStep:
        """Return the step that ends the turn after a handoff.

        The current round is not counted, because it has sent no request.
        """
        end = replace(
            self._end, rounds=self._end.rounds - 1, handover=None if handed.reason else handed.target
        )
        status: TurnStatus = "failed" if handed.reason else "handed_over"
        return replace(
            end, status=status, reason=handed.reason or f"the model handed over to {handed.target}"
        )

    def _rewrite(self, refused: TranscriptRefused) -> Step:
        """Return the step after a rejected transcript.

        If only old reasoning was rejected, the first rewrite omits the reasoning. Any other rewrite renders tool calls
        as text. If a transcript with tool calls as text is rejected, the turn ends.
        """
        self._end = replace(self._end, cause=refused.cause or self._end.cause)
        if self._rewritten == "plain":
            self._end = replace(self._end, refused=True)
            return self._close("failed", refused.reason, can_fail_over=True)
        self._rewritten = "bare" if refused.reasoning and self._rewritten == "no" else "plain"
        return RewriteStep(refused.reason, plain=self._rewritten == "plain")

    def _replace_media(self, refused: MediaRefused) -> Step:
        """Replace rejected attachments by notes, at most `MEDIA_REFUSALS` times.

        After that, end the turn, so that another backend can serve the ask.
        """
        self._end = replace(self._end, cause=refused.cause)
        if self._media == MEDIA_REFUSALS:
            return self._close("failed", refused.reason, can_fail_over=True)
        self._media += 1
        is_last = self._media == MEDIA_REFUSALS
        media = (*refused.media, *refused.suspects) if is_last or not refused.media else refused.media
        return RewriteStep(refused.reason, plain=False, media=media)

    def _after_answer(self, answered: Answered) -> Step:
        self._record_outcome(answered, cause=None)
        calls = answered.message.calls
        if answered.cut in ("empty", "unparsed"):
            return self._after_empty_answer(answered, is_unparsed=answered.cut == "unparsed")
        self._is_lacking = False
        if calls and not self._tools_off:
            if self._forced == "required" or self._forced in [ToolChoice(call.name) for call in calls]:
                self._forced = None
            return BatchStep(calls)
        if self._forced is not None and not self._tools_off:
            words, self._forced = forced_instruction(self._forced), None
            self._end = replace(self._end, rounds=self._end.rounds + 1)
            return InstructStep(words)
        if not self._bounds.has_format:
            why = "the limit of rounds was reached" if calls else ""
            return self._close("complete", why, answered.message)
        if calls:
            return self._close("failed", "the limit of rounds was reached before an answer", answered.message)
        return CheckStep(answered.message)

    def _after_empty_answer(self, answered: Answered, *, is_unparsed: bool) -> Step:
        """Retry once after an answer without content. After the second such answer in a row, end the turn.

        If a format is required, a tool call written as text counts as an answer with the wrong format.
        """
        note = unparsed_note(tools_off=self._tools_off) if is_unparsed else EMPTY_ANSWER_NOTE
        if is_unparsed and self._bounds.has_format:
            return self._after_check(note, "it is a tool call as text")
        if not self._is_lacking:
            self._is_lacking = True
            self._end = replace(self._end, rounds=self._end.rounds + 1)
            says = is_unparsed or self._has_called
            return InstructStep(note) if says else replace(self.render_step(), repeat_reason=EMPTY)
        if self._bounds.has_format:
            return CheckStep(answered.message)
        if is_unparsed or self._has_called:
            return self._close("complete", "")
        self._end = replace(self._end, cause=Cause("model_fault"))
        return self._close("failed", f"{EMPTY}, twice", can_fail_over=True)

    def _after_check(self, correction: str | None, error_summary: str) -> Step:
        if correction is None:
            return self._close("failed" if error_summary else "complete", error_summary)
        if self._end.malformed >= self._bounds.max_corrections:
            return self._close("failed", f"the answer does not have the required format: {error_summary}")
        self._end = replace(self._end, rounds=self._end.rounds + 1, malformed=self._end.malformed + 1)
        return InstructStep(correction)

    def _after_batch(self, call_count: int, outcome: BatchOutcome) -> Step:
        self._misses = self._misses + 1 if outcome.refused == call_count else 0
        if outcome.external or outcome.approvals:
            end = self._end
            so_far = TurnProgress(end.rounds, end.usage, self._misses, self._rewritten, end.malformed)
            return AwaitStep(outcome.external, outcome.approvals, so_far)
        return self._next_round(outcome.stuck)

    def _next_round(self, is_stuck: bool) -> RenderStep:
        """Begin the next round. Turn the tools off in the last round, and after too many refused or repeated calls."""
        self._has_called = True
        self._end = replace(self._end, rounds=self._end.rounds + 1)
        if (
            is_stuck
            or self._end.rounds >= self._bounds.max_rounds
            or self._misses >= self._bounds.max_corrections
        ):
            self._tools_off = True
        return replace(self.render_step(), follows_batch=True)
