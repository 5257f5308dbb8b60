"""Choose the call that each result of a transcript answers, where ids repeat or are missing.

In:  the calls and the results of a transcript, oldest first, with their ids, tool names and positions.
Out: for each result, the call it answers, or None if no call is certain.

A result must never answer the wrong call, and a reused id is weak evidence. A result can therefore only answer the
latest message with a call of its id. Within it, these rules decide, and `settle` keeps every other result as a note:

- If several calls share an id, a result with a tool name answers only a call of that tool.
- A single call takes the first result. While an older call of the id has no result, only a result directly after
  the call's message counts, because a later one may answer the older call.
- Calls of one message that share an id take the results in order if there are as many results as calls.
- A result equal to an earlier result of its id repeats it. A different one is another result of the same call
  only if the id has no other call.
- A result without an id is paired by its tool name; without a name, by position: directly after a message, with the
  message's calls without ids, if there are as many results as calls.
"""

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)


class CallPlace(NamedTuple):
    """A call: its id, its tool name and the number of its message. `said` holds its known results."""

    id: str
    tool: str
    message: int
    said: tuple[Hashable, ...] = ()


class ResultPlace(NamedTuple):
    """A result: its id, its tool name (`""` if unknown), its content and the number of its message.

    `behind` is the number of the message that it follows, with only results between them.
    """

    id: str
    tool: str
    says: Hashable
    message: int
    behind: int


def pair(calls: Sequence[CallPlace], results: Sequence[ResultPlace], *, early: bool) -> list[int | None]:
    """Return the position of the answered call for each result, in order.

    Args:
        calls: The calls, oldest first.
        results: The results, oldest first.
        early: True if a result may precede its call, provided that its id has only one call.
    """
    pairing = _Pairing(calls, results, early)
    made = _group(range(len(calls)), lambda at: calls[at].id)
    given = _group(range(len(results)), lambda at: _evidence(results[at], made))
    without_id = made.get("", [])
    named = given.pop(_NAMED, [])
    placed = given.pop(_PLACED, [])
    for evidence, same_id in given.items():
        pairing.pair_by_name(made.get(str(evidence), []), same_id)
    pairing.pair_by_tool_and_place([at for at in named if not results[at].id])
    pairing.pair_by_name(without_id, [at for at in named if pairing.about[at] is None])
    pairing.pair_by_place(without_id, placed)
    return pairing.about


_NAMED, _PLACED = 1, 2  # the evidence of a result without a usable id


def _evidence(result: ResultPlace, made: dict[str, list[int]]) -> str | int:
    """Return the evidence that pairs a result: its id, its tool name or its position."""
    if result.id and (result.id in made or not result.tool):
        return result.id
    # An id that no call has can only refer to a call without an id.
    return _NAMED if result.tool else _PLACED


class _Pairing:
    """The pairing in progress. `about` is its outcome.

    Calls and results are identified by their positions.
    """

    def __init__(self, calls: Sequence[CallPlace], results: Sequence[ResultPlace], early: bool) -> None:
        self._calls = calls
        self._results = results
        self._early = early
        self._said: list[list[Hashable]] = [list(call.said) for call in calls]
        self.about: list[int | None] = [None] * len(results)

    def pair_by_name(self, made: Sequence[int], given: Sequence[int]) -> None:
        """Pair results with calls of one id: results with a tool name with calls of that tool, then the others.

        The id of a single call is better evidence than a tool name, because some hosts alter the spelling of names.
        """
        if len(made) > 1 or (made and not self._calls[made[0]].id):
            results = _group(given, lambda at: self._results[at].tool)
            calls = _group(made, lambda at: self._calls[at].tool)
            given = results.pop("", [])
            for tool, named in results.items():
                self._pair(calls.get(tool, []), named)
        self._pair(made, given)

    def pair_by_tool_and_place(self, given: Sequence[int]) -> None:
        """Pair results that have only a tool name with calls of that tool, regardless of the calls' ids."""
        if not given:
            return
        calls = _group(range(len(self._calls)), lambda at: self._calls[at].tool)
        for tool, named in _group(given, lambda at: self._results[at].tool).items():
            self.pair_by_place(calls.get(tool, []), named)

    def pair_by_place(self, made: Sequence[int], given: Sequence[int]) -> None:
        """Pair the results directly after a message with its open calls, if their numbers agree."""
        behind = _group(given, lambda at: self._results[at].behind)
        still = [at for at in made if not self._said[at]]
        for message, calls in _group(still, lambda at: self._calls[at].message).items():
            direct = behind.get(message, [])
            if len(direct) == len(calls):
                self._answer(calls, direct)

    def _pair(self, made: Sequence[int], given: Sequence[int]) -> None:
        """Pair results with calls that only their positions distinguish."""
        if not made or not given:
            return
        messages = _group(made, lambda at: self._calls[at].message)
        places, may_be_early = list(messages), self._early and len(made) == 1
        results: dict[int, list[int]] = {}
        for at in given:
            before = bisect_right(places, self._results[at].message)
            if before or may_be_early:
                results.setdefault(places[max(before - 1, 0)], []).append(at)
        older = _OlderCalls()
        for message, calls in messages.items():
            self._pair_message(calls, results.get(message, []), older)
            older.add(calls, self._said)

    def _pair_message(self, calls: list[int], given: list[int], older: "_OlderCalls") -> None:
        """Pair the results between a message with such calls and the next one."""
        message = self._calls[calls[0]].message
        direct = [at for at in given if self._results[at].behind == message]
        late = [at for at in given if self._results[at].behind != message and not self._repeats(at, older)]
        made = [at for at in calls if not self._said[at]]
        taken = self._choose(len(made), direct)
        if not taken and not older.is_open:
            taken = self._choose(len(made), sorted(direct + late))
        self._answer(made, taken)
        self._take_further([at for at in given if self.about[at] is None], calls, older)

    def _choose(self, count: int, pool: list[int]) -> list[int]:
        """Return the results of `pool` that answer `count` calls, in order; none if they are not certain."""
        if count == 1:
            return pool[:1]
        if len(pool) == count:
            return pool
        first = {self._results[at].says: at for at in reversed(pool)}
        return sorted(first.values()) if len(first) == count else []

    def _answer(self, calls: Iterable[int], results: Iterable[int]) -> None:
        for call, result in zip(calls, results, strict=False):
            self.about[result] = call
            self._said[call].append(self._results[result].says)

    def _repeats(self, result: int, older: "_OlderCalls") -> bool:
        return self._results[result].says in older.said

    def _take_further(self, given: Iterable[int], calls: list[int], older: "_OlderCalls") -> None:
        """Pair further results with calls that have a result already."""
        said = {says: call for call in calls for says in self._said[call]}
        is_only = len(calls) == 1 and not older
        for at in given:
            says = self._results[at].says
            if is_only and says not in said:
                said[says] = calls[0]
                self._said[calls[0]].append(says)
            self.about[at] = said.get(says, older.said.get(says))


class _OlderCalls:
    """The calls of one id in earlier messages: whether one has no result, and the call that each content answered."""

    def __init__(self) -> None:
        self.is_open = False
        self.said: dict[Hashable, int] = {}

    def __bool__(self) -> bool:
        return self.is_open or bool(self.said)

    def add(self, calls: Iterable[int], said: Sequence[Sequence[Hashable]]) -> None:
        for call in calls:
            self.is_open = self.is_open or not said[call]
            self.said.update(dict.fromkeys(said[call], call))


def _group(positions: Iterable[int], key: Callable[[int], K]) -> dict[K, list[int]]:
    groups: dict[K, list[int]] = {}
    for at in positions:
        groups.setdefault(key(at), []).append(at)
    return groups
