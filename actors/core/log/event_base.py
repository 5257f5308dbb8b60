"""Define the base class of all log events. `actors.core.log.events` and `actors.core.log.call_events` use it."""

from actors.core.data.record import StoredRecord


def _snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


class EventBase(StoredRecord, frozen=True, tag=_snake_case):
    """The base of all log events. In the log, the type of an event is its class name in snake case."""
