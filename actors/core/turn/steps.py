"""Define the steps that a turn yields and the outcomes that it receives.

`actors.core.turn.turn` has the table of the steps' order and of the outcomes that each step can have.
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
        tools_off: Declare the tools but forbid calls, to get a final text.
        again: Why the previous request is sent again; empty if it is not.
        omitted: Parameters to leave out, because the provider refused them.
        follows_batch: The round follows a batch, so a handoff among its results takes effect.
    """

    round: int
    tools_off: bool = False
    again: str = ""
    omitted: tuple[OmittedParameter, ...] = ()
    follows_batch: bool = False


class RewriteStep(Struct, frozen=True):
    """Begin an epoch, because the transcript was refused.

    Args:
        why: The refusal.
        plain: Use the conservative render; otherwise leave out old reasoning.
        media: Attachments to replace by notes. If there are any, `plain` is ignored.
    """

    why: str
    plain: bool = True
    media: tuple[str, ...] = ()


class GenerateStep(Struct, frozen=True):
    """Send the rendered request and read the answer."""

    round: int


class ShrinkStep(Struct, frozen=True):
    """Compact the history, because the request was too long. `again`: it was compacted before for this request."""

    why: str
    again: bool = False


class BatchStep(Struct, frozen=True):
    """Run these calls concurrently and record their completions. `approved`: they waited, and were approved."""

    calls: tuple[ToolCall, ...]
    approved: bool = False


class AwaitStep(Struct, frozen=True):
    """Wait for the caller: for the results of `external` calls and for decisions about `approvals`."""

    external: tuple[ToolCall, ...] = ()
    approvals: tuple[ToolCall, ...] = ()
    so_far: TurnProgress = TurnProgress()

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """All pending calls."""
        return (*self.external, *self.approvals)


class CheckStep(Struct, frozen=True):
    """Validate an answer against the required format."""

    message: Message


class InstructStep(Struct, frozen=True):
    """Send the model a correction: its answer has the wrong format, no content, or no tool call."""

    words: str


class CloseStep(Struct, frozen=True):
    """Close the open calls and end the turn.

    Args:
        status: How the turn ends.
        why: The reason; empty for a complete turn.
        unrun: Calls that will not run.
        awaited: Pending calls to close.
        message: The last message of the model.
        rounds: The number of the last round.
        usage: The usage of the turn.
        visible: A part of a failed answer reached the caller.
        elsewhere: Another backend may continue the ask.
        refused: The transcript was refused for its structure after every rewrite.
        cause: The cause of a failure.
        handover: The target that the model handed the ask to.
        malformed: How many answers of the ask had the wrong format and were corrected.
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
    """The step succeeded."""


class HandedOver(Struct, frozen=True):
    """A call of the last batch handed the ask to `target`, or failed to do so for the reason `why`."""

    target: str
    why: str = ""


class TranscriptRefused(Struct, frozen=True):
    """The judge or the provider refused the transcript. `reasoning`: only because of replayed reasoning."""

    why: str
    reasoning: bool = False
    cause: Cause | None = None


class ParameterRefused(Struct, frozen=True):
    """The provider refused optional parameters, so the request can be sent without them.

    `forced`: the refused tool choice, which an instruction replaces.
    """

    omitted: tuple[OmittedParameter, ...]
    forced: ToolChoiceSetting | None = None


class MediaRefused(Struct, frozen=True):
    """The provider refused attachments, which are identified by their names in the log.

    Args:
        why: The refusal.
        media: The attachments that the provider names.
        others: Further suspects: the attachments that no answered request contained, or all.
        cause: The cause of the refusal.
    """

    why: str
    media: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    cause: Cause | None = None


class Answered(Struct, frozen=True):
    """The complete message of the model. `cut`: why the answer is incomplete; None if it is complete."""

    message: Message
    usage: Usage
    cut: Cut | None = None


class RequestFailed(Struct, frozen=True):
    """The request failed after all retries. The other fields are as in `CloseStep`.

    Args:
        message: The part of the answer that is kept, if any.
        too_long: The request would fit after compaction.
    """

    why: str
    elsewhere: bool = True
    visible: bool = False
    message: Message | None = None
    usage: Usage = Usage()
    cause: Cause | None = None
    too_long: bool = False


class CompactionEnded(Struct, frozen=True):
    """The history was compacted if `done`; otherwise `why` is the reason. `usage`: that of the summary request."""

    done: bool
    why: str = ""
    usage: Usage = Usage()
    message: None = None


class BatchOutcome(Struct, frozen=True):
    """Every call of the batch is closed, except those that wait for the caller.

    Args:
        refused: How many calls had an invalid name or invalid arguments.
        external, approvals: The waiting calls, as in `AwaitStep`.
        stuck: Calls repeat without progress, so the tools are turned off.
    """

    refused: int = 0
    external: tuple[ToolCall, ...] = ()
    approvals: tuple[ToolCall, ...] = ()
    stuck: bool = False


class CallsResolved(Struct, frozen=True):
    """No call waits for the caller any more. `approved`: calls to run now. `stuck`: as in `BatchOutcome`."""

    approved: tuple[ToolCall, ...] = ()
    stuck: bool = False


class Checked(Struct, frozen=True):
    """The answer was validated.

    Args:
        correction: The message that asks the model to correct the format; None if no correction is needed or possible.
        lacks: A summary of the errors for the caller. Without a `correction`, the turn fails with it.
    """

    correction: str | None = None
    lacks: str = ""


class Stopped(Struct, frozen=True):
    """The turn was cancelled during this step.

    Args:
        message, usage: The partial answer, if one was arriving.
        awaited: The calls that wait for the caller.
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
