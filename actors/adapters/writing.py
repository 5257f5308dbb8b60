"""Define the base class of message writers, which write a request's array of messages.

Each wire family derives its writer from `BaseWriter`. In families that merge adjacent messages with the same role, the
last message stays open, and the next block with that role is added to it. The other families close every message. In
both cases, appending to the transcript never changes earlier bytes.
"""

from collections.abc import Mapping
from typing import ClassVar

from actors.core.data.persistent import SHARED
from actors.core.dialects.dialect import Dialect
from actors.core.models.rules import Role
from actors.core.transcript.transcript import Writer


class BaseWriter(Writer):
    """The base class of message writers. It begins messages and collects their bytes; subclasses write the blocks.

    The bytes are collected in pieces. A long JSON string becomes a separate piece without a copy. All bytes between
    two long strings are joined into one piece.
    """

    # closes the last message; empty in families that close every message at once
    closing: ClassVar[bytes] = b"]}"
    natives: ClassVar[bool] = True  # whether provider-specific parts can be written
    opening: ClassVar[bytes] = b'{"role":"%b","content":['  # begins a message; %b is the role
    roles: ClassVar[Mapping[str, bytes]] = {"user": b"user", "assistant": b"assistant"}

    def __init__(self, _: Dialect, last_role: Role | None) -> None:
        self._role = last_role
        self._comma = b"" if last_role is None else b","
        self._pieces: list[bytes] = []
        self._unjoined: list[bytes] = []  # bytes after the last piece, not joined yet

    def begin(self, role: Role) -> None:
        if role != self._role:
            opening = self.opening % self.roles[role]
            self._unjoined.append(opening if self._role is None else self.closing + b"," + opening)
            self._role, self._comma = role, b""

    def write_block(self, opening: bytes, literal: bytes = b"", ending: bytes = b"") -> None:
        """Write a block of the open message, or a complete message.

        The block is `opening` alone, or `opening`, `literal` and `ending`. `write_more` can add further literals.
        """
        if len(literal) < SHARED:
            self._unjoined += (self._comma, opening, literal, ending)
        else:
            self._pieces += (b"".join((*self._unjoined, self._comma, opening)), literal)
            self._unjoined = [ending]
        self._comma = b","

    def write_more(self, literal: bytes, ending: bytes) -> None:
        """Write another literal in the current block, followed by the bytes `ending`."""
        if len(literal) < SHARED:
            self._unjoined += (literal, ending)
        else:
            self._pieces += (b"".join(self._unjoined), literal)
            self._unjoined = [ending]

    def write_native(self, part: bytes) -> None:
        self.write_block(part)

    def take_pieces(self) -> list[bytes]:
        written = [*self._pieces, b"".join(self._unjoined)] if self._unjoined else self._pieces
        self._pieces, self._unjoined = [], []
        return written
