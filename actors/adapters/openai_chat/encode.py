"""OpenAI Chat Completions and its vendors: a rendered transcript in, a request body out.

Shape only. The renderer has settled pairing, order, ids and synthetic results; a transcript that looks
wrong here is a bug there. Only the fields named here are ever sent (rulebook OAC-12, MIS-32).

Reasoning has three carriers. As `reasoning_content` it is a field with the words; as `reasoning_details` a field
with the provider's own list; as `thinking_chunk` it leads the content. Where the dialect has none, none comes here.
"""

from collections.abc import Callable, Sequence
from typing import assert_never

from actors.adapters.openai_chat.schema import moonshot
from actors.adapters.request import Request, Settings, ToolSpec
from actors.core.content import Text, Thinking
from actors.core.dialect import Dialect, Role
from actors.core.jsonio import dump, nest, quote, unquote
from actors.core.transcript import Entry, EntryBlock, WireCall, WireMedia, WireResult

_ABSENT = {"null": b',"content":null', "empty": b',"content":""', "omit": b""}


class OpenAIChatEncoder:
    """Writes entries into `messages`. Every message is closed, so fragments only ever append."""

    closing = b""

    def __init__(self, dialect: Dialect) -> None:
        self._error_prefix = quote(dialect.error_prefix)[1:-1]
        self._carrier = dialect.thinking_carrier
        self._absent = _ABSENT[dialect.absent_content]
        self._joined = min(_JOINED, dialect.max_string or _JOINED)

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
                self._assistant(entry.blocks, pieces)
            else:
                self._user(entry.blocks, pieces)
            comma = b","
        return pieces

    def _result(self, block: WireResult, pieces: list[bytes]) -> None:
        assert not block.media  # a result of this dialect is text (rulebook OAC-08)
        pieces.append(b'{"role":"tool","tool_call_id":"%b","content":' % block.id.encode())
        if block.error:  # the wire has no error flag
            pieces += (b'"', self._error_prefix, block.json[1:], b"}")
        else:
            pieces += (block.json, b"}")

    def _assistant(self, blocks: Sequence[EntryBlock], pieces: list[bytes]) -> None:
        words: list[Text | Thinking] = [block for block in blocks if type(block) is Text]
        thoughts = [block for block in blocks if type(block) is Thinking]
        pieces.append(b'{"role":"assistant"')
        if thoughts and self._carrier == "thinking_chunk":
            words = [*thoughts, *words]
        elif thoughts:
            self._thoughts(thoughts, pieces)
        if words:
            pieces.append(b',"content":')
            _content(words, self._joined, pieces)
        else:
            pieces.append(self._absent)
        separator = b',"tool_calls":['
        for call in blocks:
            if type(call) is WireCall:
                pieces += (separator, _call(call), nest(call.json), b"}}")
                separator = b","
        pieces.append(b"]}" if separator == b"," else b"}")

    def _user(self, blocks: Sequence[EntryBlock], pieces: list[bytes]) -> None:
        pieces.append(b'{"role":"user","content":')
        _content(blocks, self._joined, pieces)
        pieces.append(b"}")

    def _thoughts(self, thoughts: Sequence[Thinking], pieces: list[bytes]) -> None:
        """Write reasoning beside the content. A placeholder has words and no seal."""
        if self._carrier == "reasoning_content":
            pieces += (b',"reasoning_content":"', *[block.json[1:-1] for block in thoughts], b'"')
            return
        details = [unquote(block.seal.data).encode()[1:-1] for block in thoughts if block.seal]
        pieces += (b',"reasoning_details":[', b",".join(details), b"]")


def _call(call: WireCall) -> bytes:
    return b'{"id":"%b","type":"function","function":{"name":"%b","arguments":' % (
        call.id.encode(),
        call.name.encode(),
    )


_JOINED = 1024 * 1024
"""Bytes up to which the texts of a message are one string where the dialect says no less (OAC-14)."""
_GAP = b"\\n\\n"


def _content(blocks: Sequence[EntryBlock], longest: int, pieces: list[bytes]) -> None:
    """Write texts as one string of at most `longest` bytes, which every copy takes; a list of parts else."""
    if len(blocks) == 1 and type(blocks[0]) is Text:
        pieces.append(blocks[0].json)
        return
    words = [block.json[1:-1] for block in blocks if type(block) is Text]
    if len(words) == len(blocks) and len(joined := _GAP.join(words)) <= longest:
        pieces += (b'"', joined, b'"')
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
        case WireMedia(mime=mime, data=data, url=url):
            address = url or f"data:{mime};base64,{data}"
            pieces += (b'{"type":"image_url","image_url":{"url":', quote(address), b"}}")
        case Thinking(json=json, seal=seal):
            assert seal is not None  # the renderer lets no other pass
            pieces += (b'{"type":"thinking","thinking":[{"type":"text","text":', json, b"}]")
            more = unquote(seal.data).encode()[1:-1]  # what the chunk held besides, such as its signature
            pieces.append(b",%b}" % more if more else b"}")
        case WireCall() | WireResult():
            raise AssertionError(f"{type(block).__name__} is not content of this dialect")
        case _:
            assert_never(block)


def request(
    segments: Sequence[bytes], settings: Settings, dialect: Dialect, called: frozenset[str]
) -> Request:
    """Return the request that sends a lane's segments; see `actors.adapters.adapter.MakesRequest`."""
    losses: list[str] = []
    head = b'{"model":' + quote(settings.model)
    head += _tools(settings, dialect, losses)
    if settings.max_tokens is not None:
        head += b',"%b":%d' % (dialect.max_tokens_field.encode(), settings.max_tokens)
    if settings.temperature is not None:
        head += b',"temperature":' + dump(settings.temperature)
    if (switch := _SWITCHES.get(dialect.thinking_switch)) is not None:
        head += switch(settings, losses)
    head += _pin(settings, dialect, losses)
    if settings.stream:
        head += b',"stream":true'
        head += b',"stream_options":{"include_usage":true}' if dialect.stream_usage else b""
    head += b',"messages":['
    if settings.system and settings.system.strip():
        head += b'{"role":"system","content":' + quote(settings.system) + b"},"
    return Request("/chat/completions", (), (head, *segments, b"]}"), tuple(dict.fromkeys(losses)))


def _pin(settings: Settings, dialect: Dialect, losses: list[str]) -> bytes:
    """Return what keeps a gateway to one upstream, whose reasoning no other can read."""
    if not settings.upstream:
        return b""
    if dialect.upstream_pin == "none":
        losses.append("upstream")
        return b""
    return b',"provider":{"order":[%b],"allow_fallbacks":false}' % quote(settings.upstream)


def _tools(settings: Settings, dialect: Dialect, losses: list[str]) -> bytes:
    """Return the tools and the choice among them. An empty list is never sent (MIS-32)."""
    if not settings.tools:
        return b""
    tools = b',"tools":[' + b",".join([_tool(tool, dialect, losses) for tool in settings.tools]) + b"]"
    if settings.tool_choice == "auto":
        return tools
    choice = dialect.required_choice if settings.tool_choice == "required" else "none"
    return tools + b',"tool_choice":"%b"' % choice.encode()


def _tool(tool: ToolSpec, dialect: Dialect, losses: list[str]) -> bytes:
    parameters = tool.parameters
    if dialect.schema_subset == "moonshot":
        parameters, lost = moonshot(parameters)
        losses += [f"schema.{keyword}" for keyword in lost]
    return b'{"type":"function","function":{"name":%b,"description":%b,"parameters":%b}}' % (
        quote(tool.name),
        quote(tool.description),
        parameters,
    )


def _by_effort(settings: Settings, losses: list[str]) -> bytes:
    """Reasoning is asked for by `reasoning_effort` alone: no budget, and `none` for off."""
    if settings.thinking_tokens is not None:
        losses.append("thinking_tokens")
    effort = "none" if settings.thinking == "off" else settings.effort
    return b"" if effort is None else b',"reasoning_effort":' + quote(effort)


def _by_type(settings: Settings, losses: list[str]) -> bytes:
    """Reasoning is on or off, and that is all."""
    if settings.thinking_tokens is not None:
        losses.append("thinking_tokens")
    if settings.effort is not None:
        losses.append("effort")
    if settings.thinking == "default":
        return b""
    return b',"thinking":{"type":"%b"}' % (b"disabled" if settings.thinking == "off" else b"enabled")


def _by_reasoning(settings: Settings, losses: list[str]) -> bytes:
    """A gateway takes either a budget or an effort, and hands it on as its upstream wants it."""
    if settings.thinking == "off":
        return b',"reasoning":{"enabled":false}'
    if settings.thinking_tokens is not None:
        if settings.effort is not None:
            losses.append("effort")
        return b',"reasoning":{"max_tokens":%d}' % settings.thinking_tokens
    if settings.effort is not None:
        return b',"reasoning":{"effort":%b}' % quote(settings.effort)
    return b"" if settings.thinking == "default" else b',"reasoning":{"enabled":true}'


_SWITCHES: dict[str, Callable[[Settings, list[str]], bytes]] = {
    "effort": _by_effort,
    "type": _by_type,
    "reasoning": _by_reasoning,
}
