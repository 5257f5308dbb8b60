"""What there is to know of a wire family in one value: how it is written, and how what it says is read."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from actors.adapters.base import MAX_ANSWER, Decoder
from actors.adapters.reading import TranscriptReader
from actors.adapters.request import Settings
from actors.adapters.request_head import Preamble
from actors.adapters.writing import Writing
from actors.core.dialects.dialect import Dialect
from actors.core.models.concerns import Family
from actors.core.values.identity import Binding


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec:
    """One wire family.

    `preamble` is given the settings, and the tools called where those declare none: some providers want them declared
    (BED-03). What a dialect does not take of the settings is a loss. `reading` is given the origin of what the model
    said.
    """

    writer: type[Writing]
    preamble: Callable[[Settings, Any, frozenset[str]], Preamble]  # Any: the family's own profiles
    decoder: type[Decoder]
    reading: Callable[[Binding], TranscriptReader]


def codec(family: Family) -> Codec:
    """Return the codec of a family, whose package has its name and is imported when it is first asked for."""
    made: Codec = import_module(f"actors.adapters.{family}").CODEC
    return made


def decode(
    profile: Dialect,
    binding: Binding | None = None,
    *,
    stream: bool = True,
    first_call: int = 1,
    turn: int = 0,
    names: Mapping[str, str] | None = None,
    keys: Mapping[str, Mapping[str, str]] | None = None,
    tools: Collection[str] | None = None,
    max_bytes: int = MAX_ANSWER,
) -> Decoder:
    """Return a decoder for one answer.

    Args:
        binding: Who is answering; without it, a nameless backend of this dialect.
        stream: Whether the answer is streamed; else it is one JSON document, whose events are in `late` after `close`.
        first_call: Number of the first canonical id to mint.
        names: `Request.names` of what is being answered: tools the provider knows by another name.
        keys: `Request.keys` of it: properties the provider knows by another key.
        tools: `Request.tools` of what is being answered: the declared tools by their names on the wire. They show which
            names come in pieces. None if they are not known.
        max_bytes: Of the answer, as it is on the wire; one that is larger is a fault.
    """
    binding = binding or Binding(profile.name, profile.name)
    made = codec(profile.family).decoder
    return made(
        profile, binding, first_call, turn, names, keys, tools or None, stream=stream, max_bytes=max_bytes
    )
