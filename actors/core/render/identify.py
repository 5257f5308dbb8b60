"""Pass 2, identify: give every tool call an id of its own.

In:  attributed messages whose canonical ids may be empty or occur more than once.
Out: the same messages, in which no two calls share an id; a result of a repeated id belongs to the nearest
     earlier unanswered call of that id (`actors.core.pairing`).

Sessions and imports mint unique ids, so this finds nothing to do there. Histories made by hand, and
conversations that were forked and glued, may hold the same id twice.
The second occurrence of `x` is called `x~2`, the third `x~3`: a function of what stands earlier only.
"""

from actors.core.content import Message, ToolCall, ToolResult
from actors.core.diagnostics import Notes
from actors.core.identity import CallId
from actors.core.pairing import Unanswered
from actors.core.table import Table


def identify(
    tail: list[Message], shown: Table[CallId, bool], aliases: Table[CallId, tuple[CallId, ...]], notes: Notes
) -> tuple[list[Message], Table[CallId, tuple[CallId, ...]]]:
    """Return `tail` with unique call ids, and the aliases given so far.

    Args:
        tail: Attributed messages, oldest first.
        shown: Ids of the calls already sent in this epoch.
        aliases: For ids that have occurred before, the names that results to come belong to, in order; the
            last one for all further results.
        notes: Receives a `repeated_id` finding for each renamed call.
    """
    if not len(aliases) and _unique(tail, shown):
        return tail, aliases
    naming = _Naming(shown, aliases, notes)
    return [naming.rename(message) for message in tail], aliases.update(naming.expected())


def _unique(tail: list[Message], shown: Table[CallId, bool]) -> bool:
    seen: set[CallId] = set()
    for message in tail:
        if message.speaker == "model":
            for block in message.blocks:
                if type(block) is ToolCall:
                    if block.id in seen or block.id in shown:
                        return False
                    seen.add(block.id)
    return True


class _Naming:
    """The names given while one tail is read from its oldest message on."""

    def __init__(
        self, shown: Table[CallId, bool], aliases: Table[CallId, tuple[CallId, ...]], notes: Notes
    ) -> None:
        self._shown = shown
        self._aliases = aliases
        self._notes = notes
        self._taken: set[CallId] = set()
        self._open: Unanswered[CallId, CallId] = Unanswered()
        self._latest: dict[CallId, CallId] = {}
        self._expected: dict[CallId, tuple[CallId, ...]] = {}

    def expected(self) -> dict[CallId, tuple[CallId, ...]]:
        """Return the names that later results of each repeated id belong to, in order."""
        for call_id, latest in self._latest.items():
            self._expected[call_id] = tuple(self._open.waiting(call_id)) or (latest,)
        return self._expected

    def rename(self, message: Message) -> Message:
        if message.speaker == "model" and message.calls:
            self._open.next_message()
            blocks = [self._call(block) if type(block) is ToolCall else block for block in message.blocks]
        elif message.speaker == "tool":
            blocks = [self._result(block) if type(block) is ToolResult else block for block in message.blocks]
        else:
            return message
        return Message(message.speaker, blocks, message.turn, message.origin)

    def _call(self, call: ToolCall) -> ToolCall:
        name, count = call.id, 1
        while name in self._taken or name in self._shown:
            count += 1
            name = CallId(f"{call.id}~{count}")
        self._taken.add(name)
        self._open.add(call.id, name)
        if name == call.id:
            return call
        self._latest[call.id] = name
        self._notes.found("repeated_id", "canonical", call.id)
        return _renamed(call, name)

    def _result(self, result: ToolResult) -> ToolResult:
        name = self._open.take(result.call_id)
        if name is None:
            name = self._latest.get(result.call_id) or self._of_an_earlier_tail(result.call_id)
        return result if name == result.call_id else _answering(result, name)

    def _of_an_earlier_tail(self, call_id: CallId) -> CallId:
        names = self._expected.get(call_id) or self._aliases.get(call_id) or (call_id,)
        self._expected[call_id] = names[1:] or names
        return names[0]


def _renamed(call: ToolCall, name: CallId) -> ToolCall:
    return ToolCall(name, call.name, raw=call.raw, native=call.native, json=call.json)


def _answering(result: ToolResult, call_id: CallId) -> ToolResult:
    return ToolResult(
        call_id,
        content_json=result.content_json,
        error_json=result.error_json,
        is_complete=result.is_complete,
        media=result.media,
    )
