"""Describe the damage that a check of a journal finds."""

from msgspec import Struct

from actors.errors import JournalError


class Damage(Struct, frozen=True):
    """One damaged item of a journal.

    Args:
        what: A description in one line, with the location of the item.
        session: The session's id; empty if unknown.
        number: The number of the corrupt or missing record; 0 for other items.
    """

    what: str
    session: str = ""
    number: int = 0


def damage_from_error(error: JournalError, session: str = "") -> Damage:
    """Return the damage that an error reports. The advice at the end of the error message is omitted."""
    what = str(error)
    for hint in ("; restore a copy, or see `actors sessions fsck`", "; restore a backup"):
        what = what.removesuffix(hint)
    return Damage(what, session, getattr(error, "number", 0))
