"""Write an array of messages: the code that all families share.

The writers of the families derive from `Writing`. In families that merge neighbours, the last message stays open, and
the next block of its role is written into it; the others close every message. Either way, appending to the transcript
never changes an earlier byte.
"""

from collections.abc import Mapping
from typing import ClassVar

from actors.core.data.segments import SHARED
from actors.core.dialects.dialect import Dialect
from actors.core.models.rules import Role
from actors.core.transcript.transcript import Writer


class Writing(Writer):
    """Begins messages and collects the pieces. The family's subclass writes the blocks.

    A long literal is a piece of its own, without a copy. The bytes between two long literals are joined to one piece.
    """

    closing: ClassVar[bytes] = b"]}"  # closes the open message, if one stays open
    natives: ClassVar[bool] = True  # whether a provider's own parts can be written
    opening: ClassVar[bytes] = b'{"role":"%b","content":['  # with a placeholder for the role
    roles: ClassVar[Mapping[str, bytes]] = {"user": b"user", "assistant": b"assistant"}

    def __init__(self, _: Dialect, last_role: Role | None) -> None:
        self._role = last_role
        self._comma = b"" if last_role is None else b","
        self._pieces: list[bytes] = []
        self._loose: list[bytes] = []  # bytes after the last piece, not yet joined

    def begin(self, role: Role) -> None:
        if role != self._role:
            opening = self.opening % self.roles[role]
            self._loose.append(opening if self._role is None else self.closing + b"," + opening)
            self._role, self._comma = role, b""

    def write_block(self, opening: bytes, literal: bytes = b"", ending: bytes = b"") -> None:
        """Write a block, or a message, after the existing ones: all of it, or the bytes around its first literal."""
        self._loose += (self._comma, opening)
        self._comma = b","
        if ending:
            self.more(literal, ending)

    def more(self, literal: bytes, ending: bytes) -> None:
        """Write a further literal of the current block, and the bytes after it."""
        if len(literal) < SHARED:
            self._loose += (literal, ending)
        else:
            self._pieces += (b"".join(self._loose), literal)
            self._loose = [ending]

    def write_native(self, part: bytes) -> None:
        self.write_block(part)

    def take_pieces(self) -> list[bytes]:
        written = [*self._pieces, b"".join(self._loose)] if self._loose else self._pieces
        self._pieces, self._loose = [], []
        return written
