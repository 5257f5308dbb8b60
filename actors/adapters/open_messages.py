"""An array of messages whose last one stays open, so that a neighbour of its role is written into it.

Protocols that merge neighbours are written so: appending to the transcript never changes a byte of it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from actors.core.dialect import Dialect, Role
from actors.core.transcript import Entry, EntryBlock


class OpenMessages(ABC):
    """Writes entries. How a block is written is the family's.

    Attributes:
        opening: What begins a message, with the place of its role.
        roles: Roles as the wire spells them.
        closing: What ends the open message.
    """

    opening: ClassVar[bytes]
    roles: ClassVar[Mapping[str, bytes]] = {"user": b"user", "assistant": b"assistant"}
    closing = b"]}"

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def fragment(self, entries: Sequence[Entry], last_role: Role | None) -> list[bytes]:
        """Return the bytes that append `entries` after an open message of `last_role`, in pieces."""
        pieces: list[bytes] = []
        for entry in entries:
            separator = b","
            if entry.role != last_role:
                opening = self.opening % self.roles[entry.role]
                pieces.append(opening if last_role is None else b"]}," + opening)
                separator = b""
                last_role = entry.role
            self.append(entry.blocks, separator, pieces)
        return pieces

    @abstractmethod
    def append(self, blocks: Sequence[EntryBlock], separator: bytes, pieces: list[bytes]) -> None:
        """Write `blocks` into the open message, `separator` before the first of them."""
