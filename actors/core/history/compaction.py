"""Decide how to shorten a history: pure rules over history and ledger, for the session's compaction.

There are two ways to shorten a history, and neither edits messages in place. The cheap way replaces results by
placeholders (`ResultsTrimmed`): first long results and the results of calls that were repeated later, then old results
too if that is not enough. The expensive way replaces turns by a summary that a backend writes (`Compacted`). In both
cases, every provider's transcript is then rendered again from the start. The ledger keeps every result.

    kept verbatim      the last turns (`Compaction.keep_turns`), and always the turn in flight
    boundary           only where a turn begins, so never between a call and its result
    carried over       the user's newest attachments, in the message with the summary
    listed             every real result that the summary replaces, by call id, unless the summary names it

The late result of a summarised call still appears before the next user message (`render.choose`).

The tokens of a request are estimated before its provider reports them, for decisions that tolerate an error, never for
billing. The provider's report of the session's last request is exact and includes the system prompt and the tools. The
bytes added since the report are divided by the ratio of bytes per token in the binding's earlier reports. Without a
report, all bytes of the request are converted in this way. An estimate only decides when an action happens, such as
compaction, and never changes the bytes of a request.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

from actors.core.data.record import StoredRecord
from actors.core.history.history import History, is_removed, packed_messages, shortened_results
from actors.core.ledger import Ledger
from actors.core.log.call_events import ToolCallRecord
from actors.core.log.events import TrimReason
from actors.core.settings.values import Range, is_number, text_range, whole_range, word_range
from actors.core.values.content import Media, Message, Text, ToolResult
from actors.core.values.identity import RUNTIME, Binding, CallId, mint, number_of
from actors.core.values.packed import Packed, pack
from actors.core.values.stream import Usage

DEFAULT_RATIO = 3.5
"""Assumed bytes per token before the first report. English text has about four, code and JSON about three."""
MIN_RATIO, MAX_RATIO = 1.5, 6.0
"""The smallest and the largest plausible number of bytes per token."""
MEDIA_TOKENS = 1500
"""Assumed tokens of an image or document, whatever its size in bytes."""
DEFAULT_ANSWER_TOKENS = 1024
"""Assumed tokens of an answer before the first report."""
MIN_TRIM_BYTES: Final = 256
"""Size in bytes from which a result may be replaced by a placeholder; a smaller result would save too little."""
TARGET_SHARE: Final = 0.5
"""Target size after compaction, as a share of the threshold. It is well below 1, so that the next turn need not compact
the history again."""
MIN_SAVING: Final = 0.25
"""Minimum saving, as a share of the threshold, for compaction before a turn. Without this minimum, each turn would
summarise the previous turn if the system prompt and the tools alone come near the threshold."""
SHORT_SUMMARY_BYTES: Final = 1024
"""Size in bytes up to which a summary is accepted even if it is longer than the messages that it replaces."""
Windows: TypeAlias = Literal["configured", "listed"]


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
    """The averages of the token counts reported for one binding, for estimates.

    The object is mutable, because all sessions of a runtime share it.

    Args:
        ratio: Bytes per token. Each report moves this ratio half of the way to the reported ratio.
        answer: Tokens of the longest answer. This maximum decays with each report.
    """

    ratio: float = DEFAULT_RATIO
    answer: int = DEFAULT_ANSWER_TOKENS
    _has_report: bool = False

    def record_report(self, size: int, usage: Usage) -> None:
        """Update the averages with a provider's report about a request of `size` bytes."""
        if usage.input_tokens:
            seen = min(max(size / usage.input_tokens, MIN_RATIO), MAX_RATIO)
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
        history, ledger: The messages and the tool results of the request.
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
    return size / ratio + media * MEDIA_TOKENS + result_tokens(untrimmed, ledger, ratio)


def result_tokens(calls: Iterable[CallId], ledger: Ledger, ratio: float) -> float:
    """Return the estimated tokens of these calls' results at full length, even if some of them are shortened."""
    size, media = 0, 0
    for call_id in calls:
        if (answer := ledger._answer(call_id)) is not None:
            size += len(answer[0])
            media += len(answer[2])
    return size / ratio + media * MEDIA_TOKENS


class Compaction(StoredRecord, frozen=True):
    """The settings for shortening a session's history.

    Args:
        threshold: Share of the context window at which the history is compacted before a turn's first request. None
            turns this off. The window of the selected backend must be known; see `windows`.
        keep_turns: Number of turns at the end that stay verbatim, if the history has more.
        large_result_bytes: Size in bytes from which a result counts as long.
        attachments: Number of the user's newest images and documents that a summary carries over.
        summarizer: The backend that writes summaries. None means the backend that answered last, because its prompt
            cache contains the history. During a turn, the turn's own backend writes the summary.
        windows: Source of window sizes: `configured` (the setting `context` of a backend or a price), or `listed`,
            which adds the sizes in the package `genai-prices`.
    """

    threshold: float | None = 0.8
    keep_turns: int = 2
    large_result_bytes: int = 16_384
    attachments: int = 4
    summarizer: str | None = None
    windows: Windows = "configured"


COMPACTION_RANGES: Final[Mapping[str, Range]] = {
    "threshold": Range(
        "a share of the window above 0 and up to 1", lambda value: is_number(value) and 0 < value <= 1, float
    ),
    "keep_turns": whole_range("a whole number of at least 0", 0),
    "large_result_bytes": whole_range(f"a whole number of at least {MIN_TRIM_BYTES}", MIN_TRIM_BYTES),
    "attachments": whole_range("a whole number of at least 0", 0),
    "summarizer": text_range("the name of a backend", 200),
    "windows": word_range(get_args(Windows)),
}


class CompactionResult(StoredRecord, frozen=True):
    """The effect of a compaction.

    Args:
        messages: Number of messages that a summary replaced.
        results: Number of results that placeholders replaced.
        error: The reason why a requested summary was not written; empty if it was written or not requested.
        usage: Token usage of the request for the summary.
    """

    messages: int = 0
    results: int = 0
    error: str = ""
    usage: Usage = Usage()


# ---- boundaries


def turn_starts(messages: Sequence[Message]) -> list[int]:
    """Return the indexes of the messages that begin a turn: a user message at the start or directly after an answer.

    Messages that the runtime adds in the middle of a turn, such as an output format, do not begin a turn.
    """
    found: list[int] = []
    last = -1
    for at, message in enumerate(messages):
        if message.role == "assistant":
            last = at
        elif at == last + 1 and not _is_added_within_turn(messages, last, at):
            found.append(at)
    return found


def _is_added_within_turn(messages: Sequence[Message], answer_index: int, index: int) -> bool:
    """Return True if the message at `index` is inside the turn of the answer at `answer_index`.

    This is the case if the next answer belongs to the same turn.
    """
    if answer_index < 0 or not messages[answer_index].turn:
        return False
    later = next((each for each in messages[index:] if each.role == "assistant"), None)
    return later is not None and later.turn == messages[answer_index].turn


def messages_to_summarise(messages: Sequence[Message], keep: int, before: int) -> int:
    """Return the number of messages at the start of the history to summarise; 0 if there is nothing to summarise.

    Only the first `before` messages may be summarised. The last `keep` turns are excluded, unless nothing would be left
    to summarise. A single long turn is summarised completely.
    """
    places = [at for at in turn_starts(messages) if 0 < at < before]
    for kept in range(keep, -1, -1):
        stop = before if kept == 0 else places[-kept] if len(places) >= kept else 0
        if any(each.role == "assistant" for each in messages[:stop]):
            return stop
    return 0


def last_batch_index(messages: Sequence[Message]) -> int:
    """Return the index of the last message with tool calls, or 0 if no message has calls.

    The model may not have received the results of these calls yet.
    """
    return max((at for at, message in enumerate(messages) if message.calls), default=0)


# ---- placeholders


def repeated_results(
    messages: Sequence[Message], history: History, ledger: Ledger
) -> Iterator[tuple[CallId, TrimReason]]:
    """Yield (call id, `repeated`) for each call that the model repeated later, if both calls have results."""
    again: set[tuple[str, bytes]] = set()
    for message in reversed(messages):
        for call in reversed(message.calls):
            if (size := _real_result_bytes(ledger.get(call.id))) is None:
                continue
            what = call.name, bytes(call.json)
            if what in again and size >= MIN_TRIM_BYTES and call.id not in shortened_results(history):
                yield call.id, "repeated"
            again.add(what)


def long_results(
    messages: Sequence[Message], history: History, ledger: Ledger, min_bytes: int, reason: TrimReason
) -> Iterator[tuple[CallId, TrimReason]]:
    """Yield (call id, `reason`) for each call whose result has at least `min_bytes` bytes."""
    for message in messages:
        for call in message.calls:
            size = _real_result_bytes(ledger.get(call.id))
            if (
                size is not None
                and size >= max(min_bytes, MIN_TRIM_BYTES)
                and call.id not in shortened_results(history)
            ):
                yield call.id, reason


def results_to_trim(
    history: History, ledger: Ledger, settings: Compaction, *, include_small: bool, before: int
) -> dict[CallId, TrimReason]:
    """Choose the results to replace by placeholders, among the calls in the first `before` messages.

    Return the id of each call with the reason for its placeholder.

    Long and repeated results are always included. With `include_small`, every result of at least `MIN_TRIM_BYTES` bytes
    is included.
    """
    messages = history.since(0)
    found = (
        dict(long_results(messages[:before], history, ledger, MIN_TRIM_BYTES, "old")) if include_small else {}
    )
    found |= long_results(messages[:before], history, ledger, settings.large_result_bytes, "large")
    within = {call.id for message in messages[:before] for call in message.calls}
    found |= {each: why for each, why in repeated_results(messages, history, ledger) if each in within}
    return found


def _real_result_bytes(record: ToolCallRecord | None) -> int | None:
    """Return the bytes of a call's real result in a transcript, media included; None if there is no real result."""
    if record is None or (result := record.completion) is None:
        return None
    return result_bytes(result) + sum(len(media.data) for media in result.media)


# ---- savings


def possible_savings(
    history: History, ledger: Ledger, settings: Compaction, before: int, ratio: float
) -> float:
    """Return the number of tokens that compaction could remove from the first `before` messages.

    `ratio` is the number of bytes per token.
    """
    messages = history.since(0)
    if not (stop := messages_to_summarise(messages, settings.keep_turns, before)):
        return 0.0
    summed = {call.id for message in messages[:stop] for call in message.calls}
    trimmed = results_to_trim(history, ledger, settings, include_small=False, before=before).keys() - summed
    return message_tokens(history.upto(stop), ledger, ratio) + result_tokens(trimmed, ledger, ratio)


def is_summary_longer(text: str, history: History, ledger: Ledger, stop: int) -> bool:
    """Return True if a summary is longer than the first `stop` messages, which it would replace."""
    size = len(text.encode("utf-8", "replace"))
    return size > SHORT_SUMMARY_BYTES and size > message_tokens(history.upto(stop), ledger, 1.0)


# ---- summaries

SUMMARY: Final = "[Summary of the conversation so far.]"
"""The first line of every message with a summary."""
INSTRUCTION: Final = """\
[The conversation up to here will be replaced by a summary. Write that summary now, for a model that goes on from it \
and sees nothing else of what was said: what the user wants, in their words where they matter; what was decided and \
done; what tools returned that is still of use, with names, numbers and paths exactly as they were; what is open. Call \
no tool, and answer with the summary alone.]"""


class SummaryScope(Struct, frozen=True):
    """The results and attachments that a summary replaces.

    Args:
        results: The name of the tool for each call whose real result is replaced, by call id.
        media: The images and documents in the replaced user messages, in order.
    """

    results: Mapping[CallId, str]
    media: tuple[Media, ...]


def summary_instruction() -> Packed:
    """Return the message that asks a model for a summary. The message is sent but never becomes part of a history."""
    return pack(Message("user", (Text(INSTRUCTION),), origin=RUNTIME))


def summary_scope(history: History, ledger: Ledger, stop: int) -> SummaryScope:
    """Return the content that a summary of the first `stop` messages replaces.

    If one of these messages is an earlier summary, the scope includes the results that the earlier summary replaced.
    """
    messages = history.since(0)
    visible = {call.id for message in messages[stop:] for call in message.calls}
    results = {
        known.call_id: known.tool or "a tool"
        for known in ledger.interactions()
        if known.call_id not in visible
        and known.completion is not None
        and not is_removed(history, known.call_id)
    }
    blocks = (block for message in messages[:stop] if message.role == "user" for block in message.blocks)
    return SummaryScope(results, tuple([block for block in blocks if isinstance(block, Media)]))


def summary_message(text: str, scope: SummaryScope, settings: Compaction) -> Packed:
    """Return the message that replaces the summarised messages in the history.

    The message contains the summary, the ids of real results that the summary does not name, and the newest
    attachments.
    """
    lines = [f"{SUMMARY}\n{text.strip()}"]
    mentioned = mentioned_ids(text)
    if missing := {each: tool for each, tool in scope.results.items() if each not in mentioned}:
        listed = "; ".join(f"{tool} ({', '.join(ids)})" for tool, ids in _ids_by_tool(missing))
        lines.append(f"[Tool results replaced by this summary: {listed}.]")
    kept = scope.media[-settings.attachments :] if settings.attachments else ()
    if omitted := scope.media[: len(scope.media) - len(kept)]:
        kinds = ", ".join(sorted({media.media_type for media in omitted}))
        lines.append(f"[Left out: {len(omitted)} attachments ({kinds}).]")
    blocks: tuple[Text | Media, ...] = (Text("\n\n".join(lines)), *kept)
    return pack(Message("user", blocks, origin=RUNTIME))


_NAMED = re.compile(re.escape(mint(0)[:-1]) + r"(\d+)(?: to (\d+))?")
_MANY = 100_000


def mentioned_ids(text: str) -> set[str]:
    """Return the canonical call ids that a text mentions, either singly or as a range such as `hist_tool_3 to 7`."""
    found: set[str] = set()
    for first, last in _NAMED.findall(text):
        if len(first) > 9 or len(last) > 9:
            continue
        begin, end = int(first), int(last or first)
        found.update(mint(number) for number in range(begin, min(end, begin + _MANY) + 1))
    return found


def _ids_by_tool(results: Mapping[CallId, str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each tool with the ids of its calls. Consecutive ids are joined to a range such as `hist_tool_3 to 7`."""
    by_tool: dict[str, list[CallId]] = {}
    for call_id, tool in results.items():
        by_tool.setdefault(tool, []).append(call_id)
    for tool, ids in by_tool.items():
        ours = sorted({number_of(each) for each in ids if mint(number_of(each)) == each})
        others = [each for each in ids if mint(number_of(each)) != each]
        yield tool, [*_id_ranges(ours), *others]


def _id_ranges(numbers: Iterable[int]) -> Iterator[str]:
    for _, run in groupby(enumerate(numbers), key=lambda each: each[1] - each[0]):
        row = [number for _, number in run]
        yield mint(row[0]) if len(row) == 1 else f"{mint(row[0])} to {row[-1]}"
