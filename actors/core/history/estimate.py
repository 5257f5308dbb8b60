"""Estimate the tokens of a request before its provider reports them.

In:  the provider's report of the session's last request, and the bytes added since.
Out: a token count for decisions that tolerate an error, never for billing.

The report is exact and includes the system prompt and the tools. The bytes added since count by the ratio that the
binding's earlier reports have shown; without a report, all bytes count that way. An estimate decides when something
happens and never changes the bytes of a request.
"""

from collections.abc import Iterable

from msgspec import Struct

from actors.core.data.record import StoredRecord
from actors.core.history.history import History, packed_messages, shortened_results
from actors.core.ledger import Ledger
from actors.core.values.content import ToolResult
from actors.core.values.identity import Binding, CallId
from actors.core.values.packed import Packed
from actors.core.values.stream import Usage

BYTES = 3.5
"""Bytes per token before the first report. English has about four, code and JSON about three."""
LEAST, MOST = 1.5, 6.0
"""Bounds of a plausible ratio."""
MEDIA = 1500
"""Assumed tokens of an image or document, independent of its bytes."""
ANSWER = 1024
"""Assumed tokens of an answer before the first report."""


def bytes_of(packed: Packed) -> int:
    """Return the bytes of a message's text; media outside the packed bytes do not count."""
    return len(packed if isinstance(packed, bytes) else packed[0])


def _media_count(packed: Packed) -> int:
    return 0 if isinstance(packed, bytes) else len(packed[1])


def size_of(result: ToolResult) -> int:
    """Return the bytes of a result's text."""
    return len(result.rendered_json) - 2


class ReportedRequest(StoredRecord, frozen=True):
    """The usage that a provider reported for the session's last request.

    Args:
        binding: The binding of the request.
        length: Messages of the history that the request contained.
        tokens: Reported input and output tokens. Both numbers are 0 if the history has changed since.
    """

    binding: Binding
    length: int = 0
    tokens: int = 0


class Calibration(Struct):
    """The averages of a binding's reports. Mutable; all sessions of a runtime share one per binding.

    Args:
        ratio: Bytes per token; each report moves it half of the way.
        answer: Tokens of the longest answer, which decays with each report.
    """

    ratio: float = BYTES
    answer: int = ANSWER
    _has_report: bool = False

    def record_report(self, size: int, usage: Usage) -> None:
        """Learn from a provider's report of a request of `size` bytes."""
        if usage.input_tokens:
            seen = min(max(size / usage.input_tokens, LEAST), MOST)
            self.ratio += (seen - self.ratio) / 2
        if usage.output_tokens:
            before = self.answer * 15 // 16 if self._has_report else 0
            self.answer, self._has_report = max(usage.output_tokens, before), True


class Calibrations(dict[Binding, Calibration]):
    """A runtime's calibrations, by binding."""

    def __missing__(self, binding: Binding) -> Calibration:
        made = self[binding] = Calibration()
        return made


def estimate_tokens(
    history: History,
    ledger: Ledger,
    measured: ReportedRequest | None,
    binding: Binding,
    preamble: int,
    ratio: float,
) -> int:
    """Return the estimated tokens of a request with `history`. The cost grows with the messages since the last
    request.

    Args:
        history, ledger: The content of the request.
        measured: The report of the last request; ignored if another binding made it.
        binding: The binding of the request.
        preamble: Bytes that every request contains, such as the system prompt and the tools.
        ratio: Bytes per token.
    """
    is_known = measured is not None and measured.binding == binding and 0 < measured.length <= history.length
    length, tokens = (measured.length, measured.tokens) if measured and is_known else (0, 0)
    before = tokens or preamble / ratio
    return round(before + tokens_of(history, ledger, ratio, length))


def tokens_of(history: History, ledger: Ledger, ratio: float, start: int = 0) -> float:
    """Return the estimated tokens of the messages from `start` on, including the results of their calls."""
    size, media = 0, 0
    for packed in packed_messages(history, start):
        size += bytes_of(packed)
        media += _media_count(packed)
    calls = [call.id for message in history.since(start) for call in message.calls]
    whole = [call_id for call_id in calls if call_id not in shortened_results(history)]
    return size / ratio + media * MEDIA + tokens_of_results(whole, ledger, ratio)


def tokens_of_results(calls: Iterable[CallId], ledger: Ledger, ratio: float) -> float:
    """Return the estimated tokens of the calls' untrimmed results."""
    size, media = 0, 0
    for call_id in calls:
        if (answer := ledger._answer(call_id)) is not None:
            size += len(answer[0])
            media += len(answer[2])
    return size / ratio + media * MEDIA
