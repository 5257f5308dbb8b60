"""Define the events of a provider's answer while it arrives, the same for every dialect.

A decoder (`transcripts.decode`) accepts bytes in chunks of any size and returns these events; its `close()` returns
the model's message. The events are ephemeral: recovery does not use them.
"""

from operator import add
from typing import Literal, TypeAlias

from msgspec.structs import astuple

from actors.core.data.record import StoredRecord
from actors.core.values.identity import CallId

Cut: TypeAlias = Literal["length", "filter", "paused", "fault", "empty", "unparsed", "unknown"]
"""Why an answer is incomplete.

`length`: a token limit or a full context window. `filter`: a content filter or a refusal. `paused`: the provider paused
and continues in another request. `fault`: a provider or model error, or lost parts of a tool call. `empty`: neither
text nor a call. `unparsed`: a tool call as text, which the server did not parse. `unknown`: an unknown finish reason.
"""

LeftOut: TypeAlias = tuple[tuple[str, int], ...]
"""Parts of an answer that its message lacks, as (the provider's name for the part, count)."""


class TextDelta(StoredRecord, frozen=True):
    """A piece of the answer's text."""

    text: str


class ThinkingDelta(StoredRecord, frozen=True):
    """A piece of the model's visible reasoning."""

    text: str


class CallStarted(StoredRecord, frozen=True):
    """The start of a tool call. `call_id` is canonical; the arguments follow."""

    call_id: CallId
    name: str


class ArgumentsDelta(StoredRecord, frozen=True):
    """A piece of a call's argument text, as the model wrote it."""

    call_id: CallId
    text: str


class CallDone(StoredRecord, frozen=True):
    """The end of a call: its argument text is complete."""

    call_id: CallId


class Usage(StoredRecord, frozen=True):
    """Tokens of one round, or summed over rounds. Cached tokens are included in `input_tokens`.

    Args:
        input_tokens: Tokens of the request, cached or not.
        output_tokens: Tokens of the answer, reasoning included.
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
    """The provider's finish reason, verbatim. Nothing depends on it: tool calls are recognised by their blocks."""

    reason: str


StreamEvent: TypeAlias = TextDelta | ThinkingDelta | CallStarted | ArgumentsDelta | CallDone | Usage | Finish
