"""Find the codec of a wire family: its message writer, request head, answer decoder and transcript reader.

`decode` creates the decoder of one answer. `actors.adapters.adapter` uses the writers and request heads,
`actors.adapters.importing` the transcript readers.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from actors.adapters.base import MAX_ANSWER, Decoder
from actors.adapters.reading import TranscriptReader
from actors.adapters.request import Settings
from actors.adapters.writing import BaseWriter, RequestHead
from actors.core.dialects.dialect import Dialect
from actors.core.models.rules import Family
from actors.core.values.identity import Binding


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec:
    """The codec of one wire family.

    Args:
        writer: Writes the messages of a request.
        request_head: Returns the part of a request before its messages. Its arguments are settings, a dialect and, if
            the settings declare no tools, the names of the tools that the transcript calls. Some providers require
            declarations of these tools (BED-03). Settings that the dialect does not accept are reported as losses.
        decoder: Decodes one answer.
        reader: Creates the reader of a foreign transcript. Its argument is the origin of the model's messages.
    """

    writer: type[BaseWriter]
    request_head: Callable[
        [Settings, Any, frozenset[str]], RequestHead
    ]  # Any: each family has its own dialect type
    decoder: type[Decoder]
    reader: Callable[[Binding], TranscriptReader]


def codec(family: Family) -> Codec:
    """Return the codec of a wire family. The family's module, which has the family's name, is imported on first use."""
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
        profile: The dialect of the answer.
        binding: The backend and model that send the answer. The default is an unnamed backend of this dialect.
        stream: Whether the answer is streamed. Otherwise, it is one JSON document, and its events are in `late` after
            `close`.
        first_call: Number for the first tool call id to assign.
        turn: Number of the turn, recorded in the message.
        names: `Request.names` of the request, which maps changed tool names to the tools' own names.
        keys: `Request.keys` of the request, which maps changed property keys to the tools' own keys.
        tools: `Request.tools` of the request, which contains the names of the declared tools. They are used to
            recognise a name that arrives in pieces. `None` means that they are unknown.
        max_bytes: Largest size of the answer on the wire, in bytes. A larger answer raises `StreamFault`.
    """
    binding = binding or Binding(profile.name, profile.name)
    made = codec(profile.family).decoder
    return made(
        profile, binding, first_call, turn, names, keys, tools or None, stream=stream, max_bytes=max_bytes
    )
