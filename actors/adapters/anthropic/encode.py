"""Anthropic Messages: a rendered transcript in, a request body out.

Shape only. The renderer has settled pairing, order, ids and synthetic results; a transcript that looks
wrong here is a bug there. Only the fields named here are ever sent (rulebook ANT-28).
"""

from collections.abc import Sequence
from typing import assert_never

from actors.adapters.request import Request, Settings, ToolSpec
from actors.core.content import Media, Text, Thinking
from actors.core.dialect import Dialect, Role
from actors.core.jsonio import dump, quote
from actors.core.transcript import Entry, EntryBlock, WireCall, WireResult

VERSION = "2023-06-01"


class AnthropicEncoder:
    """Writes entries into `messages`. The last message stays open: a neighbour of its role continues it."""

    closing = b"]}"

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def fragment(self, entries: Sequence[Entry], last_role: Role | None) -> list[bytes]:
        """Return the bytes that append `entries` after an open message of `last_role`, in pieces."""
        pieces: list[bytes] = []
        for entry in entries:
            separator = b","
            if entry.role != last_role:
                opening = b'{"role":"%b","content":[' % entry.role.encode()
                pieces.append(opening if last_role is None else b"]}," + opening)
                separator = b""
                last_role = entry.role
            for block in entry.blocks:
                pieces.append(separator)
                _block(block, pieces)
                separator = b","
        return pieces


def _block(block: EntryBlock, pieces: list[bytes]) -> None:
    match block:
        case Text(json=json):
            pieces += (b'{"type":"text","text":', json, b"}")
        case WireResult(id=id, json=json, error=error):
            pieces += (b'{"type":"tool_result","tool_use_id":"%b","content":' % id.encode(), json)
            pieces.append(b',"is_error":true}' if error else b"}")
        case WireCall(id=id, name=name, json=json):
            pieces.append(b'{"type":"tool_use","id":"%b","name":"%b","input":' % (id.encode(), name.encode()))
            pieces += (json, b"}")
        case Thinking():
            _thinking(block, pieces)
        case Media():
            _media(block, pieces)
        case _:
            assert_never(block)


def _thinking(block: Thinking, pieces: list[bytes]) -> None:
    """Write a sealed thinking block as it came; the renderer lets no other pass."""
    assert block.seal is not None
    if block.seal.kind == "redacted":
        pieces += (b'{"type":"redacted_thinking","data":', block.seal.data, b"}")
    else:
        pieces += (b'{"type":"thinking","thinking":', block.json, b',"signature":', block.seal.data, b"}")


def _media(block: Media, pieces: list[bytes]) -> None:
    kind = b"image" if block.mime.startswith("image/") else b"document"
    if block.url:
        source = b'{"type":"url","url":%b}' % quote(block.url)
    else:
        source = b'{"type":"base64","media_type":%b,"data":%b}' % (quote(block.mime), quote(block.data))
    pieces.append(b'{"type":"%b","source":%b}' % (kind, source))


def request(segments: Sequence[bytes], settings: Settings, max_tokens_default: int) -> Request:
    """Return the request that sends a lane's segments.

    Args:
        segments: The lane's text, its last message closed.
        settings: What the request says besides; see `Settings`.
        max_tokens_default: The dialect's, since the field is required.
    """
    head = b'{"model":%b,"max_tokens":%d' % (
        quote(settings.model),
        max_tokens_default if settings.max_tokens is None else settings.max_tokens,
    )
    if settings.tools:
        head += b',"tools":[' + b",".join(map(_tool, settings.tools)) + b"]"
        if settings.tool_choice != "auto":
            choice = b"any" if settings.tool_choice == "required" else b"none"
            head += b',"tool_choice":{"type":"%b"}' % choice
    if settings.temperature is not None:
        head += b',"temperature":' + dump(settings.temperature)
    if settings.thinking == "adaptive":
        head += b',"thinking":{"type":"adaptive"}'
    if settings.system and settings.system.strip():
        head += b',"system":[{"type":"text","text":' + quote(settings.system) + b"}]"
    if settings.stream:
        head += b',"stream":true'
    head += b',"messages":['
    return Request("/v1/messages", (("anthropic-version", VERSION),), (head, *segments, b"]}"))


def _tool(tool: ToolSpec) -> bytes:
    return b'{"name":%b,"description":%b,"input_schema":%b}' % (
        quote(tool.name),
        quote(tool.description),
        tool.parameters,
    )
