"""Encode a rendered transcript as an OpenAI Chat Completions request, for OpenAI and compatible hosts.

Only the fields listed in this module are ever sent (rulebook OAC-12, MIS-32). Reasoning is sent back in one of four
forms, which are called carriers. `reasoning_content` is a field with the text. `reasoning_details` is a field with the
provider's list. `thinking_chunk` is the first part of the content. `extra_content` is the signature inside a call. For
a dialect without a carrier, the renderer passes no reasoning.
"""

from collections.abc import Mapping, Sequence

from actors.adapters.outputs import named_schema
from actors.adapters.request import Settings, ToolSpec
from actors.adapters.schemas.host import moonshot_schema
from actors.adapters.writing import (
    BaseWriter,
    RequestHead,
    Wire,
    WireTable,
    add_setting_fields,
    begin_body,
    block_mark,
    chosen_tool,
    system_prompt,
    write_json,
)
from actors.core.data.jsonio import Json, dump, is_blank, parse, quote, quote_json, unquote
from actors.core.dialects.dialect import ChatDialect
from actors.core.models.rules import Role
from actors.core.transcript.transcript import TitledMedia
from actors.core.values.content import Media, Thinking, ToolCall

_ABSENT = {"null": b',"content":null', "empty": b',"content":""', "omit": b""}


class OpenAIChatWriter(BaseWriter):
    """Writes the `messages` of a request. Each message is written once it is complete."""

    closing = b""
    natives = False

    def __init__(self, dialect: ChatDialect, last_role: Role | None) -> None:
        super().__init__(dialect, last_role)
        self._error_prefix = quote(dialect.turns.error_prefix)[1:-1]
        self._empty_result = quote(dialect.turns.empty_result or "")
        self._carrier = dialect.reasoning.carrier
        self._reasoning = b',"%b":"' % dialect.reasoning.field.encode()
        self._has_custom_tools = dialect.request.custom_tools
        self._absent_content = _ABSENT[dialect.turns.absent_content]
        self._max_joined = min(_MAX_JOINED, dialect.turns.max_string or _MAX_JOINED)
        self._role: Role | None = None  # the role of the open message
        self._words: list[Json] = []
        self._parts: list[bytes] = []  # used if the content contains media or reasoning chunks
        self._thoughts: list[Thinking] = []
        self._calls: list[bytes] = []
        self._signature: Json | None = None  # a signature that will be written with the next call

    def begin(self, role: Role) -> None:
        self._write_message()
        self._role = role
        self._signature = None

    def take_pieces(self) -> list[bytes]:
        self._write_message()
        return super().take_pieces()

    def write_text(self, text_json: Json) -> None:
        if self._parts:
            self._parts.append(_TEXT % text_json)
        else:
            self._words.append(text_json)

    def write_thinking(self, block: Thinking) -> None:
        """Add reasoning to the open message: as a field, as the first content, or as the next call's signature."""
        if self._carrier == "extra_content":
            self._signature = block.json if block.seal is None else block.seal.data
        else:
            self._thoughts.append(block)

    def write_media(self, media: Media, title: str) -> None:
        self._convert_to_parts()
        address = media.url or f"data:{media.media_type};base64,{media.data}"
        self._parts.append(b'{"type":"image_url","image_url":{"url":%b}}' % quote(address))

    def write_call(self, call_id: str, name: str, call: ToolCall) -> None:
        """Add a call to the open message. Free text is sent as a custom call if the host supports custom tools."""
        signed = b"" if self._signature is None else _SIGNED % self._signature
        self._signature = None
        if self._has_custom_tools and (text := call.text) is not None:
            opening = b'{"id":"%b","type":"custom","custom":{"name":"%b","input":%b}%b}'
            self._calls.append(opening % (call_id.encode(), name.encode(), quote(text), signed))
        else:
            opening = b'{"id":"%b","type":"function","function":{"name":"%b","arguments":%b}%b}'
            self._calls.append(opening % (call_id.encode(), name.encode(), quote_json(call.json), signed))

    def write_result(
        self, call_id: str, name: str, json: Json, failed: bool, media: Sequence[TitledMedia]
    ) -> None:
        assert not media  # a result of this dialect contains only text (rulebook OAC-08)
        opening = b'{"role":"tool","tool_call_id":"%b","content":' % call_id.encode()
        if failed:  # the wire format has no error flag, so a prefix reports the failure
            self.write_block(b'%b"%b%b}' % (opening, self._error_prefix, json[1:]))
            return
        blank = self._empty_result != b'""' and is_blank(json)
        self.write_block(opening, self._empty_result if blank else json, b"}")

    def _convert_to_parts(self) -> None:
        """Convert the texts collected so far to a list of parts."""
        self._parts += [_TEXT % json for json in self._words]
        self._words.clear()

    def _write_message(self) -> None:
        role, self._role = self._role, None
        if role is None or role == "tool":
            return
        opening, ending = _OPENING[role], b"}"
        if self._thoughts:
            opening += self._write_reasoning()
        if self._calls:
            ending = b',"tool_calls":[%b]}' % b",".join(self._calls)
            self._calls.clear()
        words = self._words
        if not words and not self._parts:
            self.write_block(opening + self._absent_content + ending)
        elif len(words) == 1 and not self._parts:
            self.write_block(opening + b',"content":', words[0], ending)
        elif (
            words and len(joined := _PARAGRAPH_BREAK.join([json[1:-1] for json in words])) <= self._max_joined
        ):
            # Every host accepts a single string as content.
            self.write_block(b'%b,"content":"%b"%b' % (opening, joined, ending))
        else:
            self._convert_to_parts()
            self.write_block(b'%b,"content":[%b]%b' % (opening, b",".join(self._parts), ending))
        words.clear()
        self._parts.clear()

    def _write_reasoning(self) -> bytes:
        """Return the message's reasoning as a field. If reasoning is part of the content in this dialect, add it there
        and return b"".
        """
        thoughts, self._thoughts = self._thoughts, []
        if self._carrier == "thinking_chunk":
            self._parts += map(_thinking_chunk, thoughts)
            self._convert_to_parts()
            return b""
        if self._carrier == "reasoning_content":
            if len(thoughts) == 1:
                return self._reasoning + thoughts[0].json[1:]
            return b'%b%b"' % (self._reasoning, b"".join([block.json[1:-1] for block in thoughts]))
        details = [unquote(block.seal.data).encode()[1:-1] for block in thoughts if block.seal]
        return b',"reasoning_details":[%b]' % b",".join(details)


_OPENING: Mapping[Role, bytes] = {"user": b'{"role":"user"', "assistant": b'{"role":"assistant"'}
_SIGNED = b',"extra_content":{"google":{"thought_signature":%b}}'
_TEXT = b'{"type":"text","text":%b}'
_MAX_JOINED = 1024 * 1024
"""Maximum size in bytes of the string into which the texts of a message are joined. The dialect may have a lower limit
(OAC-14).
"""
_PARAGRAPH_BREAK = b"\\n\\n"


def _thinking_chunk(block: Thinking) -> bytes:
    assert block.seal is not None  # the renderer passes only reasoning with a seal here
    more = unquote(block.seal.data).encode()[1:-1]  # other fields of the chunk, such as its signature
    held = b'{"type":"thinking","thinking":[{"type":"text","text":%b}]' % block.json
    return held + b",%b}" % more if more else held + b"}"


def request_head(settings: Settings, dialect: ChatDialect, _: frozenset[str]) -> RequestHead:
    """Return the head of a request; see `actors.adapters.codec.Codec`."""
    losses: list[str] = []
    counted = settings.stream and dialect.request.stream_usage
    if counted and "stream_options" in settings.omitted:
        counted = False
        losses.append("stream_options")
    table: WireTable = {
        "model": settings.model,
        "tools": [_tool_json(tool, dialect, losses) for tool in settings.tools],
        "tool_choice": _tool_choice(settings, dialect),
        dialect.request.max_tokens_field: settings.max_tokens,
        "response_format": _response_format(settings),
        **_reasoning_fields(settings, dialect, losses),
        "provider": _pin_upstream(settings, dialect, losses),
    }
    after: dict[str, Wire] = {
        "stream": settings.stream or None,
        "stream_options": {"include_usage": True} if counted else None,
    }
    said, ends = system_prompt(settings), block_mark(settings, dialect)
    content: Wire = [{"type": "text", "text": said, **ends}] if ends else said
    first = write_json({"role": "system", "content": content}) + b"," if said else b""
    return RequestHead(
        "/chat/completions",
        write_json(add_setting_fields(table, settings, dialect))[:-1],
        b"," + begin_body(after, "messages")[1:] + first,
        losses=tuple(dict.fromkeys(losses)),
        assumed=_assumed_settings(settings, dialect),
    )


def _assumed_settings(settings: Settings, dialect: ChatDialect) -> tuple[str, ...]:
    """Return the assumed settings. The effort `none` counts as assumed if the model requires it with tools (OAC-20) and
    the caller did not turn thinking off.
    """
    demands = dialect.model.chat_tools == "effort_none" and dialect.reasoning.switch == "effort"
    sends = settings.effort == "none" and settings.thinking != "off"
    return ("reasoning_effort none",) if demands and settings.tools and sends else ()


def _response_format(settings: Settings) -> Wire:
    """Return the `response_format` field for a structured answer, or None."""
    if settings.output is None:
        return None
    return {"type": "json_schema", "json_schema": named_schema(settings.output)}


def _pin_upstream(settings: Settings, dialect: ChatDialect, losses: list[str]) -> Wire:
    """Return the field that makes a gateway use only the upstream provider `settings.upstream`. It is needed because
    other upstreams cannot read that provider's reasoning.

    Return None if the settings name no upstream. If the gateway has no such field, report `upstream` as a loss.
    """
    if settings.upstream and dialect.request.upstream_pin == "provider":
        return {"order": [settings.upstream], "allow_fallbacks": False}
    losses += ["upstream"] if settings.upstream else []
    return None


def _tool_choice(settings: Settings, dialect: ChatDialect) -> Wire:
    choice = chosen_tool(settings)
    if isinstance(choice, ToolSpec):
        kind = "custom" if _is_custom_tool(choice, dialect) else "function"
        return {"type": kind, kind: {"name": choice.name}}
    return dialect.request.required_choice if choice == "required" else choice


def _is_custom_tool(tool: ToolSpec, dialect: ChatDialect) -> bool:
    return tool.form is not None and dialect.request.custom_tools


def _tool_json(tool: ToolSpec, dialect: ChatDialect, losses: list[str]) -> Wire:
    named = {"name": tool.name, "description": tool.description}
    if tool.form is not None and _is_custom_tool(tool, dialect):
        return {"type": "custom", "custom": {**named, "format": _text_format(tool.form)}}
    parameters = tool.parameters
    if dialect.request.schema_subset == "moonshot":
        parameters, lost = moonshot_schema(parameters)
        losses += [f"schema.{keyword}" for keyword in lost]
    return {"type": "function", "function": {**named, "parameters": parameters}}


def _text_format(text_format: Json) -> Json:
    """Return the format of a tool's free text. In Chat Completions, a grammar is nested in an additional object."""
    said = parse(text_format)
    if not isinstance(said, dict) or said.get("type") != "grammar":
        return text_format
    return dump({"type": "grammar", "grammar": {key: said[key] for key in said if key != "type"}})


def _reasoning_fields(settings: Settings, dialect: ChatDialect, losses: list[str]) -> Mapping[str, Wire]:
    """Return the fields that request reasoning: an effort, an on/off switch, or a gateway's budget or effort."""
    off, effort, budget = settings.thinking == "off", settings.effort, settings.thinking_tokens
    asked = settings.thinking != "default"
    match dialect.reasoning.switch:
        case "effort":
            return {"reasoning_effort": "none" if off else effort}
        case "type":
            on = "enabled" if "enabled" in dialect.model.thinking else "adaptive"
            kind = ("disabled" if off else on) if asked else None
            return {"thinking": {"type": kind}, "reasoning_effort": effort}
        case "reasoning" if off or (budget is None and effort is None):
            return {"reasoning": {"enabled": not off if asked else None}}
        case "reasoning":  # a gateway translates a budget or an effort for its upstream
            losses += ["effort"] if budget is not None and effort is not None else []
            return {"reasoning": {"max_tokens": budget, "effort": effort if budget is None else None}}
        case _:
            return {}
