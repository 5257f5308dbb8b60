"""Encode requests, decode answers and read foreign transcripts for Google's generateContent.

Only the fields listed in this module are ever sent (rulebook GEM-10).

A thought signature is a field of a part. A rendered transcript represents it as a thinking block directly before the
block that becomes the part. If no block follows, or if the signature belonged to blank text, it gets a separate text
part. Parts are never merged, so a signature stays with its part (GEM-05).

Each event of a stream is a complete response with the new parts, so a complete body is decoded as a stream of one
event. There is no `[DONE]`: the answer ends when the stream ends after a finish reason. Calls arrive complete, because
Vertex sends a call in pieces only if the request asks for pieces. Successive texts are joined only if neither is
signed. Parts that are marked as thought are summaries for humans, and are never sent back.

Foreign transcripts may use both spellings of a key: `functionCall` as on the wire, and `function_call` as in Google's
client library.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import ClassVar, Literal
from urllib.parse import quote as percent_encoded

from actors.adapters.base import Decoder
from actors.adapters.calls import without_placeholder
from actors.adapters.codec import Codec
from actors.adapters.document import LongText
from actors.adapters.failure import answer_fault, cut_from_finish_reason
from actors.adapters.partial import PartialText
from actors.adapters.reading import TranscriptReader, as_base64
from actors.adapters.request import Settings, ToolSpec
from actors.adapters.schemas.closed import close_schema
from actors.adapters.schemas.gemini import project_schema
from actors.adapters.wire import (
    Fields,
    WireObject,
    as_array,
    as_long_string,
    as_object,
    as_string,
    first_candidate,
)
from actors.adapters.writing import (
    BaseWriter,
    RequestHead,
    Wire,
    WireTable,
    add_setting_fields,
    begin_body,
    chosen_tool,
    system_prompt,
)
from actors.core.data.jsonio import Json, is_object, quote
from actors.core.dialects.dialect import GeminiDialect
from actors.core.models.rules import Role
from actors.core.transcript.transcript import TitledMedia
from actors.core.values.content import Code, Media, MessageRole, Thinking, ToolCall

BLANK = "signed_blank"
"""The kind of seal for a signature whose part contains no text or only whitespace."""


class GeminiWriter(BaseWriter):
    """Writes the `contents` of a request, part by part."""

    opening = b'{"role":"%b","parts":['
    roles: ClassVar[Mapping[str, bytes]] = {"user": b"user", "assistant": b"model"}

    def __init__(self, dialect: GeminiDialect, last_role: Role | None) -> None:
        super().__init__(dialect, last_role)
        self._signature: Json | None = None  # a signature that will be written with the next part

    def begin(self, role: Role) -> None:
        """Begin a message. A pending signature is written at the end of the previous message."""
        self._flush_signature()
        super().begin(role)

    def take_pieces(self) -> list[bytes]:
        self._flush_signature()
        return super().take_pieces()

    def write_text(self, text_json: Json) -> None:
        self.write_part(b'{"text":', text_json)

    def write_thinking(self, block: Thinking) -> None:
        """Keep a signature for the next part. The signature of blank text is written at once, as a separate part."""
        self._flush_signature()
        self._signature = block.json if block.seal is None else block.seal.data
        if block.seal is not None and block.seal.kind == BLANK:
            self.write_part(b'{"text":', block.json)

    def write_native(self, part: bytes) -> None:
        """Write a provider-specific part verbatim. The part contains its own signature."""
        self._flush_signature()
        self.write_block(part)

    def write_media(self, media: Media, title: str) -> None:
        self.write_part(_inline_data(media))

    def write_call(self, call_id: str, name: str, call: ToolCall) -> None:
        self.write_part(b'{"functionCall":{%b,"args":%b}' % (_id_and_name_fields(call_id, name), call.json))

    def write_result(
        self, call_id: str, name: str, json: Json, failed: bool, media: Sequence[TitledMedia]
    ) -> None:
        key = b"error" if failed else b"output"
        opening = b'{"functionResponse":{%b,"response":{"%b":' % (_id_and_name_fields(call_id, name), key)
        held = (
            b',"parts":[%b]' % b",".join([_inline_data(item) + b"}" for item, _ in media]) if media else b""
        )
        self.write_part(opening, json, b"}%b}" % held)

    def write_part(self, opening: bytes, literal: bytes = b"", ending: bytes = b"") -> None:
        """Write a part, followed by the pending signature and the closing brace."""
        signature, self._signature = self._signature, None
        if signature is None:
            self.write_block(opening, literal, ending + b"}")
        else:
            self.write_block(opening, literal, ending + b',"thoughtSignature":')
            self.write_more(signature, b"}")

    def _flush_signature(self) -> None:
        """If a signature is still pending, write it with an empty text part."""
        if self._signature is not None:
            self.write_part(b'{"text":', b'""')


def _inline_data(media: Media) -> bytes:
    return b'{"inlineData":{"mimeType":%b,"data":%b}' % (quote(media.media_type), quote(media.data))


def _id_and_name_fields(call_id: str, name: str) -> bytes:
    """Return the JSON fields with the tool's name and the call's id. An empty id is omitted (GEM-09)."""
    named = b'"name":"%b"' % name.encode()
    return b'"id":"%b",%b' % (call_id.encode(), named) if call_id else named


def request_head(settings: Settings, dialect: GeminiDialect, _: frozenset[str]) -> RequestHead:
    """Return the head of a request; see `actors.adapters.codec.Codec`.

    The path contains the model, and determines whether the answer is streamed.
    """
    losses: list[str] = []
    limit = dialect.request.max_tokens_default if settings.max_tokens is None else settings.max_tokens
    table: WireTable = {
        "systemInstruction": {"parts": [{"text": system_prompt(settings)}]},
        "tools": [{"functionDeclarations": [_tool_json(tool, dialect, losses) for tool in settings.tools]}],
        "toolConfig": {"functionCallingConfig": _calling_config(settings)},
        "generationConfig": {
            "maxOutputTokens": limit,
            **_output_fields(settings, dialect, losses),
            "thinkingConfig": _thinking_config(settings, dialect),
        },
    }
    method = "streamGenerateContent?alt=sse" if settings.stream else "generateContent"
    path = f"{dialect.request.models_path}/{percent_encoded(settings.model, safe='')}:{method}"
    return RequestHead(
        path,
        begin_body(add_setting_fields(table, settings, dialect), "contents"),
        b"",
        losses=tuple(dict.fromkeys(losses)),
    )


def _output_fields(settings: Settings, dialect: GeminiDialect, losses: list[str]) -> Mapping[str, Wire]:
    """Return the fields for the answer's schema. Some dialects require the provider's own subset of JSON Schema."""
    if settings.output is None:
        return {}
    if dialect.request.schema_subset != "gemini":
        return {"responseMimeType": "application/json", "responseJsonSchema": close_schema(settings.output)}
    schema, lost = project_schema(settings.output)
    losses += [f"schema.{keyword}" for keyword in lost]
    return {"responseMimeType": "application/json", "responseSchema": schema}


_MODES = {"required": "ANY", "none": "NONE", None: None}


def _calling_config(settings: Settings) -> Wire:
    choice = chosen_tool(settings)
    if isinstance(choice, ToolSpec):
        return {"mode": "ANY", "allowedFunctionNames": [choice.name]}
    return {"mode": _MODES[choice]}


def _tool_json(tool: ToolSpec, dialect: GeminiDialect, losses: list[str]) -> Wire:
    named = {"name": tool.name, "description": tool.description}
    if dialect.request.schema_subset != "gemini":
        return named | {"parametersJsonSchema": tool.parameters}
    schema, lost = project_schema(tool.parameters)
    losses += [f"schema.{keyword}" for keyword in lost]
    return named | {"parameters": schema}


def _thinking_config(settings: Settings, dialect: GeminiDialect) -> Wire:
    """Return the thinking configuration: either a level or a token budget, because the API does not accept both."""
    has_levels, budget = dialect.reasoning.switch == "gemini", settings.thinking_tokens
    if settings.thinking == "off" and not has_levels:
        budget = 0
    level = settings.effort.upper() if settings.effort is not None and has_levels and budget is None else None
    shows: bool | None = settings.thinking in ("adaptive", "manual") or None
    if settings.display is not None:
        shows = settings.display == "summarized"
    return {"includeThoughts": shows, "thinkingBudget": budget, "thinkingLevel": level}


_STANDARD_PARTS = frozenset({"text", "functionCall"})
_PART_FLAGS = frozenset({"thought", "thoughtSignature"})
_PROVIDER_TOOL_PARTS = frozenset({"executableCode", "codeExecutionResult", "toolCall", "toolResponse"})
_METADATA = ("groundingMetadata", "citationMetadata", "urlContextMetadata")
_PARTIAL_CALL_ERROR = (
    "the provider sent a tool call in pieces (partialArgs), which the request did not ask for"
)
_USAGE_FIELDS = {
    "promptTokenCount": (0,),
    "toolUsePromptTokenCount": (0,),
    "candidatesTokenCount": (1,),
    "thoughtsTokenCount": (1,),
    "cachedContentTokenCount": (2,),
}


class GenerateContentDecoder(Decoder):
    """Decodes answers in the generateContent format. A complete body is processed as a stream of one response."""

    ended: bool
    continuation: str

    def process_body(self, body: Fields) -> None:
        self.process_event("", body)
        self.on_stream_end()
        if not self.ended:
            raise answer_fault("the body contains no finished candidate")

    def on_stream_end(self) -> None:
        """End the answer if a finish reason has arrived. A finish reason alone does not end the answer, because relays
        send it early or repeatedly.
        """
        if self.finish_reason is not None:
            if cut_from_finish_reason(self.finish_reason) != "paused":
                self.continuation = ""  # the answer is complete, so an earlier token is obsolete
            self.end_all_parts()
            self.ended = True

    def on_done(self) -> None:
        self.on_stream_end()

    def process_event(self, name: str, payload: Fields) -> None:
        if payload.get("error"):
            self.raise_reported_error(payload)
        if usage := payload.get("usageMetadata"):
            self.update_usage(usage, _USAGE_FIELDS)
        if blocked := as_string(as_object(payload.get("promptFeedback")).get("blockReason")):
            raise answer_fault(f"the provider blocked the prompt: {blocked!r}", "refusal", blocked)
        candidate = first_candidate(payload.get("candidates"))
        for part in as_array(as_object(candidate.get("content")).get("parts")):
            self._process_part(as_object(part))
        for name in _METADATA:
            self.add_metadata(name, candidate.get(name), appends=False)
        self.count_omission_once("logprobsResult", candidate.get("logprobsResult"))
        if reason := without_placeholder(candidate.get("finishReason")):
            self.record_finish_reason(reason)
        if token := without_placeholder(candidate.get("continuationToken")):
            self.continuation = token

    def _process_part(self, part: Fields) -> None:
        signature = as_string(part.get("thoughtSignature"))
        if _STANDARD_PARTS.isdisjoint(part) and not part.keys() <= _PART_FLAGS:
            self._add_provider_part(part)
        elif part.get("thought") is True:
            self._add_part_text("thinking", as_long_string(part.get("text")))
        elif is_object(call := part.get("functionCall")):
            self._add_part_text("text", as_string(part.get("text")))
            self._add_function_call(call, signature)
        elif signature and isinstance(text := part.get("text", ""), str | LongText):
            self._add_signed_text(text, signature)
        else:
            self._add_part_text("text", as_long_string(part.get("text")))

    def _add_provider_part(self, part: Fields) -> None:
        """Add a provider-specific part with its signature.

        An image becomes media. Its signature is dropped, because it is useless without the original part.
        """
        name = next(name for name in part if name not in _PART_FLAGS)
        image: Fields = as_object(part[name]) if name == "inlineData" else {}
        if data := as_string(image.get("data")):
            self.add_media(as_string(image.get("mimeType")) or "application/octet-stream", data)
            self.count_omission_once("thoughtSignature", part.get("thoughtSignature"))
        else:
            is_resendable = (
                name in _PROVIDER_TOOL_PARTS
                and part.keys() - _PART_FLAGS == {name}
                and part.get("thought") is not True
            )
            self.add_native(name, dict(part), is_resendable=is_resendable).done = True

    def _add_part_text(
        self, kind: Literal["text", "thinking"], text: str | LongText, *, is_signed: bool = False
    ) -> None:
        """Continue the previous text block if it has this kind and no signature. Otherwise, begin a new block."""
        if text:
            before = self.continue_text(kind)
            words = self.begin_text(kind) if before.done else before
            self.add_text(words, text)
            words.done = is_signed

    def _add_signed_text(self, text: str | LongText, signature: str) -> None:
        if isinstance(text, str) and not text.strip():
            self._add_signature(BLANK, signature, text)
        else:
            self._add_signature(self.dialect.reasoning.carrier, signature)
            self._add_part_text("text", text, is_signed=True)

    def _add_signature(self, kind: str, signature: str, text: str = "") -> PartialText:
        words = self.begin_text("thinking")
        self.add_text(words, text)
        self.attach_seal(words, kind, signature)
        self.end_part(words)
        return words

    def _add_function_call(self, wire_call: Fields, signature: str) -> None:
        if wire_call.get("partialArgs") or wire_call.get("willContinue"):
            raise answer_fault(_PARTIAL_CALL_ERROR, "config")
        before = self.minted_id_count
        call = self.add_fragment(None, wire_call.get("id"), wire_call.get("name"))
        self.add_arguments(call, self.arguments_text(wire_call.get("args")))
        if signature and self.minted_id_count > before:
            self.sign_call(call, self.dialect.reasoning.carrier, signature)
        # Each call arrives complete. If its arguments were lost, they arrive as `{}`, like empty arguments.
        call.is_marked_complete = call.is_closed = True
        self.end_part(call)


class ContentsReader(TranscriptReader):
    """Reads transcripts in the generateContent format."""

    container: ClassVar[str] = "contents"
    content: ClassVar[str] = "parts"
    roles: ClassVar[Mapping[str, MessageRole]] = {"user": "user", "model": "assistant"}
    stray_message: ClassVar[str] = "item that is no content"
    stray_part: ClassVar[str] = "part of an unknown kind"

    def add_unknown_role(self, message: WireObject) -> None:
        if (role := message.read_text("role")) not in ("", "function"):
            self.note_oddity("content of role %s taken as the user's", role[:40])
        self.read_parts(message)

    def read_part(self, part: WireObject) -> None:
        if part.has_value("thought", True):
            self.add_thinking(part.read_text("text"))
            return
        signature = as_base64(part.read_value(*_key_spellings("thoughtSignature")))
        self.add_thinking("", "thought_signature", signature)
        if call := part.read_object(*_key_spellings("functionCall")):
            self._read_call(call)
        elif response := part.read_object(*_key_spellings("functionResponse")):
            self._read_response(response)
        elif found := self.parse_media(part):
            self.add_block(self.check_readable(found))
        elif code := part.read_object(*_key_spellings("executableCode")):
            self.add_block(Code(code.read_text("code"), code.read_text("language").lower()))
        elif result := part.read_object(*_key_spellings("codeExecutionResult")):
            output = result.read_value("output")
            self.add_as_text("result of code", result.read_all() if output is None else output)
        elif words := part.read_text("text"):
            self.add_text(words)
        elif not signature and "text" not in part.fields:
            self.add_as_text(self.stray_part, part.read_all())

    def _read_call(self, call: WireObject) -> None:
        self.add_call(call.read_id("id"), call.read_text("name"), call.read_value("args"), has_name=True)

    def _read_response(self, response: WireObject) -> None:
        key, name = response.read_id("id"), response.read_text("name")
        content, failed = _response_content(response.read_value("response"))
        parts = [part for part in response.read_list("parts") if isinstance(part, WireObject)]
        self.add_result(key, content, filter(None, map(self.parse_media, parts)), name=name, failed=failed)

    def parse_media(self, part: WireObject) -> Media | None:
        if inline := part.read_object(*_key_spellings("inlineData")):
            data = as_base64(inline.read_value("data"))
            return Media(inline.read_text(*_key_spellings("mimeType")), data=data)
        if file := part.read_object(*_key_spellings("fileData")):
            return Media(
                file.read_text(*_key_spellings("mimeType")), url=file.read_text(*_key_spellings("fileUri"))
            )
        return None


@cache
def _key_spellings(key: str) -> tuple[str, str]:
    """Return both spellings of a key: `functionCall` and `function_call`."""
    return key, re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", key)


def _response_content(response: object) -> tuple[object, bool]:
    """Return the content of a function response, and whether it is an error.

    By convention, a response whose only key is `error` is an error, and if the only key is `output` or `result`, its
    value is the content.
    """
    if is_object(response) and len(response) == 1:
        ((key, value),) = response.items()
        if key in ("output", "result") or (key == "error" and value is not None):
            return value, key == "error"
    return response, False


CODEC = Codec(
    writer=GeminiWriter, request_head=request_head, decoder=GenerateContentDecoder, reader=ContentsReader
)
