"""What there is to know of a wire family in one value: how it is written, and how what it says is read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, assert_never

from actors.adapters.assembly import Assembly
from actors.adapters.base import AnswerReader, Frames
from actors.adapters.preamble import Preamble
from actors.adapters.reading import Reading
from actors.adapters.request import Settings
from actors.adapters.sse import EventParser
from actors.adapters.wire_object import WireObject
from actors.core.concerns import Role
from actors.core.content import Media
from actors.core.dialect import Dialect, Family
from actors.core.transcript import Writer

D = TypeVar("D", bound=Dialect, contravariant=True)


class WriterClass(Protocol[D]):
    """Makes a family's writers. Says how the last message is closed, and whether a provider's own parts are written."""

    @property
    def closing(self) -> bytes: ...
    @property
    def natives(self) -> bool: ...
    def __call__(self, dialect: D, last_role: Role | None, /) -> Writer: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec(Generic[D]):
    """One wire family.

    Args:
        writer: Makes what writes a lane for a profile, behind a message of this role.
        preamble: Returns what a request says before its messages, for settings and the tools called where those declare
            none: some providers want them declared (BED-03). What a dialect does not take of the settings is a loss.
        reader: Makes what reads an answer.
        frames: Makes what splits the stream of an answer into events.
        read: Reads the messages of a transcript.
        media: Returns the attachment that a part of a transcript is, if it is one.
    """

    writer: WriterClass[D]
    preamble: Callable[[Settings, D, frozenset[str]], Preamble]
    reader: Callable[[Assembly, Dialect], AnswerReader]
    frames: Callable[[], Frames] = EventParser
    read: Callable[[Sequence[object], Reading], None]
    media: Callable[[WireObject], Media | None]


def codec(family: Family) -> Codec[Any]:  # Any: the family's own profiles
    """Return the codec of a family, whose modules are imported when it is first asked for."""
    match family:
        case "openai_chat":
            from actors.adapters.openai_chat import CODEC as openai_chat

            return openai_chat
        case "anthropic":
            from actors.adapters.anthropic import CODEC as anthropic

            return anthropic
        case "responses":
            from actors.adapters.responses import CODEC as responses

            return responses
        case "gemini":
            from actors.adapters.gemini import CODEC as gemini

            return gemini
        case "converse":
            from actors.adapters.converse import CODEC as converse

            return converse
        case _:
            assert_never(family)
