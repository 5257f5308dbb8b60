"""Anthropic Messages: a rendered transcript in, a request body out.

Shape only. The renderer has settled pairing, order, ids and synthetic results; a transcript that looks
wrong here is a bug there. Only the fields named here are ever sent (rulebook ANT-28).
"""

from collections.abc import Sequence
from typing import assert_never

from actors.adapters.open_messages import OpenMessages
from actors.adapters.request import Request, Settings, ToolSpec
from actors.adapters.settings import room, thinking_switch
from actors.core.content import Text, Thinking
from actors.core.dialect import Dialect
from actors.core.jsonio import Json, dump, quote, unquote
from actors.core.transcript import EntryBlock, WireCall, WireMedia, WireResult

VERSION = "2023-06-01"
UNSIGNED = "unsigned"
"""Kind of the seal of thinking that came without a signature, from a copy that wants it back all the same."""


class AnthropicEncoder(OpenMessages):
    """Writes entries into `messages`."""

    opening = b'{"role":"%b","content":['

    def append(self, blocks: Sequence[EntryBlock], separator: bytes, pieces: list[bytes]) -> None:
        """Write `blocks` into the open message, `separator` before the first of them."""
        for block in blocks:
            pieces.append(separator)
            _block(block, pieces)
            separator = b","


def _block(block: EntryBlock, pieces: list[bytes]) -> None:
    match block:
        case Text(json=json):
            pieces += (b'{"type":"text","text":', json, b"}")
        case WireResult(id=id, json=json, error=error):
            pieces.append(b'{"type":"tool_result","tool_use_id":"%b","content":' % id.encode())
            _result_content(_said(json) if error else json, block.media, pieces)
            pieces.append(b',"is_error":true}' if error else b"}")
        case WireCall(id=id, name=name, json=json):
            pieces.append(b'{"type":"tool_use","id":"%b","name":"%b","input":' % (id.encode(), name.encode()))
            pieces += (json, b"}")
        case Thinking():
            _thinking(block, pieces)
        case WireMedia():
            _media(block, pieces)
        case _:
            assert_never(block)


_MAYBE_BLANK = frozenset(b'" \\') | frozenset(range(0x80, 0x100))
_NO_WORDS = quote("(The tool failed and said nothing.)")


def _said(json: Json) -> Json:
    """Return the text of a failed result, or what stands for one that is blank (ANT-53)."""
    return _NO_WORDS if json[1] in _MAYBE_BLANK and not unquote(json).strip() else json


def _result_content(json: Json, media: Sequence[WireMedia], pieces: list[bytes]) -> None:
    """Write a string, or a list of blocks where there are media. An empty text is no block (ANT-20)."""
    if not media:
        pieces.append(json)
        return
    separator = b"["
    if json != b'""':
        pieces += (b'[{"type":"text","text":', json, b"}")
        separator = b","
    for item in media:
        pieces.append(separator)
        _media(item, pieces)
        separator = b","
    pieces.append(b"]")


def _thinking(block: Thinking, pieces: list[bytes]) -> None:
    """Write a sealed thinking block as it came. A placeholder has words alone, as what a copy of the API thinks."""
    if block.seal is None or block.seal.kind == UNSIGNED:
        pieces += (b'{"type":"thinking","thinking":', block.json, b',"signature":""}')
    elif block.seal.kind == "redacted":
        pieces += (b'{"type":"redacted_thinking","data":', block.seal.data, b"}")
    else:
        pieces += (b'{"type":"thinking","thinking":', block.json, b',"signature":', block.seal.data, b"}")


def _media(block: WireMedia, pieces: list[bytes]) -> None:
    kind = b"image" if block.mime.startswith("image/") else b"document"
    if block.url:
        source = b'{"type":"url","url":%b}' % quote(block.url)
    else:
        source = b'{"type":"base64","media_type":%b,"data":%b}' % (quote(block.mime), quote(block.data))
    pieces.append(b'{"type":"%b","source":%b}' % (kind, source))


def request(
    segments: Sequence[bytes], settings: Settings, dialect: Dialect, called: frozenset[str]
) -> Request:
    """Return the request that sends a lane's segments; see `actors.adapters.adapter.MakesRequest`."""
    head = b'{"model":%b,"max_tokens":%d' % (
        quote(settings.model),
        room(settings, dialect.max_tokens_default or 8192),
    )
    if settings.tools:
        head += b',"tools":[' + b",".join(map(_tool, settings.tools)) + b"]"
        if settings.tool_choice != "auto":
            choice = b"any" if settings.tool_choice == "required" else b"none"
            head += b',"tool_choice":{"type":"%b"}' % choice
    if settings.temperature is not None:
        head += b',"temperature":' + dump(settings.temperature)
    head += _reasons(settings)
    if settings.system and settings.system.strip():
        head += b',"system":[{"type":"text","text":' + quote(settings.system) + b"}]"
    if settings.stream:
        head += b',"stream":true'
    head += b',"messages":['
    return Request("/v1/messages", (("anthropic-version", VERSION),), (head, *segments, b"]}"))


def _reasons(settings: Settings) -> bytes:
    """Return how thinking is asked for."""
    switch = thinking_switch(settings)
    asked = b"," + switch if switch else b""
    return asked + (b',"output_config":{"effort":%b}' % quote(settings.effort) if settings.effort else b"")


def _tool(tool: ToolSpec) -> bytes:
    return b'{"name":%b,"description":%b,"input_schema":%b}' % (
        quote(tool.name),
        quote(tool.description),
        tool.parameters,
    )
