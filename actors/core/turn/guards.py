"""Detect turns that make no progress: repeated invalid calls, and repeated calls with the same result.

The session's turn steps use a `TurnGuard`; the scheduler applies its `CallPolicy` to a batch.

In:  the messages of a turn, and the completions of their calls.
Out: the tools to disable for the rest of the turn, and the calls that always returned the same result.

The guard counts messages, not calls, because a model that writes ten invalid calls in one message sees no error in
between. It counts only facts that the log contains, so its counts are the same after a pause or a restart.
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
from actors.core.log.call_events import CallEvent, End, Failed, Refused, Returned
from actors.core.values.content import ToolCall
from actors.core.values.identity import CallId
from actors.errors import ConfigError

Repeats: TypeAlias = Literal["allow", "warn", "stop"]
"""The reaction to repeated calls with the same result: none, a note for the model, or a final request without tools."""

REPEATS: Final = 3
"""The number of messages with the same call and the same result at which repetition is detected."""

NOTE: Final = "The same call had this same result before in this turn."
_NOTED = NOTE.encode()


def parse_repeats(repeats: str) -> Repeats:
    """Return the policy with this name (`allow`, `warn` or `stop`).

    Raises:
        ConfigError: No policy has this name.
    """
    for known in get_args(Repeats):
        if repeats == known:
            return known  # type: ignore[no-any-return]  # `get_args` is untyped; `known` is one of the three words
    raise ConfigError(f"on_repeat= must be 'allow', 'warn' or 'stop', not {repeats!r:.80}")


class CallPolicy(Struct, frozen=True):
    """The policy of a turn for the calls of its next batch.

    Args:
        disabled_tools: Tools that were called with errors too often. Their calls are refused.
        known: For each call that repeats earlier calls, the result of these calls, by call id. If the call returns this
            result again, the result is marked as repeated.
        has_note: True if a result that is marked as repeated also contains a note for the model.
    """

    disabled_tools: frozenset[str] = frozenset()
    known: Mapping[CallId, End] = MappingProxyType({})
    has_note: bool = True


NO_POLICY = CallPolicy()
"""The policy for the first batch of a turn, and for a batch outside of turns."""


class _Repetition(Struct, frozen=True):
    """The last result of a call, and the number of consecutive messages with this result."""

    end: End
    times: int


class TurnGuard:
    """Counters of invalid and repeated calls in one turn. The object is mutable and belongs to that turn.

    Args:
        start: The length of the history when the turn began, in messages.
        corrections: The number of messages with invalid calls of a tool after which the tool is disabled.
        repeats: The policy for repeated calls.
    """

    def __init__(self, start: int, corrections: int, repeats: Repeats) -> None:
        self._next_message, self._corrections, self._repeats = start, corrections, repeats
        self._refusals: Counter[str] = Counter()
        self._seen: dict[tuple[str, str | bytes], _Repetition] = {}

    @property
    def is_stopping(self) -> bool:
        """True if the policy turns the tools off when calls repeat."""
        return self._repeats == "stop"

    @property
    def is_stuck(self) -> bool:
        """True if calls were repeated so often that the tools are turned off."""
        return self.is_stopping and any(seen.times >= REPEATS for seen in self._seen.values())

    def count_messages(self, history: History, ledger: Ledger, stop: int) -> None:
        """Count the invalid and repeated calls in the turn's messages up to index `stop` (excluded).

        All calls in these messages must have ended.
        """
        for place in range(self._next_message, stop):
            self._count_calls(history[place].calls, ledger)
        self._next_message = max(self._next_message, stop)

    def shift_position(self, fewer: int) -> None:
        """Adjust the guard's position in the history, after a compaction removed `fewer` messages before the turn."""
        self._next_message -= fewer

    def _count_calls(self, calls: Iterable[ToolCall], ledger: Ledger) -> None:
        refused: set[str] = set()
        made: dict[tuple[str, str | bytes], End] = {}
        for call in calls:
            known = ledger.get(call.id)
            if known is None or known.sealed is not None or known.end is None:
                continue
            if isinstance(known.end, Refused):
                refused.add(call.name)
            if self._repeats != "allow":
                made[_call_key(call)] = known.end
        self._refusals.update(refused)
        for key, end in made.items():
            seen = self._seen.get(key)
            again = seen is not None and _is_same(end, seen.end)
            self._seen[key] = _Repetition(seen.end, seen.times + 1) if seen and again else _Repetition(end, 1)

    def policy(self, calls: Iterable[ToolCall]) -> CallPolicy:
        """Return the policy for a batch that consists of these calls."""
        if not (self._refusals or self._seen):
            return NO_POLICY
        disabled_tools = [name for name, count in self._refusals.items() if count >= self._corrections]
        known: dict[CallId, End] = {}
        for call in calls if self._seen else ():
            seen = self._seen.get(_call_key(call))
            # If this call returns the same result again, the limit is reached.
            if seen is not None and seen.times >= REPEATS - 1:
                known[call.id] = seen.end
        return CallPolicy(frozenset(disabled_tools), known, self._repeats == "warn")


def mark_repeated(event: CallEvent, earlier: End, *, has_note: bool = True) -> CallEvent:
    """Mark a completion as repeated if it equals `earlier`, the call's earlier result.

    Any other completion is returned unchanged. With `has_note`, a note for the model is added to a repeated result.
    """
    if not isinstance(event, Returned | Failed) or not _is_same(event, earlier):
        return event
    return replace(_with_repeat_note(event) if has_note else event, repeated=True)


def _call_key(call: ToolCall) -> tuple[str, str | bytes]:
    if call.raw_json is not None:
        return call.name, call.raw_json
    return call.name, json.dumps(call.arguments, sort_keys=True)


def _comparable_result(end: End) -> tuple[Any, ...]:  # Any: the items depend on the class of `end`
    if isinstance(end, Returned):
        return end.content, end.media
    return type(end), end.error


def _is_same(end: End, earlier: End) -> bool:
    """Return True if two completions have the same result. A note about repetition in `end` is ignored."""
    said = _comparable_result(end)
    return said == _comparable_result(earlier) or (
        isinstance(earlier, Returned | Failed) and said == _comparable_result(_with_repeat_note(earlier))
    )


def _with_repeat_note(end: Returned | Failed) -> Returned | Failed:
    if isinstance(end, Returned):
        return replace(end, content=_with_note(end.content))
    return replace(end, error=_with_note(end.error))


def _with_note(result: Json) -> Json:
    """Append the note about repetition to a JSON string.

    Any other JSON value becomes `{"result": value, "note": note}`.
    """
    if result.startswith(b'"'):
        return Json(result[:-1] + b"\\n\\n[" + _NOTED + b']"')
    return Json(b'{"result":' + result + b',"note":"' + _NOTED + b'"}')
