"""What there is to know of a wire family in one value: how it is written, and how what it says is read."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar

from actors.adapters.base import Decoder
from actors.adapters.preamble import Preamble
from actors.adapters.reading import Reading
from actors.adapters.request import Settings
from actors.core.concerns import Role
from actors.core.dialect import Dialect, Family
from actors.core.identity import Binding
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
        decoder: Reads an answer.
        reading: Makes what reads a transcript. What the model said in it has this origin.
    """

    writer: WriterClass[D]
    preamble: Callable[[Settings, D, frozenset[str]], Preamble]
    decoder: type[Decoder]
    reading: Callable[[Binding], Reading]


def codec(family: Family) -> Codec[Any]:  # Any: the family's own profiles
    """Return the codec of a family, whose package has its name and is imported when it is first asked for."""
    made: Codec[Any] = import_module(f"actors.adapters.{family}").CODEC
    return made
