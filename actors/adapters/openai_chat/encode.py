"""OpenAI Chat Completions and its vendors: a rendered transcript in, a request body out.

Shape only. The renderer has settled pairing, order, ids and synthetic results; a transcript that looks
wrong here is a bug there. Only the fields named here are ever sent (rulebook OAC-12, MIS-32).

Reasoning has four carriers. As `reasoning_content` it is a field with the words; as `reasoning_details` a field
with the provider's own list; as `thinking_chunk` it leads the content; as `extra_content` it is the signature of a
call, and stands in the call. Where the dialect has none, none comes here.
"""

from collections.abc import Callable, Sequence

from actors.adapters.marks import mark, marked, routed
from actors.adapters.openai_chat.schema import moonshot
from actors.adapters.request import Request, Settings, ToolSpec
from actors.core.concerns import Role
from actors.core.content import Media, Thinking, ToolCall
from actors.core.dialect import ChatDialect
from actors.core.jsonio import Json, dump, nest, parse, quote, unquote
from actors.core.transcript import Titled, TranscriptFacts

_MAYBE_BLANK = frozenset(b'" \\') | frozenset(range(0x80, 0x100))
_ABSENT = {"null": b',"content":null', "empty": b',"content":""', "omit": b""}


class OpenAIChatWriter:
    """Writes `messages`. Every message is closed, so what is appended never changes what was."""

    def __init__(self, dialect: ChatDialect, last_role: Role | None) -> None:
        self._error_prefix = quote(dialect.turns.error_prefix)[1:-1]
        self._nothing = quote(dialect.turns.empty_result or "")
        self._carrier = dialect.reasoning.carrier
        self._reasoning = b',"%b":"' % dialect.reasoning.field.encode()
        self._custom = dialect.request.custom_tools
        self._absent = _ABSENT[dialect.turns.absent_content]
        self._joined = min(_JOINED, dialect.turns.max_string or _JOINED)
        self._comma = b"" if last_role is None else b","
        self._pieces: list[bytes] = []
        self._role: Role | None = None
        self._words: list[Json] = []
        self._parts: list[bytes] = []  # where the content is more than words: media, reasoning in chunks
        self._thoughts: list[Thinking] = []
        self._calls: list[bytes] = []
        self._signature: Json | None = None  # of the call that comes next

    def begin(self, role: Role) -> None:
        """Let what follows be a message of its own in this role."""
        self._end()
        self._role = role
        self._signature = None

    def taken(self) -> list[bytes]:
        """Return what was written since this was asked last."""
        self._end()
        written, self._pieces = self._pieces, []
        return written

    def text(self, json: Json) -> None:
        """Take words of the open message."""
        if self._parts:
            self._parts.append(_TEXT % json)
        else:
            self._words.append(json)

    def thinking(self, block: Thinking) -> None:
        """Take reasoning of the open message: it goes beside the content, leads it, or signs the call behind it."""
        if self._carrier == "extra_content":
            self._signature = block.json if block.seal is None else block.seal.data
        else:
            self._thoughts.append(block)

    def native(self, part: bytes) -> None:
        """Write nothing: a message of this family holds no part of its provider's own, and the renderer sends none."""

    def media(self, media: Media, title: str) -> None:
        """Take an image of the open message."""
        self._spread()
        address = media.url or f"data:{media.mime};base64,{media.data}"
        self._parts.append(b'{"type":"image_url","image_url":{"url":%b}}' % quote(address))

    def call(self, call_id: str, name: str, call: ToolCall) -> None:
        """Take a call of the open message: free text as it is where the host has tools for it."""
        signed = b"" if self._signature is None else _SIGNED % self._signature
        self._signature = None
        if self._custom and (text := call.text) is not None:
            opening = b'{"id":"%b","type":"custom","custom":{"name":"%b","input":%b}%b}'
            self._calls.append(opening % (call_id.encode(), name.encode(), quote(text), signed))
        else:
            opening = b'{"id":"%b","type":"function","function":{"name":"%b","arguments":%b}%b}'
            self._calls.append(opening % (call_id.encode(), name.encode(), nest(call.json), signed))

    def result(self, call_id: str, name: str, json: Json, failed: bool, media: Sequence[Titled]) -> None:
        """Write a `tool` message."""
        assert not media  # a result of this dialect is text (rulebook OAC-08)
        opening = b'%b{"role":"tool","tool_call_id":"%b","content":' % (self._comma, call_id.encode())
        self._comma = b","
        if failed:  # the wire has no error flag
            self._pieces += (opening, b'"', self._error_prefix, json[1:], b"}")
        elif self._nothing != b'""' and json[1] in _MAYBE_BLANK and not unquote(json).strip():
            self._pieces += (opening, self._nothing, b"}")
        else:
            self._pieces += (opening, json, b"}")

    def _spread(self) -> None:
        """Let the content be a list of parts from here on."""
        self._parts += [_TEXT % json for json in self._words]
        self._words.clear()

    def _end(self) -> None:
        """Write the open message."""
        role, self._role = self._role, None
        if role is None or role == "tool":
            return
        pieces = self._pieces
        pieces += (self._comma, b'{"role":"assistant"' if role == "assistant" else b'{"role":"user"')
        self._comma = b","
        if self._thoughts:
            self._think()
        if self._words or self._parts:
            pieces.append(b',"content":')
            self._content()
        else:
            pieces.append(self._absent)
        pieces += (b',"tool_calls":[', b",".join(self._calls), b"]}") if self._calls else (b"}",)
        self._calls.clear()

    def _content(self) -> None:
        """Write texts as one string that every copy takes; a list of parts else."""
        words = self._words
        if len(words) == 1 and not self._parts:
            self._pieces.append(words[0])
        elif words and len(joined := _GAP.join([json[1:-1] for json in words])) <= self._joined:
            self._pieces += (b'"', joined, b'"')
        else:
            self._spread()
            self._pieces += (b"[", b",".join(self._parts), b"]")
        words.clear()
        self._parts.clear()

    def _think(self) -> None:
        """Write reasoning beside the content, or at its beginning. A placeholder has words and no seal."""
        if self._carrier == "thinking_chunk":
            self._parts += map(_chunk, self._thoughts)
            self._spread()
        elif self._carrier == "reasoning_content":
            words = [block.json[1:-1] for block in self._thoughts]
            self._pieces += (self._reasoning, *words, b'"')
        else:
            details = [unquote(block.seal.data).encode()[1:-1] for block in self._thoughts if block.seal]
            self._pieces += (b',"reasoning_details":[', b",".join(details), b"]")
        self._thoughts.clear()


_SIGNED = b',"extra_content":{"google":{"thought_signature":%b}}'
_TEXT = b'{"type":"text","text":%b}'
_JOINED = 1024 * 1024
"""Bytes up to which the texts of a message are one string where the dialect says no less (OAC-14)."""
_GAP = b"\\n\\n"


def _chunk(block: Thinking) -> bytes:
    assert block.seal is not None  # the renderer lets no other pass
    more = unquote(block.seal.data).encode()[1:-1]  # what the chunk held besides, such as its signature
    held = b'{"type":"thinking","thinking":[{"type":"text","text":%b}]' % block.json
    return held + b",%b}" % more if more else held + b"}"


def request(
    segments: Sequence[bytes], settings: Settings, dialect: ChatDialect, facts: TranscriptFacts
) -> Request:
    """Return the request that sends a lane's segments; see `actors.adapters.codec.Codec`."""
    losses: list[str] = []
    opening = b'{"model":' + quote(settings.model)
    opening += _tools(settings, dialect, losses)
    if settings.max_tokens is not None:
        opening += b',"%b":%d' % (dialect.request.max_tokens_field.encode(), settings.max_tokens)
    if settings.temperature is not None:
        opening += b',"temperature":' + dump(settings.temperature)
    if (switch := _SWITCHES.get(dialect.reasoning.switch)) is not None:
        opening += switch(settings, losses)
    opening += _pin(settings, dialect, losses) + routed(settings, dialect, facts)
    if settings.stream:
        opening += b',"stream":true'
        opening += b',"stream_options":{"include_usage":true}' if dialect.request.stream_usage else b""
    opening += b',"messages":['
    if settings.system and settings.system.strip():
        opening += b'{"role":"system","content":' + _system(settings.system, mark(settings, dialect)) + b"},"
    said = marked(segments, settings, dialect, facts, b"")
    return Request("/chat/completions", (), (opening, *said, b"]}"), tuple(dict.fromkeys(losses)))


def _system(words: str, ends: bytes) -> bytes:
    """Return the system prompt: a string, or a part with a mark."""
    return b'[{"type":"text","text":%b%b}]' % (quote(words), ends) if ends else quote(words)


def _pin(settings: Settings, dialect: ChatDialect, losses: list[str]) -> bytes:
    """Return what keeps a gateway to one upstream, whose reasoning no other can read."""
    if not settings.upstream:
        return b""
    if dialect.request.upstream_pin == "none":
        losses.append("upstream")
        return b""
    return b',"provider":{"order":[%b],"allow_fallbacks":false}' % quote(settings.upstream)


def _tools(settings: Settings, dialect: ChatDialect, losses: list[str]) -> bytes:
    """Return the tools and the choice among them. An empty list is never sent (MIS-32)."""
    if not settings.tools:
        return b""
    tools = b',"tools":[' + b",".join([_tool(tool, dialect, losses) for tool in settings.tools]) + b"]"
    if settings.tool_choice == "auto":
        return tools
    choice = dialect.request.required_choice if settings.tool_choice == "required" else "none"
    return tools + b',"tool_choice":"%b"' % choice.encode()


def _tool(tool: ToolSpec, dialect: ChatDialect, losses: list[str]) -> bytes:
    if tool.form is not None and dialect.request.custom_tools:
        return _custom_tool(tool, tool.form)
    parameters = tool.parameters
    if dialect.request.schema_subset == "moonshot":
        parameters, lost = moonshot(parameters)
        losses += [f"schema.{keyword}" for keyword in lost]
    return b'{"type":"function","function":{"name":%b,"description":%b,"parameters":%b}}' % (
        quote(tool.name),
        quote(tool.description),
        parameters,
    )


def _custom_tool(tool: ToolSpec, form: Json) -> bytes:
    """Return a tool that takes free text. A grammar stands in an object of its own here."""
    said = parse(form)
    if isinstance(said, dict) and said.get("type") == "grammar":
        grammar = {key: value for key, value in said.items() if key != "type"}
        form = dump({"type": "grammar", "grammar": grammar})
    opening = b'{"type":"custom","custom":{"name":%b,"description":%b,"format":%b}}'
    return opening % (quote(tool.name), quote(tool.description), form)


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
