"""OpenAI Responses: a rendered transcript in, a request body out.

Shape only. The renderer has settled pairing, order, ids and synthetic results; a transcript that looks
wrong here is a bug there. An entry becomes a run of items. The request is stateless: nothing is stored, nothing is
referred to by id, and reasoning comes back encrypted, to be sent again.

Items stand in the order of the blocks. The renderer lets no words come behind a call, so that outputs can follow
directly after their calls (rulebook OAR-14).
"""

from collections.abc import Iterator, Sequence
from typing import assert_never

from actors.adapters.request import Request, Settings, ToolSpec
from actors.core.content import Text, Thinking
from actors.core.dialect import Dialect, Role
from actors.core.jsonio import Json, dump, nest, parse, quote, unquote
from actors.core.transcript import Entry, EntryBlock, WireCall, WireMedia, WireResult

MIN_TOKENS = 16
"""Fewest tokens of an answer that may be asked for; less is "Invalid value for 'max_output_tokens'."."""


class ResponsesEncoder:
    """Writes entries into `input`. Every item is closed, so fragments only ever append."""

    closing = b""

    def __init__(self, dialect: Dialect) -> None:
        self._error_prefix = quote(dialect.error_prefix)[1:-1]

    def fragment(self, entries: Sequence[Entry], last_role: Role | None) -> list[bytes]:
        """Return the bytes that append `entries`, in pieces."""
        pieces: list[bytes] = []
        comma = b"" if last_role is None else b","
        for entry in entries:
            for item in self._items(entry):
                pieces.append(comma)
                pieces += item
                comma = b","
        return pieces

    def _items(self, entry: Entry) -> Iterator[tuple[bytes, ...]]:
        if entry.role == "user":
            yield (b'{"type":"message","role":"user","content":', *_content(entry.blocks), b"}")
        elif entry.role == "assistant":
            yield from _said(entry.blocks)
        else:
            for block in entry.blocks:
                assert isinstance(block, WireResult)
                yield self._output(block)

    def _output(self, block: WireResult) -> tuple[bytes, ...]:
        head = b'{"type":"function_call_output","call_id":"%b","output":' % block.id.encode()
        if block.media:
            words = (Text(json=block.json),) if block.json != b'""' else ()
            return head, *_parts((*words, *block.media)), b"}"
        if block.error:  # the wire has no error flag
            return head, b'"', self._error_prefix, block.json[1:], b"}"
        return head, block.json, b"}"


def _said(blocks: Sequence[EntryBlock]) -> Iterator[tuple[bytes, ...]]:
    """Give the items of the assistant, in order. A phase is a mark on the text behind it."""
    phase = b""
    for block in blocks:
        match block:
            case Thinking(seal=seal):
                assert seal is not None
                if seal.kind == "phase":
                    phase = seal.data
                else:
                    yield (_reasoning_item(seal.data),)
            case Text(json=json):
                yield _message(json, phase)
                phase = b""
            case WireCall():
                yield _call(block)
            case WireMedia() | WireResult():
                raise AssertionError(f"{type(block).__name__} is nothing an assistant says in this dialect")
            case _:
                assert_never(block)


def _reasoning_item(sealed: Json) -> bytes:
    """Return a reasoning item as it goes back: without its id, because what follows it has none (OAR-03)."""
    item = parse(unquote(sealed).encode())
    assert isinstance(item, dict)
    return dump({key: value for key, value in item.items() if key != "id"})


def _message(text: bytes, phase: bytes) -> tuple[bytes, ...]:
    head = b'{"type":"message","role":"assistant","content":'
    return (head, text, b',"phase":', phase, b"}") if phase else (head, text, b"}")


def _call(call: WireCall) -> tuple[bytes, ...]:
    head = b'{"type":"function_call","call_id":"%b","name":"%b","arguments":'
    return head % (call.id.encode(), call.name.encode()), nest(call.json), b"}"


def _content(blocks: Sequence[EntryBlock]) -> Iterator[bytes]:
    """Write a string where there is one text, else a list of parts."""
    if len(blocks) == 1 and type(blocks[0]) is Text:
        yield blocks[0].json
    else:
        yield from _parts(blocks)


def _parts(blocks: Sequence[EntryBlock]) -> Iterator[bytes]:
    separator = b"["
    for block in blocks:
        yield separator
        yield from _part(block)
        separator = b","
    yield b"]"


def _part(block: EntryBlock) -> tuple[bytes, ...]:
    match block:
        case Text(json=json):
            return b'{"type":"input_text","text":', json, b"}"
        case WireMedia():
            return (_media(block),)
        case Thinking() | WireCall() | WireResult():
            raise AssertionError(f"{type(block).__name__} is not content of this dialect")
        case _:
            assert_never(block)


def _media(block: WireMedia) -> bytes:
    data = block.url or f"data:{block.mime};base64,{block.data}"
    if block.mime.startswith("image/"):
        return b'{"type":"input_image","detail":"auto","image_url":%b}' % quote(data)
    if block.url:
        return b'{"type":"input_file","file_url":%b}' % quote(data)
    return b'{"type":"input_file","filename":"document.pdf","file_data":%b}' % quote(data)


def request(
    segments: Sequence[bytes], settings: Settings, dialect: Dialect, called: frozenset[str]
) -> Request:
    """Return the request that sends a lane's segments; see `actors.adapters.adapter.MakesRequest`."""
    losses: list[str] = []
    head = b'{"model":%b,"store":false' % quote(settings.model)
    if dialect.thinking_carrier == "reasoning_item":
        head += b',"include":["reasoning.encrypted_content"]'
    if settings.system and settings.system.strip():
        head += b',"instructions":' + quote(settings.system)
    head += _tools(settings, dialect)
    head += _reasoning(settings, losses)
    if settings.max_tokens is not None:
        most = max(settings.max_tokens, MIN_TOKENS)
        head += b',"%b":%d' % (dialect.max_tokens_field.encode(), most)
    if settings.temperature is not None:
        head += b',"temperature":' + dump(settings.temperature)
    if settings.stream:
        head += b',"stream":true'
    return Request("/responses", (), (head + b',"input":[', *segments, b"]}"), tuple(losses))


def _tools(settings: Settings, dialect: Dialect) -> bytes:
    if not settings.tools:
        return b""
    head = b',"tools":[' + b",".join(map(_tool, settings.tools)) + b"]"
    if settings.tool_choice == "auto":
        return head
    choice = dialect.required_choice if settings.tool_choice == "required" else "none"
    return head + b',"tool_choice":' + quote(choice)


def _tool(tool: ToolSpec) -> bytes:
    return b'{"type":"function","name":%b,"description":%b,"parameters":%b,"strict":false}' % (
        quote(tool.name),
        quote(tool.description),
        tool.parameters,
    )


def _reasoning(settings: Settings, losses: list[str]) -> bytes:
    """Return how hard to think. There is no budget here, and thinking of its own accord needs no word."""
    effort = settings.effort or ("none" if settings.thinking == "off" else None)
    if settings.thinking == "manual":
        losses.append("thinking_tokens")
    return b"" if effort is None else b',"reasoning":{"effort":%b}' % quote(effort)
