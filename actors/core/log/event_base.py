"""Define the base of all log events, `actors.core.log.events` and `actors.core.log.call_events`."""

from actors.core.data.record import StoredRecord


def _word(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


class EventBase(StoredRecord, frozen=True, tag=_word):
    """The base of all events. The name of an event in the log is that of its class, in snake case."""
