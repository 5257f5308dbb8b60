"""Guards: what keeps a turn from going in circles.

In:  the messages of a turn, and how their calls ended.
Out: the tools whose calls are refused from now on, and the calls that were made before and keep one result.

Messages are counted, not calls: a model that made one mistake in ten calls of a message was told of it once. All that
is counted is in the log, so a turn that waited or lost its actors is guarded as if it had not.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, get_args

from msgspec import Struct

from actors.core.data.jsonio import Json
from actors.core.data.record import replace
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.log.events import CallEvent, End, Failed, Refused, Returned
from actors.core.values.content import ToolCall
from actors.core.values.identity import CallId
from actors.errors import ConfigError

Repeats: TypeAlias = Literal["allow", "warn", "stop"]
"""What is done about calls that are made again with the same result: nothing, the model is told, tools go off."""

REPEATS: Final = 3
"""Messages of a turn with the same call and the same result, from which on that is a repetition."""

NOTE: Final = "The same call had this same result before in this turn."
_NOTED = NOTE.encode()


def checked_repeats(repeats: str) -> Repeats:
    """Return the policy of that name.

    Raises:
        ConfigError: There is none.
    """
    for known in get_args(Repeats):
        if repeats == known:
            return known  # type: ignore[no-any-return]  # one of the three words
    raise ConfigError(f"on_repeat= takes 'allow', 'warn' or 'stop', not {repeats!r:.80}")


class CallPolicy(Struct, frozen=True):
    """What a batch must heed.

    Args:
        barred: Tools that were called wrongly too often: their calls are refused.
        known: The result that calls of the batch had each time before, where that was often.
        is_told: Whether the model is told of that.
    """

    barred: frozenset[str] = frozenset()
    known: Mapping[CallId, End] = MappingProxyType({})
    is_told: bool = True


HEEDLESS = CallPolicy()
"""Of a batch that begins a turn, or belongs to none."""


class _Repeated(Struct, frozen=True):
    """The result that a call had, and in how many messages running."""

    end: End
    times: int


class TurnGuard:
    """Counts over one turn. Mutable: it belongs to that.

    Args:
        start: Length of the history when the turn began.
        corrections: Messages with wrong calls of one tool after which its calls are refused.
        repeats: What is done about repeated calls.
    """

    def __init__(self, start: int, corrections: int, repeats: Repeats) -> None:
        self._read, self._corrections, self._repeats = start, corrections, repeats
        self._refusals: Counter[str] = Counter()
        self._seen: dict[tuple[str, str | bytes], _Repeated] = {}

    @property
    def stops(self) -> bool:
        """Whether repeated calls end the turn's tools."""
        return self._repeats == "stop"

    @property
    def is_stuck(self) -> bool:
        """Whether a call was repeated so often that the turn gets no more tools."""
        return self.stops and any(seen.times >= REPEATS for seen in self._seen.values())

    def take(self, history: History, ledger: Ledger, stop: int) -> None:
        """Take note of the turn's messages before `stop`, whose calls have all ended."""
        for place in range(self._read, stop):
            self._count(history[place].calls, ledger)
        self._read = max(self._read, stop)

    def shifted(self, fewer: int) -> None:
        """Take note that the history has so many messages fewer in front of the turn."""
        self._read -= fewer

    def _count(self, calls: Iterable[ToolCall], ledger: Ledger) -> None:
        refused: set[str] = set()
        made: dict[tuple[str, str | bytes], End] = {}
        for call in calls:
            known = ledger.get(call.id)
            if known is None or known.sealed is not None or known.end is None:
                continue
            if isinstance(known.end, Refused):
                refused.add(call.name)
            if self._repeats != "allow":
                made[_key(call)] = known.end
        self._refusals.update(refused)
        for key, end in made.items():
            seen = self._seen.get(key)
            again = seen is not None and _is_same(end, seen.end)
            self._seen[key] = _Repeated(seen.end, seen.times + 1) if seen and again else _Repeated(end, 1)

    def heed(self, calls: Iterable[ToolCall]) -> CallPolicy:
        """Return what a batch of these calls must heed."""
        if not (self._refusals or self._seen):
            return HEEDLESS
        barred = [name for name, count in self._refusals.items() if count >= self._corrections]
        known: dict[CallId, End] = {}
        for call in calls if self._seen else ():
            seen = self._seen.get(_key(call))
            if seen is not None and seen.times >= REPEATS - 1:
                known[call.id] = seen.end
        return CallPolicy(frozenset(barred), known, self._repeats == "warn")


def again(event: CallEvent, before: End, *, is_told: bool = True) -> CallEvent:
    """Return how a call ended: as a repetition, with a note, if that is what it came to each time before."""
    if not isinstance(event, Returned | Failed) or not _is_same(event, before):
        return event
    return replace(_noted(event) if is_told else event, repeated=True)


def _key(call: ToolCall) -> tuple[str, str | bytes]:
    if call.raw_json is not None:
        return call.name, call.raw_json
    return call.name, json.dumps(call.arguments, sort_keys=True)


def _said(end: End) -> tuple[Any, ...]:  # Any: the parts of a result
    if isinstance(end, Returned):
        return end.content, end.media
    return type(end), end.error


def _is_same(end: End, first: End) -> bool:
    """Say whether two results are the same, the note on the second apart."""
    said = _said(end)
    return said == _said(first) or (isinstance(first, Returned | Failed) and said == _said(_noted(first)))


def _noted(end: Returned | Failed) -> Returned | Failed:
    if isinstance(end, Returned):
        return replace(end, content=_with_note(end.content))
    return replace(end, error=_with_note(end.error))


def _with_note(said: Json) -> Json:
    """Return a text with the note behind it; of another value, an object of both."""
    if said.startswith(b'"'):
        return Json(said[:-1] + b"\\n\\n[" + _NOTED + b']"')
    return Json(b'{"result":' + said + b',"note":"' + _NOTED + b'"}')
