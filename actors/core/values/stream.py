"""What comes out of a provider's answer while it arrives, the same for every dialect.

A decoder (`transcripts.decode`) is fed bytes cut anywhere and gives these events; `close()` gives the model's
message. An event here is ephemeral: nothing is rebuilt from it.
"""

from operator import add
from typing import Literal, TypeAlias

from msgspec.structs import astuple

from actors.core.data.form import Form
from actors.core.values.identity import CallId

Cut: TypeAlias = Literal["length", "filter", "paused", "fault", "empty", "unparsed", "unknown"]
"""Why an answer is not whole: a limit of tokens or a full window; a filter or a refusal; the provider stopped and would
go on if asked again; it met a fault of its own or of the model's, or parts of a tool call went astray; it has neither
text nor a call; it holds a tool call as text, which the host did not parse; it stopped for a reason that nobody knows.
"""

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
        return Usage(*map(add, astuple(self), astuple(other)))


class Finish(Form, frozen=True):
    """The provider said why it stopped, in its own word. Nothing is decided by it: calls are calls."""

    reason: str


StreamEvent: TypeAlias = TextDelta | ThinkingDelta | CallStarted | ArgumentsDelta | CallDone | Usage | Finish
