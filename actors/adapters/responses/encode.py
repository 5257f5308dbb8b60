"""Encode a rendered transcript as an OpenAI Responses request.

A message becomes a sequence of items. Requests are stateless: the provider stores nothing, and items are not referenced
by id. The provider returns encrypted reasoning, and later requests send it again.

Items are in the order of the blocks. The renderer puts no text after a call, so outputs directly follow their calls
(rulebook OAR-14).
"""

import re
from collections.abc import Sequence

from actors.adapters.outputs import named_schema
from actors.adapters.request import Settings, ToolSpec
from actors.adapters.writing import (
    BaseWriter,
    RequestHead,
    Wire,
    WireTable,
    add_setting_fields,
    chosen_tool,
    system_prompt,
    write_json,
)
from actors.core.data.jsonio import Json, dump, parse, quote, quote_json, unquote_bytes
from actors.core.dialects.dialect import ResponsesDialect
from actors.core.models.rules import Role
from actors.core.transcript.transcript import TitledMedia, local_name, tool_name
from actors.core.values.content import Media, Thinking, ToolCall

MIN_TOKENS = 16
"""Smallest token limit of an answer. The API rejects a smaller limit with "Invalid value for 'max_output_tokens'."."""


class ResponsesWriter(BaseWriter):
    """Writes the `input` of a request, item by item. Items of the provider's own tools are written verbatim.

    Items have no ids (OAR-04), unless the dialect requires them (`ResponsesReasoning.replay_item_ids`). In this case,
    reasoning is held back until the next item, because either both items have ids, or neither does.
    """

    closing = b""

    def __init__(self, dialect: ResponsesDialect, last_role: Role | None) -> None:
        super().__init__(dialect, last_role)
        self._error_prefix = quote(dialect.turns.error_prefix)[1:-1]
        self._pattern = dialect.ids.tool_name_pattern
        self._by_user = False
        self._content: list[bytes] = []  # the parts of the user's open message
        self._only: Json | None = None  # the text of the open message, if it is the message's only part
        self._phase = b""
        self._keeps_ids = dialect.reasoning.replay_item_ids == "all"
        self._held_reasoning: list[bytes] = []  # reasoning items held back until the next item
        self._id = b""  # the id of the next item
        self._has_ids = False  # whether all items of this answer since the last reasoning item have ids
        self._free: set[str] = set()  # ids of unanswered calls with free text

    def begin(self, role: Role) -> None:
        """Begin a message. A user's message becomes a single item. Any other message becomes one item per block."""
        if self._content:
            self._write_user_message()
        self._by_user, self._phase, self._id, self._has_ids = role == "user", b"", b"", False

    def take_pieces(self) -> list[bytes]:
        self._write_user_message()
        return super().take_pieces()

    def write_text(self, text_json: Json) -> None:
        """Write the assistant's text as a message with its phase. A user's text is added to the open message."""
        if self._by_user:
            self._only = None if self._content else text_json
            self._content.append(_TEXT % text_json)
            return
        item_id = self._next_id(b'"msg_') if self._keeps_ids else b""
        ending = b',"phase":%b}' % self._phase if self._phase else b"}"
        self.write_block(b'{"type":"message"%b,"role":"assistant","content":' % item_id, text_json, ending)
        self._phase = b""

    def write_thinking(self, block: Thinking) -> None:
        """Write a reasoning item verbatim. If the block stores a phase or an id, keep it for the next item."""
        assert block.seal is not None
        if block.seal.kind == "phase":
            self._phase = block.seal.data
        elif block.seal.kind == "item":
            self._id = block.seal.data
        elif self._keeps_ids:
            self._held_reasoning.append(unquote_bytes(block.seal.data))
        else:
            item = unquote_bytes(block.seal.data)
            self.write_block(_without_id(item) or item)

    def write_native(self, part: bytes) -> None:
        if self._keeps_ids:
            self._next_id(None)
        super().write_native(part)

    def write_media(self, media: Media, title: str) -> None:
        self._only = None
        self._content.append(_media_json(media))

    def write_call(self, call_id: str, name: str, call: ToolCall) -> None:
        """Write a `function_call` item, or a `custom_tool_call` item for free text."""
        group = b""
        if call.namespace:
            group = b',"namespace":"%b"' % tool_name(call.namespace, self._pattern).encode()
            name = tool_name(local_name(call.name, call.namespace), self._pattern)
        if (text := call.text) is not None:
            self._free.add(call_id)
            kind, key, given, prefix = b"custom_tool_call", b"input", quote(text), b'"ctc_'
        else:
            kind, key, given, prefix = b"function_call", b"arguments", quote_json(call.json), b'"fc_'
        item_id = self._next_id(prefix) if self._keeps_ids else b""
        opening = b'{"type":"%b"%b,"call_id":"%b","name":"%b"%b,"%b":'
        self.write_block(opening % (kind, item_id, call_id.encode(), name.encode(), group, key), given, b"}")

    def write_result(
        self, call_id: str, name: str, json: Json, failed: bool, media: Sequence[TitledMedia]
    ) -> None:
        """Write a `function_call_output` item, or a `custom_tool_call_output` item for a call with free text."""
        kind = b"function_call_output"
        if call_id in self._free:
            self._free.discard(call_id)
            kind = b"custom_tool_call_output"
        opening = b'{"type":"%b","call_id":"%b","output":' % (kind, call_id.encode())
        if media:
            words = [_TEXT % json] if json != b'""' else []
            parts = b",".join([*words, *(_media_json(item) for item, _ in media)])
            self.write_block(b"%b[%b]}" % (opening, parts))
        elif failed:  # the wire format has no error flag, so a prefix reports the failure
            self.write_block(b'%b"%b%b}' % (opening, self._error_prefix, json[1:]))
        else:
            self.write_block(opening, json, b"}")

    def _next_id(self, prefix: bytes | None) -> bytes:
        """Write the reasoning items that were held back, and return the id field of the next item.

        The field is empty if the id is missing or lacks the prefix, or if an earlier item of the answer has no id.
        """
        waited, self._held_reasoning, item_id, self._id = self._held_reasoning, [], self._id, b""
        fits = prefix is not None and item_id.startswith(prefix)
        unnamed = [_without_id(item) for item in waited]
        self._has_ids = fits and (all(unnamed) if waited else self._has_ids)
        for item, without_id in zip(waited, unnamed, strict=True):
            self.write_block(item if self._has_ids else without_id or item)
        return b',"id":' + item_id if self._has_ids else b""

    def _write_user_message(self) -> None:
        """Write the user's open message. A single text is written as a string, any other content as a list of parts."""
        if self._content:
            opening = b'{"type":"message","role":"user","content":'
            if self._only is not None:
                self.write_block(opening, self._only, b"}")
            else:
                self.write_block(b"%b[%b]}" % (opening, b",".join(self._content)))
            self._content.clear()


_TEXT = b'{"type":"input_text","text":%b}'


_BEFORE_ID = b'{"type":"reasoning",'
_ID = re.compile(rb'%b("id":"[A-Za-z0-9_-]*",)"' % re.escape(_BEFORE_ID))
"""Matches the beginning of a reasoning item as the decoder stores it, with an id."""


def _without_id(item: bytes) -> bytes | None:
    """Return a reasoning item without its id, or None if it has no id.

    The renderer has already parsed the item, so the item is valid JSON. In the form that the decoder stores, the id can
    be removed without parsing the item again.
    """
    if (match := _ID.match(item)) is not None:
        return _BEFORE_ID + item[match.end(1) :]
    fields = parse(item)
    assert isinstance(fields, dict)
    return dump({key: fields[key] for key in fields if key != "id"}) if "id" in fields else None


def _media_json(media: Media) -> bytes:
    data = media.url or f"data:{media.media_type};base64,{media.data}"
    if media.media_type.startswith("image/"):
        return b'{"type":"input_image","detail":"auto","image_url":%b}' % quote(data)
    if media.url:
        return b'{"type":"input_file","file_url":%b}' % quote(data)
    return b'{"type":"input_file","filename":"document.pdf","file_data":%b}' % quote(data)


def request_head(settings: Settings, dialect: ResponsesDialect, _: frozenset[str]) -> RequestHead:
    """Return the head of a request; see `actors.adapters.codec.Codec`."""
    effort = "none" if settings.thinking == "off" else settings.effort
    most = None if settings.max_tokens is None else max(settings.max_tokens, MIN_TOKENS)
    sealed, losses = dialect.reasoning.carrier == "reasoning_item", list[str]()
    if sealed and "include" in settings.omitted:
        sealed = False
        losses.append("include")
    included = ["reasoning.encrypted_content"] if sealed else []
    if settings.logprobs is not None:
        included.append("message.output_text.logprobs")
    summary = "auto" if settings.display == "summarized" else None
    table: WireTable = {
        "model": settings.model,
        "store": False,
        "include": included,
        "instructions": system_prompt(settings),
        "tools": _group_tools(settings.tools),
        "tool_choice": _tool_choice(settings),
        "reasoning": {"effort": effort, "summary": summary},
        "max_output_tokens": most,
        "text": {"format": _output_format(settings)},
    }
    assumed = () if most == settings.max_tokens else (f"max_output_tokens {most}",)
    after = b',"stream":true,"input":[' if settings.stream else b',"input":['
    return RequestHead(
        "/responses",
        write_json(add_setting_fields(table, settings, dialect))[:-1],
        after,
        losses=tuple(losses),
        assumed=assumed,
    )


def _output_format(settings: Settings) -> Wire:
    """Return the field for the answer's schema, or None without a schema."""
    return None if settings.output is None else {"type": "json_schema", **named_schema(settings.output)}


def _tool_choice(settings: Settings) -> Wire:
    choice = chosen_tool(settings)
    if isinstance(choice, ToolSpec):
        return {"type": "function" if choice.form is None else "custom", "name": choice.name}
    return choice


def _group_tools(tools: Sequence[ToolSpec]) -> list[Wire]:
    """Return the tool declarations. The tools of a namespace form one group, at the position of the namespace's first
    tool.
    """
    groups: dict[str, list[Wire]] = {}
    listed: list[Wire] = []
    for tool in tools:
        if (name := tool.namespace) and name not in groups:
            listed.append(
                {"type": "namespace", "name": name, "description": name, "tools": groups.setdefault(name, [])}
            )
        groups.get(name, listed).append(_tool_json(tool))
    return listed


def _tool_json(tool: ToolSpec) -> Wire:
    named = {"name": local_name(tool.name, tool.namespace), "description": tool.description}
    if tool.form is not None:
        return {"type": "custom", **named, "format": tool.form}
    return {"type": "function", **named, "parameters": tool.parameters, "strict": False}
