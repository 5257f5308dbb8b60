"""Estimate: how many tokens a request will have, before its provider says it.

In:  what the provider reported of the session's last request, and the bytes that have come since.
Out: a number of tokens, for decisions that may be a little wrong, and for nothing that is paid.

The report counts whatever goes with the messages (system prompt, tools) and is right; what is new is counted in bytes,
by the ratio that the report itself shows. Where there is no report, all is.
"""

from dataclasses import dataclass

from actors.core.chunked import from_index
from actors.core.content import ToolResult
from actors.core.history import History
from actors.core.ledger import Ledger
from actors.core.packed import Packed
from actors.core.stream import Usage

BYTES = 3.5
"""Bytes of a token, where nobody has said. English has about four, code and JSON about three."""
LEAST, MOST = 1.5, 6.0
"""Between these a ratio is believed."""
MEDIA = 1500
"""Tokens that an image or a page of a document is taken to have, whatever its bytes."""


def bytes_of(packed: Packed) -> int:
    """Return how many bytes of a message are words; media beside them are no words."""
    return len(packed if isinstance(packed, bytes) else packed[0])


def _media_of(packed: Packed) -> int:
    return 0 if isinstance(packed, bytes) else len(packed[1])


def size_of(result: ToolResult) -> int:
    """Return how many bytes the words of a result have."""
    return len(result.rendered_json) - 2


@dataclass(slots=True)
class Scale:
    """What a session's last request measured. Mutable, and forgotten with the actors: the next request measures anew.

    `length` is that of the history it carried, `tokens` those of it, `ratio` the bytes of a token; `member` was asked.
    """

    length: int = 0
    tokens: int = 0
    ratio: float = BYTES
    member: str = ""

    def measured(self, length: int, size: int, usage: Usage) -> None:
        """Take what a provider reported of a request that carried `length` messages, as `size` bytes of a lane."""
        if usage.input_tokens:
            self.ratio = min(max(size / usage.input_tokens, LEAST), MOST)
            self.length, self.tokens = length, usage.input_tokens

    def forget(self) -> None:
        """Take note that the history is another one: what was measured of it says nothing any more."""
        self.length = self.tokens = 0

    def estimated(self, history: History, ledger: Ledger) -> int:
        """Return the tokens that a request with `history` will have. Costs what is new since the last request."""
        known = self.length if self.length <= history.length else 0
        before = self.tokens if known else 0
        return before + round(_tokens(history, ledger, known, self.ratio))


def _tokens(history: History, ledger: Ledger, start: int, ratio: float) -> float:
    """Return the tokens of the messages from `start` on, and of what their calls came to."""
    size, media = 0, 0
    for packed in from_index(history.packed, start):
        size += bytes_of(packed)
        media += _media_of(packed)
    for message in history.since(start):
        for call in message.calls:
            if call.id not in history.short and (answer := ledger.answer(call.id)) is not None:
                size += len(answer[0])
                media += len(answer[2])
    return size / ratio + media * MEDIA
