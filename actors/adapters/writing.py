"""An array of messages being written: what all families share, and what those do that merge neighbours.

There the last message stays open, and a neighbour of its role is written into it. The others close every message.
Either way, appending to the transcript never changes a byte of it.
"""

from collections.abc import Mapping
from typing import ClassVar

from actors.core.data.segments import SHARED
from actors.core.dialects.dialect import Dialect
from actors.core.models.concerns import Role
from actors.core.transcript.transcript import Writer


class Writing(Writer):
    """Begins messages and keeps the pieces. How a block is written is the family's.

    A long literal is a piece of its own, the object that was given. All that stands between two of them is one.
    """

    closing: ClassVar[bytes] = b"]}"  # what ends the open message, if one stays open
    natives: ClassVar[bool] = True  # a provider's own parts can be written
    opening: ClassVar[bytes] = b'{"role":"%b","content":['  # with a place for the role
    roles: ClassVar[Mapping[str, bytes]] = {"user": b"user", "assistant": b"assistant"}

    def __init__(self, _: Dialect, last_role: Role | None) -> None:
        self._role = last_role
        self._comma = b"" if last_role is None else b","
        self._pieces: list[bytes] = []
        self._loose: list[bytes] = []  # what stands behind the last of them

    def begin(self, role: Role) -> None:
        if role != self._role:
            opening = self.opening % self.roles[role]
            self._loose.append(opening if self._role is None else self.closing + b"," + opening)
            self._role, self._comma = role, b""

    def block(self, opening: bytes, literal: bytes = b"", ending: bytes = b"") -> None:
        """Write a block, or a message, behind what is there: all of it, or up to its first literal and behind that."""
        self._loose += (self._comma, opening)
        self._comma = b","
        if ending:
            self.more(literal, ending)

    def more(self, literal: bytes, ending: bytes) -> None:
        """Write a literal of the block that is being written, and what is behind it."""
        if len(literal) < SHARED:
            self._loose += (literal, ending)
        else:
            self._pieces += (b"".join(self._loose), literal)
            self._loose = [ending]

    def native(self, part: bytes) -> None:
        self.block(part)

    def take_pieces(self) -> list[bytes]:
        written = [*self._pieces, b"".join(self._loose)] if self._loose else self._pieces
        self._pieces, self._loose = [], []
        return written
