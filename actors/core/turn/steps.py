"""Define the steps that a turn yields and the outcomes that it receives.

The table in `actors.core.turn.turn` shows the order of the steps and the possible outcomes of each step.
"""

from typing import TypeAlias

from msgspec import Struct

from actors.core.log.events import OmittedParameter, TurnStatus
from actors.core.settings.values import ToolChoiceSetting
from actors.core.values.content import Message, ToolCall
from actors.core.values.progress import Cause, TurnProgress
from actors.core.values.stream import Cut, Usage


class RenderStep(Struct, frozen=True):
    """Render the history for the turn's binding.

    Args:
        round: The number of the round.
        tools_off: True to declare the tools but forbid calls, so that the model writes a final text.
        repeat_reason: The reason for sending the previous request again; empty for a new request.
        omitted: Parameters to omit, because the provider rejected them.
        follows_batch: True if the round follows a batch. If a result of the batch is a handoff, it takes effect before
            this round.
    """

    round: int
    tools_off: bool = False
    repeat_reason: str = ""
    omitted: tuple[OmittedParameter, ...] = ()
    follows_batch: bool = False


class RewriteStep(Struct, frozen=True):
    """Render the transcript again from the start (begin an epoch), because it was rejected.

    Args:
        reason: The error message of the rejection.
        plain: True to render tool calls as text; False to omit old reasoning.
        media: Names of attachments to replace by notes. If there are any, `plain` is ignored.
    """

    reason: str
    plain: bool = True
    media: tuple[str, ...] = ()


class GenerateStep(Struct, frozen=True):
    """Send the rendered request and read the answer."""

    round: int


class ShrinkStep(Struct, frozen=True):
    """Compact the history, because the request was too long.

    Args:
        reason: The error message of the rejection.
        is_repeated: True if the history was already compacted for this request.
    """

    reason: str
    is_repeated: bool = False


class BatchStep(Struct, frozen=True):
    """Run these calls concurrently and record their completions.

    `approved` is True if the calls waited for approval and were approved.
    """

    calls: tuple[ToolCall, ...]
    approved: bool = False


class AwaitStep(Struct, frozen=True):
    """Wait for the results of the calls in `external`, and for decisions about the calls in `approvals`."""

    external: tuple[ToolCall, ...] = ()
    approvals: tuple[ToolCall, ...] = ()
    so_far: TurnProgress = TurnProgress()

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """All calls for which the turn waits."""
        return (*self.external, *self.approvals)


class CheckStep(Struct, frozen=True):
    """Validate an answer against the required format."""

    message: Message


class InstructStep(Struct, frozen=True):
    """Send the model a correction, because its answer has the wrong format, no content, or no tool call."""

    instruction: str


class CloseStep(Struct, frozen=True):
    """Close the open calls and end the turn.

    Args:
        status: The outcome of the turn.
        reason: The reason for the outcome; empty for a complete turn.
        unrun: Calls that will not run.
        awaited: Pending calls to close.
        message: The last message of the model; None if there is none.
        rounds: The number of the last round.
        usage: The usage of the turn.
        visible: True if the caller has received part of a failed answer.
        can_fail_over: True if another backend may continue the ask.
        refused: True if the transcript was still rejected for its structure after every possible rewrite.
        cause: The cause of a failure.
        handover: The target to which the model handed the ask; None without a handoff.
        malformed: Number of answers of the ask that had the wrong format and were corrected.
    """

    status: TurnStatus
    reason: str
    unrun: tuple[ToolCall, ...] = ()
    awaited: tuple[ToolCall, ...] = ()
    message: Message | None = None
    rounds: int = 0
    usage: Usage = Usage()
    visible: bool = False
    can_fail_over: bool = False
    refused: bool = False
    cause: Cause | None = None
    handover: str | None = None
    malformed: int = 0


ExecutableStep: TypeAlias = (
    RenderStep | RewriteStep | GenerateStep | ShrinkStep | BatchStep | CheckStep | InstructStep
)
"""A step that the turn driver carries out before it returns to the turn."""
Step: TypeAlias = ExecutableStep | AwaitStep | CloseStep


class Ready(Struct, frozen=True):
    """The step succeeded."""


class HandedOver(Struct, frozen=True):
    """A call of the last batch handed the ask over to `target`. If the handover failed, `reason` explains why."""

    target: str
    reason: str = ""


class TranscriptRefused(Struct, frozen=True):
    """The judge or the provider rejected the transcript.

    `reasoning` is True if only replayed reasoning was rejected.
    """

    reason: str
    reasoning: bool = False
    cause: Cause | None = None


class ParameterRefused(Struct, frozen=True):
    """The provider rejected optional parameters, so the request can be sent without them.

    `forced` is the rejected tool choice, which the next request replaces by an instruction; None if no tool choice was
    rejected.
    """

    omitted: tuple[OmittedParameter, ...]
    forced: ToolChoiceSetting | None = None


class MediaRefused(Struct, frozen=True):
    """The provider rejected attachments. An attachment is identified by its name in the log (`render.media_name`).

    Args:
        reason: The error message of the rejection.
        media: The attachments that the provider named.
        suspects: Further attachments that may be the cause: those that no answered request has contained or, if there
            are none, all attachments of the request.
        cause: The cause of the rejection.
    """

    reason: str
    media: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    cause: Cause | None = None


class Answered(Struct, frozen=True):
    """The model's complete message arrived. `cut` is the reason why the answer is incomplete, or None."""

    message: Message
    usage: Usage
    cut: Cut | None = None


class RequestFailed(Struct, frozen=True):
    """The request failed after all retries. Fields without a description are as in `CloseStep`.

    Args:
        message: The usable part of the answer; None if there is none.
        too_long: True if the request would fit after compaction.
    """

    reason: str
    can_fail_over: bool = True
    visible: bool = False
    message: Message | None = None
    usage: Usage = Usage()
    cause: Cause | None = None
    too_long: bool = False


class CompactionEnded(Struct, frozen=True):
    """The compaction of the history ended.

    If `done` is True, the history was compacted. Otherwise, `reason` says why. `usage` contains the tokens of the
    request for a summary.
    """

    done: bool
    reason: str = ""
    usage: Usage = Usage()
    message: None = None


class BatchOutcome(Struct, frozen=True):
    """The batch has ended: every call is closed, except the calls that wait for the caller.

    Args:
        refused: Number of calls with an invalid name or invalid arguments.
        external, approvals: The waiting calls, as in `AwaitStep`.
        stuck: True if calls were repeated so often without progress that the tools are turned off.
    """

    refused: int = 0
    external: tuple[ToolCall, ...] = ()
    approvals: tuple[ToolCall, ...] = ()
    stuck: bool = False


class CallsResolved(Struct, frozen=True):
    """No call waits for the caller any more.

    `approved` contains the calls to run now. `stuck` is as in `BatchOutcome`.
    """

    approved: tuple[ToolCall, ...] = ()
    stuck: bool = False


class Checked(Struct, frozen=True):
    """The answer was validated.

    Args:
        correction: The message that asks the model to correct the format; None for a valid answer, or if the answer
            cannot be corrected.
        error_summary: A summary of the errors for the caller; empty for a valid answer. Without a `correction`, the
            turn fails with this summary.
    """

    correction: str | None = None
    error_summary: str = ""


class Stopped(Struct, frozen=True):
    """The turn was cancelled during this step.

    Args:
        message, usage: The partial answer and its usage, if an answer was arriving.
        awaited: The calls for which the turn was waiting.
    """

    message: Message | None = None
    usage: Usage = Usage()
    awaited: tuple[ToolCall, ...] = ()


Refused: TypeAlias = TranscriptRefused | ParameterRefused | MediaRefused
Outcome: TypeAlias = (
    Ready
    | HandedOver
    | Refused
    | Answered
    | RequestFailed
    | CompactionEnded
    | BatchOutcome
    | CallsResolved
    | Checked
    | Stopped
)
