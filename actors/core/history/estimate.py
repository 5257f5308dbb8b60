"""Estimate the tokens of a request before its provider reports them.

In:  the provider's report of the session's last request, and the bytes added since.
Out: a token count for decisions that tolerate an error, never for billing.

The report is exact and includes the system prompt and the tools. The bytes added since the report are divided by the
ratio of bytes per token in the binding's earlier reports. Without a report, all bytes of the request are converted in
this way. An estimate only decides when an action happens, such as compaction, and never changes the bytes of a request.
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
"""Assumed bytes per token before the first report. English text has about four, code and JSON about three."""
LEAST, MOST = 1.5, 6.0
"""Bounds of a plausible number of bytes per token."""
MEDIA = 1500
"""Assumed tokens of an image or document, whatever its size in bytes."""
ANSWER = 1024
"""Assumed tokens of an answer before the first report."""


def text_bytes(packed: Packed) -> int:
    """Return the size of a message without its large media, in bytes."""
    return len(packed if isinstance(packed, bytes) else packed[0])


def _media_count(packed: Packed) -> int:
    return 0 if isinstance(packed, bytes) else len(packed[1])


def result_bytes(result: ToolResult) -> int:
    """Return the size of a result's text in a transcript, in bytes."""
    return len(result.rendered_json) - 2


class ReportedRequest(StoredRecord, frozen=True):
    """The tokens that a provider reported for the session's last request.

    Args:
        binding: The binding of the request.
        length: Number of history messages that the request and its answer cover.
        tokens: Reported input tokens. `length` and `tokens` are 0 if the history has been shortened since.
    """

    binding: Binding
    length: int = 0
    tokens: int = 0


class Calibration(Struct):
    """Averages over the token counts that the provider reported for one binding.

    A calibration is mutable, because all sessions of a runtime share it.

    Args:
        ratio: Bytes per token. Each report moves this ratio half of the way to the reported ratio.
        answer: Tokens of the longest answer. This maximum decays with each report.
    """

    ratio: float = BYTES
    answer: int = ANSWER
    _has_report: bool = False

    def record_report(self, size: int, usage: Usage) -> None:
        """Update the averages with a provider's report about a request of `size` bytes."""
        if usage.input_tokens:
            seen = min(max(size / usage.input_tokens, LEAST), MOST)
            self.ratio += (seen - self.ratio) / 2
        if usage.output_tokens:
            before = self.answer * 15 // 16 if self._has_report else 0
            self.answer, self._has_report = max(usage.output_tokens, before), True


class Calibrations(dict[Binding, Calibration]):
    """A runtime's calibrations, by binding. A missing calibration is created when it is first read."""

    def __missing__(self, binding: Binding) -> Calibration:
        calibration = self[binding] = Calibration()
        return calibration


def estimate_tokens(
    history: History,
    ledger: Ledger,
    last_report: ReportedRequest | None,
    binding: Binding,
    preamble: int,
    ratio: float,
) -> int:
    """Return the estimated tokens of a request with `history`.

    The cost of the estimate grows with the number of messages since the last request.

    Args:
        history, ledger: The content of the request.
        last_report: The report of the last request; ignored if the request had another binding.
        binding: The binding of the request.
        preamble: Bytes that every request contains, such as the system prompt and the tools.
        ratio: Bytes per token.
    """
    is_known = (
        last_report is not None
        and last_report.binding == binding
        and 0 < last_report.length <= history.length
    )
    length, tokens = (last_report.length, last_report.tokens) if last_report and is_known else (0, 0)
    known_tokens = tokens or preamble / ratio
    return round(known_tokens + message_tokens(history, ledger, ratio, length))


def message_tokens(history: History, ledger: Ledger, ratio: float, start: int = 0) -> float:
    """Return the estimated tokens of the messages from index `start` on and of their calls' results."""
    size, media = 0, 0
    for packed in packed_messages(history, start):
        size += text_bytes(packed)
        media += _media_count(packed)
    calls = [call.id for message in history.since(start) for call in message.calls]
    untrimmed = [call_id for call_id in calls if call_id not in shortened_results(history)]
    return size / ratio + media * MEDIA + result_tokens(untrimmed, ledger, ratio)


def result_tokens(calls: Iterable[CallId], ledger: Ledger, ratio: float) -> float:
    """Return the estimated tokens of these calls' results, before any of them is shortened."""
    size, media = 0, 0
    for call_id in calls:
        if (answer := ledger._answer(call_id)) is not None:
            size += len(answer[0])
            media += len(answer[2])
    return size / ratio + media * MEDIA
