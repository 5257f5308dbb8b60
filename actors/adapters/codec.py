"""Find the codec of a wire family: its writer, request head, decoder and transcript reader.

`decode` creates the decoder of one answer; `actors.adapters.adapter` and `actors.adapters.importing` use the rest.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from actors.adapters.base import MAX_ANSWER, Decoder
from actors.adapters.reading import TranscriptReader
from actors.adapters.request import Settings
from actors.adapters.request_head import RequestHead
from actors.adapters.writing import Writing
from actors.core.dialects.dialect import Dialect
from actors.core.models.rules import Family
from actors.core.values.identity import Binding


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec:
    """The codec of one wire family.

    `request_head` receives the settings, and the tools called in the transcript if the settings declare none: some
    providers require declarations for them (BED-03). Settings that the dialect does not accept are losses. `reading`
    receives the origin of the model's messages.
    """

    writer: type[Writing]
    request_head: Callable[[Settings, Any, frozenset[str]], RequestHead]  # Any: the family's own profiles
    decoder: type[Decoder]
    reading: Callable[[Binding], TranscriptReader]


def codec(family: Family) -> Codec:
    """Return the codec of a family. Its module has the family's name and is imported on first use."""
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
        binding: The answering binding; by default, a nameless backend of this dialect.
        stream: Whether the answer is streamed; otherwise it is one JSON document, whose events are in `late` after
            `close`.
        first_call: Number of the first canonical id to mint.
        names: `Request.names` of the request: tools that the provider knows by another name.
        keys: `Request.keys` of the request: properties that the provider knows by another key.
        tools: `Request.tools` of the request: the declared tools by their names on the wire, which show whether a
            name arrives in pieces. None if unknown.
        max_bytes: Most bytes of the answer on the wire; a larger answer is a fault.
    """
    binding = binding or Binding(profile.name, profile.name)
    made = codec(profile.family).decoder
    return made(
        profile, binding, first_call, turn, names, keys, tools or None, stream=stream, max_bytes=max_bytes
    )
