"""Find the call that each result of a transcript answers, even if ids repeat or are missing.

In:  the calls and the results of a transcript, oldest first, with their ids, tool names and positions.
Out: for each result, the call that it answers, or None if no call is certain.

A result must never be paired with the wrong call, and a reused id is weak evidence. Therefore a result can only answer
the latest message that contains a call with its id. For that message, the following rules decide, and `settle` keeps
every other result as a note:

- If several calls share an id, a result with a tool name answers only a call of that tool.
- A single call is paired with the first result. But if an older call with the id has no result, only a result directly
  after the call's message counts, because a later result may answer the older call.
- Calls of one message that share an id are paired with the results in order if there are as many results as calls.
- A result equal to an earlier result with its id is a repetition. A different result is a further result of the same
  call only if no other call has the id.
- A result without an id is paired by its tool name. Without a name, it is paired by position: the results directly
  after a message answer the message's calls without ids, if there are as many results as calls.
"""

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)


class TranscriptCall(NamedTuple):
    """A call in a transcript: its id, its tool name and the number of its message.

    `contents` are the contents of its known results.
    """

    id: str
    tool: str
    message_number: int
    contents: tuple[Hashable, ...] = ()


class TranscriptResult(NamedTuple):
    """A result in a transcript: its id, its tool name (`""` if unknown), its content and the number of its message.

    `preceding_message` is the number of the last message before the result that is not itself a result.
    """

    id: str
    tool: str
    content: Hashable
    message_number: int
    preceding_message: int


def pair_results(
    calls: Sequence[TranscriptCall], results: Sequence[TranscriptResult], *, allow_early: bool
) -> list[int | None]:
    """Return, for each result, the index of the call that it answers, or None if no call is certain.

    Args:
        calls: The calls, oldest first.
        results: The results, oldest first.
        allow_early: True if a result may precede its call, provided that only one call has its id.
    """
    pairing = _Pairing(calls, results, allow_early)
    calls_by_id = _group_by(range(len(calls)), lambda at: calls[at].id)
    results_by_evidence = _group_by(
        range(len(results)), lambda at: _pairing_evidence(results[at], calls_by_id)
    )
    without_id = calls_by_id.get("", [])
    named = results_by_evidence.pop(_BY_TOOL, [])
    placed = results_by_evidence.pop(_BY_POSITION, [])
    for evidence, same_id in results_by_evidence.items():
        pairing.pair_by_name(calls_by_id.get(str(evidence), []), same_id)
    pairing.pair_by_tool_and_position([at for at in named if not results[at].id])
    pairing.pair_by_name(without_id, [at for at in named if pairing.answered[at] is None])
    pairing.pair_by_position(without_id, placed)
    return pairing.answered


_BY_TOOL, _BY_POSITION = 1, 2  # a result without a usable id is paired by its tool name, or by its position


def _pairing_evidence(result: TranscriptResult, calls_by_id: dict[str, list[int]]) -> str | int:
    """Return the evidence that identifies the call of a result: the result's id, `_BY_TOOL` or `_BY_POSITION`."""
    if result.id and (result.id in calls_by_id or not result.tool):
        return result.id
    # If no call has the result's id, the result can only answer a call without an id.
    return _BY_TOOL if result.tool else _BY_POSITION


class _Pairing:
    """A pairing of results with calls, in progress. Methods identify calls and results by their indexes.

    Attributes:
        answered: For each result, the index of the call that it answers; None while no call is found.
    """

    def __init__(
        self, calls: Sequence[TranscriptCall], results: Sequence[TranscriptResult], allow_early: bool
    ) -> None:
        self._calls = calls
        self._results = results
        self._allow_early = allow_early
        self._contents: list[list[Hashable]] = [list(call.contents) for call in calls]
        self.answered: list[int | None] = [None] * len(results)

    def pair_by_name(self, call_indexes: Sequence[int], result_indexes: Sequence[int]) -> None:
        """Pair results with calls of one id. Results with a tool name are paired first, only with calls of that tool.

        If only one call has the id, tool names are ignored, because some programs change the spelling of tool names.
        """
        if len(call_indexes) > 1 or (call_indexes and not self._calls[call_indexes[0]].id):
            results = _group_by(result_indexes, lambda at: self._results[at].tool)
            calls = _group_by(call_indexes, lambda at: self._calls[at].tool)
            result_indexes = results.pop("", [])
            for tool, named in results.items():
                self._pair_by_order(calls.get(tool, []), named)
        self._pair_by_order(call_indexes, result_indexes)

    def pair_by_tool_and_position(self, result_indexes: Sequence[int]) -> None:
        """Pair results that have only a tool name with calls of that tool, whatever ids the calls have."""
        if not result_indexes:
            return
        calls = _group_by(range(len(self._calls)), lambda at: self._calls[at].tool)
        for tool, named in _group_by(result_indexes, lambda at: self._results[at].tool).items():
            self.pair_by_position(calls.get(tool, []), named)

    def pair_by_position(self, call_indexes: Sequence[int], result_indexes: Sequence[int]) -> None:
        """Pair the results directly after a message with its unanswered calls, if there are as many of both."""
        follows = _group_by(result_indexes, lambda at: self._results[at].preceding_message)
        still = [at for at in call_indexes if not self._contents[at]]
        for message, calls in _group_by(still, lambda at: self._calls[at].message_number).items():
            direct = follows.get(message, [])
            if len(direct) == len(calls):
                self._record_pairs(calls, direct)

    def _pair_by_order(self, call_indexes: Sequence[int], result_indexes: Sequence[int]) -> None:
        """Pair results with calls that share an id and a tool name, by the order of their messages."""
        if not call_indexes or not result_indexes:
            return
        if len(call_indexes) == len(result_indexes) == 1:  # nearly all calls have a single result
            call, result = self._calls[call_indexes[0]], self._results[result_indexes[0]]
            if self._allow_early or result.message_number >= call.message_number:
                self._record_pairs(call_indexes, result_indexes)
            return
        messages = _group_by(call_indexes, lambda at: self._calls[at].message_number)
        places, may_be_early = list(messages), self._allow_early and len(call_indexes) == 1
        results: dict[int, list[int]] = {}
        for at in result_indexes:
            before = bisect_right(places, self._results[at].message_number)
            if before or may_be_early:
                results.setdefault(places[max(before - 1, 0)], []).append(at)
        older = _OlderCalls()
        for message, calls in messages.items():
            self._pair_message(calls, results.get(message, []), older)
            older.add_calls(calls, self._contents)

    def _pair_message(self, calls: list[int], result_indexes: list[int], older: "_OlderCalls") -> None:
        """Pair the calls of one message that share an id and a tool name.

        `result_indexes` are the results that precede the next message with such calls.
        """
        message = self._calls[calls[0]].message_number
        direct = [at for at in result_indexes if self._results[at].preceding_message == message]
        late = [
            at
            for at in result_indexes
            if self._results[at].preceding_message != message and not self._is_repetition(at, older)
        ]
        made = [at for at in calls if not self._contents[at]]
        taken = self._certain_results(len(made), direct)
        if not taken and not older.is_open:
            taken = self._certain_results(len(made), sorted(direct + late))
        self._record_pairs(made, taken)
        self._pair_further_results([at for at in result_indexes if self.answered[at] is None], calls, older)

    def _certain_results(self, count: int, result_indexes: list[int]) -> list[int]:
        """Return one result for each of `count` calls, in order, or an empty list if the choice is uncertain."""
        if count == 1:
            return result_indexes[:1]
        if len(result_indexes) == count:
            return result_indexes
        first = {self._results[at].content: at for at in reversed(result_indexes)}
        return sorted(first.values()) if len(first) == count else []

    def _record_pairs(self, calls: Iterable[int], results: Iterable[int]) -> None:
        for call, result in zip(calls, results, strict=False):
            self.answered[result] = call
            self._contents[call].append(self._results[result].content)

    def _is_repetition(self, result: int, older: "_OlderCalls") -> bool:
        return self._results[result].content in older.contents

    def _pair_further_results(
        self, result_indexes: Iterable[int], calls: list[int], older: "_OlderCalls"
    ) -> None:
        """Pair the remaining results with calls that already have a result.

        A result that equals an earlier result answers the same call. A different result is paired only if no other call
        has the id.
        """
        contents = {content: call for call in calls for content in self._contents[call]}
        is_only = len(calls) == 1 and not older
        for at in result_indexes:
            content = self._results[at].content
            if is_only and content not in contents:
                contents[content] = calls[0]
                self._contents[calls[0]].append(content)
            self.answered[at] = contents.get(content, older.contents.get(content))


class _OlderCalls:
    """The calls with one id in earlier messages.

    Attributes:
        is_open: True if one of these calls has no result.
        contents: The call that each earlier result answers, by the content of the result.
    """

    def __init__(self) -> None:
        self.is_open = False
        self.contents: dict[Hashable, int] = {}

    def __bool__(self) -> bool:
        return self.is_open or bool(self.contents)

    def add_calls(self, calls: Iterable[int], contents: Sequence[Sequence[Hashable]]) -> None:
        for call in calls:
            self.is_open = self.is_open or not contents[call]
            self.contents.update(dict.fromkeys(contents[call], call))


def _group_by(indexes: Iterable[int], key: Callable[[int], K]) -> dict[K, list[int]]:
    groups: dict[K, list[int]] = {}
    for at in indexes:
        groups.setdefault(key(at), []).append(at)
    return groups
