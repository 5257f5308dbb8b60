"""OpenAI Chat Completions: a rendered transcript in, a request body out.

Shape only. The renderer has settled pairing, order, ids and synthetic results; a transcript that looks
wrong here is a bug there. Only the fields named here are ever sent (rulebook OAC-12).
"""

from collections.abc import Sequence
from typing import assert_never

from actors.adapters.request import Request, Settings, ToolSpec
from actors.core.content import Media, Text, Thinking
from actors.core.dialect import Dialect, Role
from actors.core.jsonio import dump, nest, quote
from actors.core.transcript import Entry, EntryBlock, WireCall, WireResult


class OpenAIChatEncoder:
    """Writes entries into `messages`. Every message is closed, so fragments only ever append."""

    closing = b""

    def __init__(self, dialect: Dialect) -> None:
        self._error_prefix = quote(dialect.error_prefix)[1:-1]

    def fragment(self, entries: Sequence[Entry], last_role: Role | None) -> list[bytes]:
        """Return the bytes that append `entries`, in pieces."""
        pieces: list[bytes] = []
        comma = b"" if last_role is None else b","
        for entry in entries:
            if entry.role == "tool":
                for block in entry.blocks:
                    assert isinstance(block, WireResult)
                    pieces.append(comma)
                    self._result(block, pieces)
                    comma = b","
                continue
            pieces.append(comma)
            if entry.role == "assistant":
                _assistant(entry.blocks, pieces)
            else:
                _user(entry.blocks, pieces)
            comma = b","
        return pieces

    def _result(self, block: WireResult, pieces: list[bytes]) -> None:
        pieces.append(b'{"role":"tool","tool_call_id":"%b","content":' % block.id.encode())
        if block.error:  # the wire has no error flag
            pieces += (b'"', self._error_prefix, block.json[1:], b"}")
        else:
            pieces += (block.json, b"}")


def _user(blocks: Sequence[EntryBlock], pieces: list[bytes]) -> None:
    pieces.append(b'{"role":"user","content":')
    _content(blocks, pieces)
    pieces.append(b"}")


def _assistant(blocks: Sequence[EntryBlock], pieces: list[bytes]) -> None:
    words = [block for block in blocks if type(block) is Text]
    calls = [block for block in blocks if type(block) is WireCall]
    pieces.append(b'{"role":"assistant","content":')
    if words:
        _content(words, pieces)
    else:
        pieces.append(b"null")
    if calls:
        separator = b',"tool_calls":['
        for call in calls:
            pieces += (separator, _call(call), nest(call.json), b"}}")
            separator = b","
        pieces.append(b"]")
    pieces.append(b"}")


def _call(call: WireCall) -> bytes:
    return b'{"id":"%b","type":"function","function":{"name":"%b","arguments":' % (
        call.id.encode(),
        call.name.encode(),
    )


def _content(blocks: Sequence[EntryBlock], pieces: list[bytes]) -> None:
    """Write a string where there is one text, else a list of parts."""
    if len(blocks) == 1 and type(blocks[0]) is Text:
        pieces.append(blocks[0].json)
        return
    separator = b"["
    for block in blocks:
        pieces.append(separator)
        _part(block, pieces)
        separator = b","
    pieces.append(b"]")


def _part(block: EntryBlock, pieces: list[bytes]) -> None:
    match block:
        case Text(json=json):
            pieces += (b'{"type":"text","text":', json, b"}")
        case Media(mime=mime, data=data, url=url):
            address = url or f"data:{mime};base64,{data}"
            pieces += (b'{"type":"image_url","image_url":{"url":', quote(address), b"}}")
        case Thinking() | WireCall() | WireResult():
            raise AssertionError(f"{type(block).__name__} is not content of this dialect")
        case _:
            assert_never(block)


def request(segments: Sequence[bytes], settings: Settings) -> Request:
    """Return the request that sends a lane's segments.

    Args:
        segments: The lane's text, its last message closed.
        settings: What the request says besides; see `Settings`.
    """
    head = b'{"model":' + quote(settings.model)
    if settings.tools:
        head += b',"tools":[' + b",".join(map(_tool, settings.tools)) + b"]"
        if settings.tool_choice != "auto":
            head += b',"tool_choice":"%b"' % settings.tool_choice.encode()
    if settings.max_tokens is not None:
        head += b',"max_completion_tokens":%d' % settings.max_tokens
    if settings.temperature is not None:
        head += b',"temperature":' + dump(settings.temperature)
    if settings.stream:
        head += b',"stream":true,"stream_options":{"include_usage":true}'
    head += b',"messages":['
    if settings.system:
        head += b'{"role":"system","content":' + quote(settings.system) + b"},"
    return Request("/chat/completions", (), (head, *segments, b"]}"))


def _tool(tool: ToolSpec) -> bytes:
    return b'{"type":"function","function":{"name":%b,"description":%b,"parameters":%b}}' % (
        quote(tool.name),
        quote(tool.description),
        tool.parameters,
    )
