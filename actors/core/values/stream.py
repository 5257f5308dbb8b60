"""Define the events that report an answer while it arrives. They are the same for every provider.

A decoder (`transcripts.decode`) accepts bytes in chunks of any size and returns these events. The decoder's `close()`
returns the model's message. The events are ephemeral: recovery does not use them.
"""

from operator import add
from typing import Literal, TypeAlias

from msgspec.structs import astuple

from actors.core.data.record import StoredRecord
from actors.core.values.identity import CallId

Cut: TypeAlias = Literal["length", "filter", "paused", "fault", "empty", "unparsed", "unknown"]
"""The reason why an answer is incomplete.

`length`: a token limit or a full context window. `filter`: a content filter or a refusal. `paused`: the provider paused
and continues in another request. `fault`: a provider or model error, or lost parts of a tool call. `empty`: neither
text nor a call. `unparsed`: a tool call as text, which the server did not parse. `unknown`: an unknown finish reason.
"""

LeftOut: TypeAlias = tuple[tuple[str, int], ...]
"""Content of an answer that its message lacks, as (the provider's name for the kind of content, count)."""


class TextDelta(StoredRecord, frozen=True):
    """A fragment of the answer's text.

    Args:
        text: The fragment. The fragments of an answer, joined, are the complete text.
    """

    text: str


class ThinkingDelta(StoredRecord, frozen=True):
    """A fragment of the model's visible reasoning.

    Args:
        text: The fragment. The fragments of an answer, joined, are the complete visible reasoning.
    """

    text: str


class CallStarted(StoredRecord, frozen=True):
    """The start of a tool call. The arguments follow in `ArgumentsDelta` events.

    Args:
        call_id: The canonical id of the call.
        name: The tool's name, as the model wrote it.
    """

    call_id: CallId
    name: str


class ArgumentsDelta(StoredRecord, frozen=True):
    """A fragment of a call's arguments, as the model wrote them.

    Args:
        call_id: The canonical id of the call, as in `CallStarted`.
        text: The fragment, which is usually not valid JSON by itself.
    """

    call_id: CallId
    text: str


class CallDone(StoredRecord, frozen=True):
    """The end of a tool call: all of its arguments have arrived.

    Args:
        call_id: The canonical id of the call, as in `CallStarted`.
    """

    call_id: CallId


class Usage(StoredRecord, frozen=True):
    """The tokens of one round, or the sum over several rounds.

    Args:
        input_tokens: Tokens of the request, including cached tokens.
        output_tokens: Tokens of the answer, including reasoning.
        cache_read_tokens: Input tokens read from the provider's cache.
        cache_write_tokens: Input tokens written to the provider's cache.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*map(add, astuple(self), astuple(other)))


class Finish(StoredRecord, frozen=True):
    """The end of the answer.

    Args:
        reason: The provider's finish reason, verbatim. No decision depends on it; tool calls are recognised by their
            blocks.
    """

    reason: str


StreamEvent: TypeAlias = TextDelta | ThinkingDelta | CallStarted | ArgumentsDelta | CallDone | Usage | Finish
"""An event that an `AnswerDecoder` returns."""
