"""Google's generateContent: encode requests, decode answers, read foreign transcripts.

Only the fields named here are ever sent (rulebook GEM-10).

A thought signature is the property of a part. In a transcript it is a thinking block directly before the block that
becomes that part. With nothing after it, or sealed as the signature of a blank text, it gets a text part of its own.
Parts are never merged, so a signature stays where it was (GEM-05).

Every event of a stream is a whole response with the new parts, so a whole body reads as a stream of one event. The
answer ends with the stream if a finish reason was seen; there is no `[DONE]`. Calls come whole: Vertex sends them in
pieces only to requests that ask for that, and a piece must never run as a call. Text is joined with the text before it
only where neither is signed. Parts marked as thought are summaries for people; they are shown, and never sent back.

Foreign transcripts are read in both spellings, `functionCall` as on the wire and `function_call` as in Google's client.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import ClassVar, Literal
from urllib.parse import quote as percent_encoded

from actors.adapters.base import Decoder
from actors.adapters.calls import real_word
from actors.adapters.classify import cut_of_finish
from actors.adapters.codec import Codec
from actors.adapters.document import LongText
from actors.adapters.failure import answer_fault
from actors.adapters.partial import PartialText
from actors.adapters.reading import TranscriptReader, blob
from actors.adapters.request import Settings, ToolSpec
from actors.adapters.request_head import (
    RequestHead,
    Wire,
    WireTable,
    chosen_tool,
    open_body,
    system,
    with_fields,
)
from actors.adapters.schemas.closed import close_schema
from actors.adapters.schemas.gemini import project_schema
from actors.adapters.wire import Fields, WireObject, fields, first, items, long_string, string
from actors.adapters.writing import Writing
from actors.core.data.jsonio import Json, is_object, quote
from actors.core.dialects.dialect import GeminiDialect
from actors.core.models.rules import Role
from actors.core.transcript.transcript import Titled
from actors.core.values.content import Code, Media, MessageRole, Thinking, ToolCall

BLANK = "signed_blank"
"""Kind of the seal for a signature whose part is an empty or blank text."""


class GeminiWriter(Writing):
    """Writes `contents`, part by part."""

    opening = b'{"role":"%b","parts":['
    roles: ClassVar[Mapping[str, bytes]] = {"user": b"user", "assistant": b"model"}

    def __init__(self, dialect: GeminiDialect, last_role: Role | None) -> None:
        super().__init__(dialect, last_role)
        self._signature: Json | None = None  # of the next part

    def begin(self, role: Role) -> None:
        """Begin a message. A pending signature stays in the message before."""
        self._sign_nothing()
        super().begin(role)

    def take_pieces(self) -> list[bytes]:
        self._sign_nothing()
        return super().take_pieces()

    def write_text(self, json: Json) -> None:
        self.write_block(b'{"text":', json)

    def write_thinking(self, block: Thinking) -> None:
        """Hold a signature for the next part. The signature of a blank text is a part of its own."""
        self._sign_nothing()
        self._signature = block.json if block.seal is None else block.seal.data
        if block.seal is not None and block.seal.kind == BLANK:
            self.write_block(b'{"text":', block.json)

    def write_native(self, part: bytes) -> None:
        """Write a part verbatim. It contains its own signature."""
        self._sign_nothing()
        super().write_block(part)

    def write_media(self, media: Media, title: str) -> None:
        self.write_block(_inline(media))

    def write_call(self, call_id: str, name: str, call: ToolCall) -> None:
        self.write_block(b'{"functionCall":{%b,"args":%b}' % (_id_and_name(call_id, name), call.json))

    def write_result(
        self, call_id: str, name: str, json: Json, failed: bool, media: Sequence[Titled]
    ) -> None:
        key = b"error" if failed else b"output"
        opening = b'{"functionResponse":{%b,"response":{"%b":' % (_id_and_name(call_id, name), key)
        held = b',"parts":[%b]' % b",".join([_inline(item) + b"}" for item, _ in media]) if media else b""
        self.write_block(opening, json, b"}%b}" % held)

    def write_block(self, opening: bytes, literal: bytes = b"", ending: bytes = b"") -> None:
        """Write a part, followed by the pending signature and the closing brace."""
        signature, self._signature = self._signature, None
        if signature is None:
            super().write_block(opening, literal, ending + b"}")
        else:
            super().write_block(opening, literal, ending + b',"thoughtSignature":')
            self.more(signature, b"}")

    def _sign_nothing(self) -> None:
        """Write a pending signature without a part as the signature of an empty text."""
        if self._signature is not None:
            self.write_block(b'{"text":', b'""')


def _inline(media: Media) -> bytes:
    return b'{"inlineData":{"mimeType":%b,"data":%b}' % (quote(media.media_type), quote(media.data))


def _id_and_name(call_id: str, name: str) -> bytes:
    """Write the id, if one is sent (GEM-09), and the name."""
    named = b'"name":"%b"' % name.encode()
    return b'"id":"%b",%b' % (call_id.encode(), named) if call_id else named


def request_head(settings: Settings, dialect: GeminiDialect, _: frozenset[str]) -> RequestHead:
    """Return the head of a request; see `actors.adapters.codec.Codec`.

    The path holds the model and whether the answer is streamed.
    """
    losses: list[str] = []
    limit = dialect.request.max_tokens_default if settings.max_tokens is None else settings.max_tokens
    table: WireTable = {
        "systemInstruction": {"parts": [{"text": system(settings)}]},
        "tools": [{"functionDeclarations": [_tool(tool, dialect, losses) for tool in settings.tools]}],
        "toolConfig": {"functionCallingConfig": _calling(settings)},
        "generationConfig": {
            "maxOutputTokens": limit,
            **_answer(settings, dialect, losses),
            "thinkingConfig": _thinking(settings, dialect),
        },
    }
    method = "streamGenerateContent?alt=sse" if settings.stream else "generateContent"
    path = f"{dialect.request.models_path}/{percent_encoded(settings.model, safe='')}:{method}"
    return RequestHead(
        path,
        open_body(with_fields(table, settings, dialect), "contents"),
        b"",
        losses=tuple(dict.fromkeys(losses)),
    )


def _answer(settings: Settings, dialect: GeminiDialect, losses: list[str]) -> Mapping[str, Wire]:
    """Return the fields for the answer's schema, reduced to the provider's subset unless the dialect accepts JSON
    Schema."""
    if settings.output is None:
        return {}
    if dialect.request.schema_subset != "gemini":
        return {"responseMimeType": "application/json", "responseJsonSchema": close_schema(settings.output)}
    schema, lost = project_schema(settings.output)
    losses += [f"schema.{keyword}" for keyword in lost]
    return {"responseMimeType": "application/json", "responseSchema": schema}


_MODES = {"required": "ANY", "none": "NONE", None: None}


def _calling(settings: Settings) -> Wire:
    choice = chosen_tool(settings)
    if isinstance(choice, ToolSpec):
        return {"mode": "ANY", "allowedFunctionNames": [choice.name]}
    return {"mode": _MODES[choice]}


def _tool(tool: ToolSpec, dialect: GeminiDialect, losses: list[str]) -> Wire:
    named = {"name": tool.name, "description": tool.description}
    if dialect.request.schema_subset != "gemini":
        return named | {"parametersJsonSchema": tool.parameters}
    schema, lost = project_schema(tool.parameters)
    losses += [f"schema.{keyword}" for keyword in lost]
    return named | {"parameters": schema}


def _thinking(settings: Settings, dialect: GeminiDialect) -> Wire:
    """Return the thinking configuration: a level or a budget of tokens. The API rejects both together."""
    has_levels, budget = dialect.reasoning.switch == "gemini", settings.thinking_tokens
    if settings.thinking == "off" and not has_levels:
        budget = 0
    level = settings.effort.upper() if settings.effort is not None and has_levels and budget is None else None
    shows: bool | None = settings.thinking in ("adaptive", "manual") or None
    if settings.display is not None:
        shows = settings.display == "summarized"
    return {"includeThoughts": shows, "thinkingBudget": budget, "thinkingLevel": level}


_KEPT = frozenset({"text", "functionCall"})
_FLAGS = frozenset({"thought", "thoughtSignature"})
_OWN = frozenset({"executableCode", "codeExecutionResult", "toolCall", "toolResponse"})
_BESIDE = ("groundingMetadata", "citationMetadata", "urlContextMetadata")
_IN_PIECES = "a call came in pieces (partialArgs), which was not asked for"
_FIGURES = {
    "promptTokenCount": (0,),
    "toolUsePromptTokenCount": (0,),
    "candidatesTokenCount": (1,),
    "thoughtsTokenCount": (1,),
    "cachedContentTokenCount": (2,),
}


class GenerateContentDecoder(Decoder):
    """Reads responses, complete or as a stream."""

    ended: bool
    continuation: str

    def body(self, body: Fields) -> None:
        self.event("", body)
        self.stream_end()
        if not self.ended:
            raise answer_fault("the body holds no finished candidate")

    def stream_end(self) -> None:
        """End the answer if it has a finish reason. Relays send one with each event, or before the text."""
        if self.finish_reason is not None:
            if cut_of_finish(self.finish_reason) != "paused":
                self.continuation = ""  # the token was meant for the middle of the stream
            self.end_all()
            self.ended = True

    def on_done(self) -> None:
        self.stream_end()

    def event(self, name: str, payload: Fields) -> None:
        if payload.get("error"):
            self.report(payload)
        if usage := payload.get("usageMetadata"):
            self.count(usage, _FIGURES)
        if blocked := string(fields(payload.get("promptFeedback")).get("blockReason")):
            raise answer_fault(f"the prompt was blocked: {blocked!r}", "refusal", blocked)
        candidate = first(payload.get("candidates"))
        for part in items(fields(candidate.get("content")).get("parts")):
            self._part(fields(part))
        for name in _BESIDE:
            self.mark(name, candidate.get(name), more=False)
        self.leave_out_once("logprobsResult", candidate.get("logprobsResult"))
        if reason := real_word(candidate.get("finishReason")):
            self.finish(reason)
        if token := real_word(candidate.get("continuationToken")):
            self.continuation = token

    def _part(self, part: Fields) -> None:
        signature = string(part.get("thoughtSignature"))
        if _KEPT.isdisjoint(part) and not part.keys() <= _FLAGS:
            self._provider_part(part)
        elif part.get("thought") is True:
            self._text("thinking", long_string(part.get("text")))
        elif is_object(call := part.get("functionCall")):
            self._text("text", string(part.get("text")))
            self._function_call(call, signature)
        elif signature and isinstance(text := part.get("text", ""), str | LongText):
            self._signed_text(text, signature)
        else:
            self._text("text", long_string(part.get("text")))

    def _provider_part(self, part: Fields) -> None:
        """Add a part of Google's own, with its signature. The signature of an image is dropped: it is useless without
        the part."""
        name = next(name for name in part if name not in _FLAGS)
        image: Fields = fields(part[name]) if name == "inlineData" else {}
        if data := string(image.get("data")):
            self.media(string(image.get("mimeType")) or "application/octet-stream", data)
            self.leave_out_once("thoughtSignature", part.get("thoughtSignature"))
        else:
            goes_back = name in _OWN and part.keys() - _FLAGS == {name} and part.get("thought") is not True
            self.native(name, dict(part), goes_back=goes_back).done = True

    def _text(self, kind: Literal["text", "thinking"], text: str | LongText, *, signed: bool = False) -> None:
        """Continue the previous text if it has this kind and is not signed; otherwise begin one."""
        if text:
            before = self.latest_words(kind)
            words = self.words(kind) if before.done else before
            self.say(words, text)
            words.done = signed

    def _signed_text(self, text: str | LongText, signature: str) -> None:
        if isinstance(text, str) and not text.strip():
            self._signature(BLANK, signature, text)
        else:
            self._signature(self.dialect.reasoning.carrier, signature)
            self._text("text", text, signed=True)

    def _signature(self, kind: str, signature: str, text: str = "") -> PartialText:
        words = self.words("thinking")
        self.say(words, text)
        self.seal(words, kind, signature)
        self.end(words)
        return words

    def _function_call(self, given: Fields, signature: str) -> None:
        if given.get("partialArgs") or given.get("willContinue"):
            raise answer_fault(_IN_PIECES, "config")
        before = self.minted_ids
        call = self.fragment(None, given.get("id"), given.get("name"))
        self.argue(call, self.arguments(given.get("args")))
        if signature and self.minted_ids > before:
            self.sign(call, self.dialect.reasoning.carrier, signature)
        call.told = call.is_closed = True  # streams send `{}` for no arguments and for lost ones
        self.end(call)


class ContentsReading(TranscriptReader):
    """Reads a generateContent transcript."""

    container: ClassVar[str] = "contents"
    content: ClassVar[str] = "parts"
    roles: ClassVar[Mapping[str, MessageRole]] = {"user": "user", "model": "assistant"}
    stray_message: ClassVar[str] = "item that is no content"
    stray_part: ClassVar[str] = "part of an unknown kind"

    def fold_role(self, message: WireObject) -> None:
        if (role := message.text("role")) not in ("", "function"):
            self.note("content of role %s taken as the user's", role[:40])
        self.parts(message)

    def part(self, part: WireObject) -> None:
        if part.has_value("thought", True):
            self.think(part.text("text"))
            return
        signature = blob(part.take(*_both_spellings("thoughtSignature")))
        self.think("", "thought_signature", signature)
        if call := part.inner(*_both_spellings("functionCall")):
            self._call(call)
        elif response := part.inner(*_both_spellings("functionResponse")):
            self._response(response)
        elif found := self.media(part):
            self.say(self.readable(found))
        elif code := part.inner(*_both_spellings("executableCode")):
            self.say(Code(code.text("code"), code.text("language").lower()))
        elif result := part.inner(*_both_spellings("codeExecutionResult")):
            output = result.take("output")
            self.fold("result of code", result.whole() if output is None else output)
        elif words := part.text("text"):
            self.text(words)
        elif not signature and "text" not in part.fields:
            self.fold(self.stray_part, part.whole())

    def _call(self, call: WireObject) -> None:
        self.call(call.native_id("id"), call.text("name"), call.take("args"), has_name=True)

    def _response(self, response: WireObject) -> None:
        key, name = response.native_id("id"), response.text("name")
        content, failed = _outcome(response.take("response"))
        parts = [part for part in response.each("parts") if isinstance(part, WireObject)]
        self.result(key, content, filter(None, map(self.media, parts)), name=name, failed=failed)

    def media(self, part: WireObject) -> Media | None:
        if inline := part.inner(*_both_spellings("inlineData")):
            data = blob(inline.take("data"))
            return Media(inline.text(*_both_spellings("mimeType")), data=data)
        if file := part.inner(*_both_spellings("fileData")):
            return Media(file.text(*_both_spellings("mimeType")), url=file.text(*_both_spellings("fileUri")))
        return None


@cache
def _both_spellings(key: str) -> tuple[str, str]:
    """Return both spellings of a key."""
    return key, re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", key)


def _outcome(response: object) -> tuple[object, bool]:
    """Return the content of a response and whether it is an error, by the convention of a single key."""
    if is_object(response) and len(response) == 1:
        ((key, value),) = response.items()
        if key in ("output", "result") or (key == "error" and value is not None):
            return value, key == "error"
    return response, False


CODEC = Codec(
    writer=GeminiWriter, request_head=request_head, decoder=GenerateContentDecoder, reading=ContentsReading
)
