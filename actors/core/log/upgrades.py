"""Records of older versions, brought to the present one before they are read.

A version of the catalogue is what its records look like: which events there are, and their fields in order. It is
raised with every change, also where a field with a default is added at the end, and the step to it is added here. No
step is ever changed, for logs that it reads are kept for years. tests/golden_journals has a log of each version.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from msgspec import MsgspecError, convert, msgpack

from actors.core.data.jsonio import quote
from actors.core.log.events import VERSION
from actors.core.settings.asking import Asked
from actors.core.values.content import FREE

Step: TypeAlias = Callable[[list[Any]], list[Any]]
"""From an event of one version to the same of the next: its name, then its fields in order, as msgpack has them."""

ADDED_IN_3: Mapping[str, list[Any]] = {  # Any: as msgpack has it
    "epoch_began": [[]],
    "opened": ["", []],
    "request_sent": [[]],
    "scheduled": [[]],
    "turn_ended": [[]],
}
"""Defaults of the fields that version 3 added at the end of events, by the event's name."""


HAD_MESSAGES_IN_2: Mapping[str, int] = {
    "submitted": 2,
    "round_ended": 3,
    "instructed": 2,
    "compacted": 3,
    "opened": 4,
}
"""Places in events of version 2 that hold a packed message, or a list of them, by the event's name."""


def _to_3(event: list[Any]) -> list[Any]:  # Any: as above
    """Return an event of version 2 with the fields that version 3 added."""
    name = event[0]
    if name == "awaited":  # the progress of its ask lists the requests that were refused
        event = [*event[:5], [*event[5], []], *event[6:]]
    if name == "submitted" and event[3] is not None:  # the settings of its ask say what is done about slips
        event = [*event[:3], [*event[3], None]]
    if (place := HAD_MESSAGES_IN_2.get(name)) is not None and (held := event[place]) is not None:
        event[place] = [_message_to_3(each) for each in held] if name == "opened" else _message_to_3(held)
    return [*event, *ADDED_IN_3.get(name, ())]


SETTINGS_IN_3 = (
    *(
        "max_tokens",
        "temperature",
        "top_p",
        "stop",
        "tool_choice",
        "thinking",
        "effort",
        "first_byte_timeout",
    ),
    *("idle_timeout", "timeout", "max_rounds", "token_limit", "max_corrections", "output", "repair"),
)
"""The settings of an ask in version 3, by their present names, in their order."""


def _to_4(event: list[Any]) -> list[Any]:  # Any: as above
    """Return an event of version 3 with the settings of an ask as a map of those that are given."""
    if event[0] != "submitted" or event[3] is None:
        return event
    given = {
        name: value for name, value in zip(SETTINGS_IN_3, event[3], strict=True) if value not in (None, [])
    }
    return [*event[:3], convert(given, Asked)]


def _message_to_3(packed: Any) -> Any:  # Any: as above
    """Return a packed message in which calls say what they were given as version 3 does."""
    if isinstance(packed, list):
        return [_message_to_3(packed[0]), *packed[1:]]
    speaker, blocks, *rest = msgpack.decode(packed)
    return msgpack.encode(
        [speaker, [_call_to_3(block) if block[0] == "c" else block for block in blocks], *rest]
    )


def _call_to_3(call: list[Any]) -> list[Any]:  # Any: as above
    """Return a call with malformed arguments as JSON, and with free text in its arguments alone."""
    _, _, _, json, raw, *_ = call
    literal = None if raw is None else quote(raw)
    is_free = literal is not None and json == FREE % literal
    return [*call[:4], None if is_free else literal, *call[5:], is_free]


STEPS: Mapping[int, Step] = {
    1: lambda event: event,  # a tool choice of `Submitted` was a word
    2: _to_3,
    3: _to_4,
}
"""By the version that each begins at."""


def upgraded(record: bytes) -> bytes | None:
    """Return an older record as the present version writes it; None if it is not older, or no record.

    Raises:
        Whatever a step raises for an event that its version does not have.
    """
    try:
        version, event = msgpack.decode(record)
    except (MsgspecError, TypeError, ValueError):
        return None
    if type(version) is not int or not isinstance(event, list) or version not in STEPS:
        return None
    for step in range(version, VERSION):
        event = STEPS[step](event)
    return msgpack.encode([VERSION, event])
