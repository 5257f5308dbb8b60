"""An array of messages whose last one stays open, so that a neighbour of its role is written into it.

Protocols that merge neighbours are written so: appending to the transcript never changes a byte of it.
"""

from collections.abc import Mapping
from typing import ClassVar

from actors.core.concerns import Role
from actors.core.dialect import Dialect

CLOSING = b"]}"  # what ends the open message


class OpenMessages:
    """Begins messages and keeps the pieces. How a block is written is the family's."""

    opening: ClassVar[bytes]  # with a place for the role
    roles: ClassVar[Mapping[str, bytes]] = {"user": b"user", "assistant": b"assistant"}

    def __init__(self, _: Dialect, last_role: Role | None) -> None:
        self._role = last_role
        self._comma = b","
        self._pieces: list[bytes] = []

    def begin(self, role: Role) -> None:
        """Let what follows be said in this role, in the open message if it is of that."""
        if role != self._role:
            opening = self.opening % self.roles[role]
            self._pieces.append(opening if self._role is None else CLOSING + b"," + opening)
            self._role, self._comma = role, b""

    def native(self, part: bytes) -> None:
        """Write a block as its provider wrote it."""
        self._pieces += (self._comma, part)
        self._comma = b","

    def taken(self) -> list[bytes]:
        """Return what was written since this was asked last."""
        written, self._pieces = self._pieces, []
        return written
