"""What comes out of a provider's answer while it arrives, the same for every dialect.

A decoder (`actors.decode`) is fed bytes cut anywhere and gives these events; `close()` gives the model's
message. An event here is ephemeral: nothing is rebuilt from it.
"""

from collections.abc import Mapping
from typing import Literal, Protocol, TypeAlias

from actors.core.content import Message
from actors.core.form import Form
from actors.core.identity import CallId

Cut: TypeAlias = Literal["length", "filter", "paused", "fault"]
"""Why an answer is not whole: a limit of tokens or a full window; a filter or a refusal; the provider stopped and would
go on if asked again; it met a fault of its own or of the model's."""

LeftOut: TypeAlias = tuple[tuple[str, int], ...]
"""What an answer held and its message does not, as (the provider's word for it, how many)."""


class TextDelta(Form, frozen=True):
    """A piece of the answer's text."""

    text: str


class ThinkingDelta(Form, frozen=True):
    """A piece of the model's visible reasoning."""

    text: str


class CallStarted(Form, frozen=True):
    """The model began a tool call. `call_id` is canonical; the arguments follow."""

    call_id: CallId
    name: str


class ArgumentsDelta(Form, frozen=True):
    """A piece of a call's argument text, as the model writes it."""

    call_id: CallId
    text: str


class CallDone(Form, frozen=True):
    """A call is complete: its whole argument text has arrived."""

    call_id: CallId


class Usage(Form, frozen=True):
    """Tokens of one round, or summed over rounds. Cached figures are parts of `input_tokens`.

    Args:
        input_tokens: Tokens of the request, whatever was cached.
        output_tokens: Tokens of the answer, reasoning included.
        cache_read_tokens: Of the input, what came from the provider's cache.
        cache_write_tokens: Of the input, what was written to it.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        """Return the sum, figure by figure."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )


class Finish(Form, frozen=True):
    """The provider said why it stopped, in its own word. Nothing is decided by it: calls are calls."""

    reason: str


StreamEvent: TypeAlias = TextDelta | ThinkingDelta | CallStarted | ArgumentsDelta | CallDone | Usage | Finish


class Decoder(Protocol):
    """A sans-io decoder of one answer. Feed it bytes, read events, close it once."""

    usage: Usage
    finish_reason: str | None
    late: list[StreamEvent]
    """What became known only by `close`."""
    withheld: tuple[str, ...]
    """Why the provider hid parts of the request from its model, a reason for each."""
    left_out: Mapping[str, int]
    """What the answer held that the message does not, by the provider's word for it, and how many: logprobs, what a
    search was grounded in, calls that were cut (`cut_call`)."""

    @property
    def cut(self) -> Cut | None:
        """Why the answer is not whole, as far as its reason to stop says; None if it says nothing of the kind."""

    @property
    def ended(self) -> bool:
        """Whether the dialect's end marker was read: what follows it is no part of the answer."""

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        """Take bytes cut anywhere and return what became known. What follows the end is ignored.

        `Usage` events carry the figures so far: the last one counts, they are not to be summed.

        Raises:
            StreamFault: The provider reported an error inside the answer, the bytes are no stream of this dialect, or
                more than an answer may have. Deltas of the same chunk are lost; what they said is in `partial_message`.
        """

    def close(self) -> Message:
        """Return the model's message. Events of the last bytes are in `late`.

        Raises:
            StreamFault: The answer ended without the dialect's end marker, or for a reason that leaves no answer,
                or had failed before.
        """

    def partial_message(self) -> Message:
        """Return what may be kept of an answer that broke off: text, sealed thinking, finished calls.

        A call or a thinking block counts as finished when the provider said so. Text is kept as far as it came.
        """
