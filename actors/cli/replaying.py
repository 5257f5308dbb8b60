"""`actors replay --send`: what the user said in a conversation that is kept, asked anew of another target.

No tool runs. A call is answered with what the record has for the same tool and the same arguments, in their order; one
that the record does not have is an error to the model, and told. The tools are known by their names alone, for no log
says more of them. What comes of it is kept nowhere.
"""

import json
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from actors.config import Config
from actors.core.data.jsonio import JsonValue, parse
from actors.core.log.events import Event, Failed, Opened, Returned, RoundEnded, Submitted
from actors.core.values.content import Message, ToolCall
from actors.core.values.identity import CallId
from actors.core.values.packed import unpack
from actors.journal.storage.memory import MemoryStorage
from actors.runtime.runtime import Runtime
from actors.tools import Tool


class AskedAnew(Struct, frozen=True):
    """One ask as it came out.

    Args:
        ask: Its number.
        status: How it ended; `why`, if it did not as it should.
        text: The last word of the model.
        calls: How many calls the record answered.
        missing: Calls that it does not have, as the model wrote them.
    """

    ask: int
    status: str
    why: str
    text: str
    calls: int
    missing: list[str]


class RecordedFailure(Exception):
    """What a call failed with when it ran."""


class NotRecorded(Exception):
    """A call that never ran."""


class RecordedCalls:
    """What the calls of a log came to.

    Args:
        events: The log.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self._ends: defaultdict[tuple[str, str], deque[Returned | Failed]] = defaultdict(deque)
        self.calls, self.missing = 0, list[str]()
        """Of the ask in flight: how many were answered, and which were not."""
        made = dict[CallId, ToolCall]()
        for event in events:
            if isinstance(event, RoundEnded) and event.message is not None:
                made.update({call.id: call for call in unpack(event.message).calls})
            elif isinstance(event, Returned | Failed) and event.call_id in made:
                call = made[event.call_id]
                self._ends[_key(call.name, call.arguments)].append(event)
        self._names = sorted({call.name for call in made.values()})

    def tools(self) -> Iterator[Tool[..., Any]]:  # Any: what the record says
        """Give the tools of the log, which take any arguments."""
        for name in self._names:
            yield Tool.from_schema(name, f"{name}, as it is on record.", {"type": "object"}, self._tool(name))

    def _tool(self, name: str) -> Callable[..., Awaitable[object]]:
        async def answer(**arguments: JsonValue) -> object:
            return self._answer(name, arguments)

        return answer

    def _answer(self, name: str, arguments: Mapping[str, JsonValue]) -> object:
        ends = self._ends.get(_key(name, arguments))
        if not ends:
            self.missing.append(f"{name} {json.dumps(arguments, sort_keys=True)}")
            raise NotRecorded("the record has no such call with these arguments; nothing ran")
        end = ends.popleft()
        self.calls += 1
        if isinstance(end, Failed):
            raise RecordedFailure(str(parse(end.error)))
        return parse(end.content)


def _key(name: str, arguments: Mapping[str, Any]) -> tuple[str, str]:
    return name, json.dumps(arguments, sort_keys=True)


def said(events: Sequence[Event]) -> list[Message]:
    """Return what the user said, in order."""
    found = [unpack(event.message) for event in events if isinstance(event, Submitted)]
    return [message for message in found if message.speaker == "human" and message.blocks]


async def sent(events: Sequence[Event], config: Config, target: str) -> AsyncGenerator[AskedAnew]:
    """Ask a target what the user of a log said; give how each ask came out."""
    record, first = RecordedCalls(events), events[0]
    assert isinstance(first, Opened)
    async with Runtime(config, journal=MemoryStorage()) as runtime:
        session = await runtime.open(target, tools=list(record.tools()), system=first.system)
        for number, message in enumerate(said(events), 1):
            record.calls, record.missing = 0, []
            result = await session.ask(Message("human", message.blocks), check=False)
            yield AskedAnew(number, result.status, result.why, result.text, record.calls, record.missing)
