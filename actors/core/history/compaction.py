"""Decide how to shorten a history: pure rules over history and ledger, for the session's compaction.

There are two ways, and neither edits messages in place. The cheap way replaces results by marks (`ResultsTrimmed`):
the earlier of two equal calls, long results, and old results if that is not enough. The expensive way replaces turns
by a summary that a backend writes (`Compacted`). Either begins an epoch in every lane; the ledger keeps every result.

    kept verbatim      the last turns (`Compaction.keep_turns`), and always the turn in flight
    boundary           only where a turn begins, so never between a call and its result
    carried over       the user's newest attachments, in the summary's own message
    listed             every real result that the summary replaces, by call id, unless the summary names it

A late result precedes the next user message even if its call was summarised (`render.choose`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

from actors.core.data.record import StoredRecord
from actors.core.history.estimate import size_of, tokens_of, tokens_of_results
from actors.core.history.history import History, is_removed, shortened_results
from actors.core.ledger import Ledger
from actors.core.log.call_events import ToolCallRecord
from actors.core.log.events import Short
from actors.core.settings.ranges import Range, is_number, text, whole, word
from actors.core.values.content import Media, Message, Text
from actors.core.values.identity import RUNTIME, CallId, mint, number_of
from actors.core.values.packed import Packed, pack
from actors.core.values.stream import Usage

SMALL: Final = 256
"""Bytes below which a mark saves too little to replace a result."""
AFTER: Final = 0.5
"""Target size after compaction, as a share of the threshold; the distance keeps the next turn from compacting again."""
WORTH: Final = 0.25
"""Minimum saving, as a share of the threshold, for compaction before a turn. Without it, each turn would summarise the
previous one if the system prompt and the tools alone come near the threshold."""
FEW: Final = 1024
"""Bytes that a summary may always have, even if it replaces less."""


Windows: TypeAlias = Literal["configured", "listed"]


class Compaction(StoredRecord, frozen=True):
    """The settings for shortening a session's history.

    Args:
        threshold: Share of the context window from which the history is compacted before a turn's first request; None
            for never. It needs the window of the selected backend; see `windows`.
        keep_turns: Number of turns at the end that stay verbatim, if the history has more.
        large_result_bytes: Bytes from which a result is long.
        attachments: Number of the user's newest images and documents that a summary carries over.
        summarizer: The backend that writes summaries. None for the backend that answered last, because its cache holds
            the history. During a turn, the turn's own backend writes them.
        windows: Source of window sizes: `configured` (`context` of a backend or of a price), or `listed` to add
            those of the package `genai-prices`.
    """

    threshold: float | None = 0.8
    keep_turns: int = 2
    large_result_bytes: int = 16_384
    attachments: int = 4
    summarizer: str | None = None
    windows: Windows = "configured"


COMPACTION_RANGES: Final[Mapping[str, Range]] = {
    "threshold": Range(
        "a share of the window up to 1", lambda value: is_number(value) and 0 < value <= 1, float
    ),
    "keep_turns": whole("a whole number from 0", 0),
    "large_result_bytes": whole(f"a whole number from {SMALL}", SMALL),
    "attachments": whole("a whole number from 0", 0),
    "summarizer": text("the name of a backend", 200),
    "windows": word(get_args(Windows)),
}


class CompactionResult(StoredRecord, frozen=True):
    """The effect of a compaction.

    Args:
        messages: Messages replaced by a summary.
        results: Results replaced by marks.
        error: Why a summary was requested but not written; empty otherwise.
        usage: Token usage of the request for the summary.
    """

    messages: int = 0
    results: int = 0
    error: str = ""
    usage: Usage = Usage()


# ---- boundaries


def turn_starts(messages: Sequence[Message]) -> list[int]:
    """Return the positions where turns begin: at the first user message after an answer or at the start.

    Messages that the runtime adds in the middle of a turn, such as an output format, do not begin a turn.
    """
    found: list[int] = []
    last = -1
    for at, message in enumerate(messages):
        if message.role == "assistant":
            last = at
        elif at == last + 1 and not _is_inside_turn(messages, last, at):
            found.append(at)
    return found


def _is_inside_turn(messages: Sequence[Message], last: int, at: int) -> bool:
    if last < 0 or not messages[last].turn:
        return False
    later = next((each for each in messages[at:] if each.role == "assistant"), None)
    return later is not None and later.turn == messages[last].turn


def messages_to_summarise(messages: Sequence[Message], keep: int, before: int) -> int:
    """Return the number of messages to summarise, at most `before`; 0 if there is nothing to summarise.

    `keep` turns stay if there are more than `keep`. A single long turn is summarised completely.
    """
    places = [at for at in turn_starts(messages) if 0 < at < before]
    for kept in range(keep, -1, -1):
        stop = before if kept == 0 else places[-kept] if len(places) >= kept else 0
        if any(each.role == "assistant" for each in messages[:stop]):
            return stop
    return 0


def last_batch(messages: Sequence[Message]) -> int:
    """Return the number of messages before the last one with calls. The model has not seen those calls' results yet."""
    return max((at for at, message in enumerate(messages) if message.calls), default=0)


# ---- marks


def repeated_results(
    messages: Sequence[Message], history: History, ledger: Ledger
) -> Iterator[tuple[CallId, Short]]:
    """Yield the results of calls that were repeated later and answered again."""
    again: set[tuple[str, bytes]] = set()
    for message in reversed(messages):
        for call in reversed(message.calls):
            if (size := _size(ledger.get(call.id))) is None:
                continue
            what = call.name, bytes(call.json)
            if what in again and size >= SMALL and call.id not in shortened_results(history):
                yield call.id, "repeated"
            again.add(what)


def long_results(
    messages: Sequence[Message], history: History, ledger: Ledger, least: int, why: Short
) -> Iterator[tuple[CallId, Short]]:
    """Yield the results of at least `least` bytes."""
    for message in messages:
        for call in message.calls:
            size = _size(ledger.get(call.id))
            if size is not None and size >= max(least, SMALL) and call.id not in shortened_results(history):
                yield call.id, why


def results_to_trim(
    history: History, ledger: Ledger, settings: Compaction, *, old: bool, before: int
) -> dict[CallId, Short]:
    """Return the results to replace by marks, among the first `before` messages. `old` includes small results."""
    messages = history.since(0)
    found = dict(long_results(messages[:before], history, ledger, SMALL, "old")) if old else {}
    found |= long_results(messages[:before], history, ledger, settings.large_result_bytes, "large")
    within = {call.id for message in messages[:before] for call in message.calls}
    found |= {each: why for each, why in repeated_results(messages, history, ledger) if each in within}
    return found


def _size(known: ToolCallRecord | None) -> int | None:
    """Return the bytes of a real result as rendered, media included; None if there is none."""
    if known is None or (result := known.completion) is None:
        return None
    return size_of(result) + sum(len(media.data) for media in result.media)


# ---- savings


def possible_savings(
    history: History, ledger: Ledger, settings: Compaction, before: int, ratio: float
) -> float:
    """Return the tokens of the first `before` messages that a summary or marks may replace; 0 if nothing can be cut."""
    messages = history.since(0)
    if not (stop := messages_to_summarise(messages, settings.keep_turns, before)):
        return 0.0
    summed = {call.id for message in messages[:stop] for call in message.calls}
    marks = results_to_trim(history, ledger, settings, old=False, before=before).keys() - summed
    return tokens_of(history.upto(stop), ledger, ratio) + tokens_of_results(marks, ledger, ratio)


def is_longer(words: str, history: History, ledger: Ledger, stop: int) -> bool:
    """Return True if a summary is longer than the `stop` messages that it would replace."""
    size = len(words.encode("utf-8", "replace"))
    return size > FEW and size > tokens_of(history.upto(stop), ledger, 1.0)


# ---- summaries

SUMMARY: Final = "[Summary of the conversation so far.]"
"""The first line of every summary."""
INSTRUCTION: Final = """\
[The conversation up to here will be replaced by a summary. Write that summary now, for a model that goes on from it \
and sees nothing else of what was said: what the user wants, in their words where they matter; what was decided and \
done; what tools returned that is still of use, with names, numbers and paths exactly as they were; what is open. Call \
no tool, and answer with the summary alone.]"""


class SummaryScope(Struct, frozen=True):
    """The content that a summary replaces: real results by call id with their tools, and the user's attachments."""

    results: Mapping[CallId, str]
    media: tuple[Media, ...]


def instruction() -> Packed:
    """Return the message that requests a summary. It is sent to the model but is not part of a history."""
    return pack(Message("user", (Text(INSTRUCTION),), origin=RUNTIME))


def summary_scope(history: History, ledger: Ledger, stop: int) -> SummaryScope:
    """Return the content that a summary of the first `stop` messages replaces, including that of an earlier summary."""
    messages = history.since(0)
    visible = {call.id for message in messages[stop:] for call in message.calls}
    results = {
        known.call_id: known.tool or "a tool"
        for known in ledger.interactions()
        if known.call_id not in visible
        and known.completion is not None
        and not is_removed(history, known.call_id)
    }
    said = (block for message in messages[:stop] if message.role == "user" for block in message.blocks)
    return SummaryScope(results, tuple([block for block in said if isinstance(block, Media)]))


def summary(words: str, stands_for: SummaryScope, settings: Compaction) -> Packed:
    """Return the message that replaces the summarised messages in the history."""
    lines = [f"{SUMMARY}\n{words.strip()}"]
    said = mentioned_ids(words)
    if missing := {each: tool for each, tool in stands_for.results.items() if each not in said}:
        listed = "; ".join(f"{tool}: {', '.join(ids)}" for tool, ids in _ids_by_tool(missing))
        lines.append(f"[Results it stands for. {listed}.]")
    kept = stands_for.media[-settings.attachments :] if settings.attachments else ()
    if left := stands_for.media[: len(stands_for.media) - len(kept)]:
        kinds = ", ".join(sorted({media.media_type for media in left}))
        lines.append(f"[Left out: {len(left)} attachments ({kinds}).]")
    blocks: tuple[Text | Media, ...] = (Text("\n\n".join(lines)), *kept)
    return pack(Message("user", blocks, origin=RUNTIME))


_NAMED = re.compile(re.escape(mint(0)[:-1]) + r"(\d+)(?: to (\d+))?")
_MANY = 100_000


def mentioned_ids(words: str) -> set[str]:
    """Return the canonical call ids that a text mentions, singly or as `hist_tool_3 to 7`."""
    found: set[str] = set()
    for first, last in _NAMED.findall(words):
        if len(first) > 9 or len(last) > 9:
            continue
        begin, end = int(first), int(last or first)
        found.update(mint(number) for number in range(begin, min(end, begin + _MANY) + 1))
    return found


def _ids_by_tool(results: Mapping[CallId, str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each tool with its calls; consecutive ids become a range."""
    by_tool: dict[str, list[CallId]] = {}
    for call_id, tool in results.items():
        by_tool.setdefault(tool, []).append(call_id)
    for tool, ids in by_tool.items():
        ours = sorted({number_of(each) for each in ids if mint(number_of(each)) == each})
        others = [each for each in ids if mint(number_of(each)) != each]
        yield tool, [*_ranges(ours), *others]


def _ranges(numbers: Iterable[int]) -> Iterator[str]:
    for _, run in groupby(enumerate(numbers), key=lambda each: each[1] - each[0]):
        row = [number for _, number in run]
        yield mint(row[0]) if len(row) == 1 else f"{mint(row[0])} to {row[-1]}"
