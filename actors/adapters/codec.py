"""What there is to know of a wire family in one value: how it is written, and how what it says is read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, TypeVar

from actors.adapters.assembly import Assembly
from actors.adapters.base import AnswerReader, Frames
from actors.adapters.reading import Reading
from actors.adapters.request import Request, Settings
from actors.adapters.sse import EventParser
from actors.core.concerns import Role
from actors.core.dialect import Dialect, Family
from actors.core.identity import Binding
from actors.core.transcript import TranscriptFacts, Writer

D = TypeVar("D", bound=Dialect, contravariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec(Generic[D]):
    """One wire family.

    Args:
        writer: Makes what writes a lane for a profile, behind a message of this role.
        closing: What ends the last message of a lane, where the family leaves that open.
        natives: Whether a provider's own parts can be written.
        request: Returns the request that sends a lane's segments, the last message closed. What the dialect does not
            take of the settings is left out, and named in the request's `losses`. Some providers want the tools
            declared that the transcript shows (BED-03), or marks where it was cut before.
        reader, frames: Make what reads an answer, and what splits the stream of one into events.
        reading: Makes what reads a transcript. What the model said in it has this origin.
    """

    writer: Callable[[D, Role | None], Writer]
    closing: bytes = b""
    natives: bool = False
    request: Callable[[Sequence[bytes], Settings, D, TranscriptFacts], Request]
    reader: Callable[[Assembly, Dialect], AnswerReader]
    frames: Callable[[], Frames] = EventParser
    reading: Callable[[Binding], Reading]


def codec(family: Family) -> Codec[Any]:  # Any: the family's own profiles
    """Return the codec of a family, whose package has its name and is imported when it is first asked for."""
    made: Codec[Any] = import_module(f"actors.adapters.{family}").CODEC
    return made
