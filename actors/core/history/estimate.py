"""Estimate: how many tokens a request will have, before its provider says it.

In:  what the provider reported of the session's last request, and the bytes that have come since.
Out: a number of tokens, for decisions that may be a little wrong, and for nothing that is paid.

The report counts whatever goes with the messages (system prompt, tools) and is right; what is new is counted in bytes,
by the ratio that the reports of that binding have shown. Where there is no report, all is. No request has other bytes
for it: an estimate decides when something is done, and never how it is said.
"""

from collections.abc import Iterable

from msgspec import Struct

from actors.core.data.chunked import from_index
from actors.core.data.form import Form
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.values.content import ToolResult
from actors.core.values.identity import Binding, CallId
from actors.core.values.packed import Packed
from actors.core.values.stream import Usage

BYTES = 3.5
"""Bytes of a token, where nobody has said. English has about four, code and JSON about three."""
LEAST, MOST = 1.5, 6.0
"""Between these a ratio is believed."""
MEDIA = 1500
"""Tokens that an image or a page of a document is taken to have, whatever its bytes."""
ANSWER = 1024
"""Tokens of an answer, where none was heard."""


def bytes_of(packed: Packed) -> int:
    """Return how many bytes of a message are words; media beside them are no words."""
    return len(packed if isinstance(packed, bytes) else packed[0])


def _media_of(packed: Packed) -> int:
    return 0 if isinstance(packed, bytes) else len(packed[1])


def size_of(result: ToolResult) -> int:
    """Return how many bytes the words of a result have."""
    return len(result.rendered_json) - 2


class ReportedRequest(Form, frozen=True):
    """What a session's last answer reported of its request: so many messages of the history had so many tokens.

    Where the history has changed since, both are 0, and `binding` still says who answered.
    """

    binding: Binding
    length: int = 0
    tokens: int = 0


class Calibration(Struct):
    """What a binding's reports have shown. Mutable; a runtime has one for each, so its sessions learn from each other.

    Args:
        ratio: Bytes of a token, moved half of the way by each report.
        answer: Tokens of an answer: those of the longest, which is forgotten bit by bit.
    """

    ratio: float = BYTES
    answer: int = ANSWER
    _is_told: bool = False

    def reported(self, size: int, usage: Usage) -> None:
        """Take what a provider reported of a request with so many bytes."""
        if usage.input_tokens:
            seen = min(max(size / usage.input_tokens, LEAST), MOST)
            self.ratio += (seen - self.ratio) / 2
        if usage.output_tokens:
            before = self.answer * 15 // 16 if self._is_told else 0
            self.answer, self._is_told = max(usage.output_tokens, before), True


class Calibrations(dict[Binding, Calibration]):
    """Those of a runtime, by binding."""

    def __missing__(self, binding: Binding) -> Calibration:
        made = self[binding] = Calibration()
        return made


def estimated(
    history: History,
    ledger: Ledger,
    measured: ReportedRequest | None,
    binding: Binding,
    preamble: int,
    ratio: float,
) -> int:
    """Return the tokens that a request with `history` will have. Costs what is new since the last one.

    Args:
        history, ledger: What it will say.
        measured: What the last one was reported to have; it counts where the same binding is asked.
        binding: Who is asked.
        preamble: Bytes of what goes with every request.
        ratio: Bytes of a token.
    """
    is_known = measured is not None and measured.binding == binding and 0 < measured.length <= history.length
    length, tokens = (measured.length, measured.tokens) if measured and is_known else (0, 0)
    before = tokens or preamble / ratio
    return round(before + tokens_of(history, ledger, ratio, length))


def tokens_of(history: History, ledger: Ledger, ratio: float, start: int = 0) -> float:
    """Return the tokens of the messages from `start` on, and of what their calls came to."""
    size, media = 0, 0
    for packed in from_index(history.packed, start):
        size += bytes_of(packed)
        media += _media_of(packed)
    calls = [call.id for message in history.since(start) for call in message.calls]
    whole = [call_id for call_id in calls if call_id not in history.short]
    return size / ratio + media * MEDIA + tokens_of_results(whole, ledger, ratio)


def tokens_of_results(calls: Iterable[CallId], ledger: Ledger, ratio: float) -> float:
    """Return the tokens of what calls came to, where the whole of it is shown."""
    size, media = 0, 0
    for call_id in calls:
        if (answer := ledger.answer(call_id)) is not None:
            size += len(answer[0])
            media += len(answer[2])
    return size / ratio + media * MEDIA
