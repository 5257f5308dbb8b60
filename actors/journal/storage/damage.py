"""Define the findings of a check of a journal."""

from msgspec import Struct

from actors.errors import JournalError


class Damage(Struct, frozen=True):
    """One damaged item of a journal.

    Args:
        what: A description in one line, with its place.
        session: The session's id; empty if unknown.
        number: The number of the altered or missing record; 0 for other items.
    """

    what: str
    session: str = ""
    number: int = 0


def damage_of(error: JournalError, session: str = "") -> Damage:
    """Return the damage that an error reports, without the advice to check the journal."""
    what = str(error)
    for hint in ("; restore a copy, or see `actors sessions fsck`", "; restore a backup"):
        what = what.removesuffix(hint)
    return Damage(what, session, getattr(error, "number", 0))
