"""What a look at a whole journal finds that is not as it was written."""

from msgspec import Struct

from actors.errors import JournalError


class Damage(Struct, frozen=True):
    """One thing that is not as it was written.

    Args:
        what: In one line, with its place.
        session: Whose; empty where that cannot be said.
        number: A record of it that has changed or is missing; 0 for its entry, or where it is no record.
    """

    what: str
    session: str = ""
    number: int = 0


def damage_of(error: JournalError, session: str = "") -> Damage:
    """Return what an error says, without the advice to look at the journal."""
    what = str(error)
    for hint in ("; restore a copy, or see `actors sessions fsck`", "; restore a backup"):
        what = what.removesuffix(hint)
    return Damage(what, session, getattr(error, "number", 0))
