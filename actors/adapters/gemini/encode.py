"""Google's generateContent: a rendered transcript in, a request body out.

Only the fields named here are ever sent (rulebook GEM-10).

A thought signature is the property of a part. In a transcript it is a thinking block directly before the block
that becomes that part; with nothing behind it, or sealed as the signature of a blank text, it gets a text part of
its own. Parts are never merged, so a signature stays where it was (GEM-05).
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar
from urllib.parse import quote as percent_encoded

from actors.adapters.closed_schemas import closed
from actors.adapters.gemini.schema import projected
from actors.adapters.preamble import Preamble, Wire, chosen, opened, system
from actors.adapters.request import Settings, ToolSpec
from actors.adapters.request_fields import Fields, with_fields
from actors.adapters.writing import Writing
from actors.core.data.jsonio import Json, quote
from actors.core.dialects.dialect import GeminiDialect
from actors.core.models.concerns import Role
from actors.core.transcript.transcript import Titled
from actors.core.values.content import Media, Thinking, ToolCall

BLANK = "signed_blank"
"""Kind of the seal of a signature whose part is a text of nothing but whitespace, or of nothing."""


class GeminiWriter(Writing):
    """Writes `contents`, part by part."""

    opening = b'{"role":"%b","parts":['
    roles: ClassVar[Mapping[str, bytes]] = {"user": b"user", "assistant": b"model"}

    def __init__(self, dialect: GeminiDialect, last_role: Role | None) -> None:
        super().__init__(dialect, last_role)
        self._signature: Json | None = None  # of the part that comes next

    def begin(self, role: Role) -> None:
        """Begin a message. A signature never moves to another one."""
        self._sign_nothing()
        super().begin(role)

    def taken(self) -> list[bytes]:
        self._sign_nothing()
        return super().taken()

    def text(self, json: Json) -> None:
        self.block(b'{"text":', json)

    def thinking(self, block: Thinking) -> None:
        """Keep a signature for the part behind it. That of a blank text is a part of its own."""
        self._sign_nothing()
        self._signature = block.json if block.seal is None else block.seal.data
        if block.seal is not None and block.seal.kind == BLANK:
            self.block(b'{"text":', block.json)

    def native(self, part: bytes) -> None:
        """Write a part as it came, its own signature in it."""
        self._sign_nothing()
        super().block(part)

    def media(self, media: Media, title: str) -> None:
        self.block(_inline(media))

    def call(self, call_id: str, name: str, call: ToolCall) -> None:
        self.block(b'{"functionCall":{%b,"args":%b}' % (_identified(call_id, name), call.json))

    def result(self, call_id: str, name: str, json: Json, failed: bool, media: Sequence[Titled]) -> None:
        key = b"error" if failed else b"output"
        opening = b'{"functionResponse":{%b,"response":{"%b":' % (_identified(call_id, name), key)
        held = b',"parts":[%b]' % b",".join([_inline(item) + b"}" for item, _ in media]) if media else b""
        self.block(opening, json, b"}%b}" % held)

    def block(self, opening: bytes, literal: bytes = b"", ending: bytes = b"") -> None:
        """Write a part, signature and closing brace behind what is given."""
        signature, self._signature = self._signature, None
        if signature is None:
            super().block(opening, literal, ending + b"}")
        else:
            super().block(opening, literal, ending + b',"thoughtSignature":')
            self.more(signature, b"}")

    def _sign_nothing(self) -> None:
        """Write a signature that no part follows as the one of an empty text."""
        if self._signature is not None:
            self.block(b'{"text":', b'""')


def _inline(media: Media) -> bytes:
    return b'{"inlineData":{"mimeType":%b,"data":%b}' % (quote(media.mime), quote(media.data))


def _identified(call_id: str, name: str) -> bytes:
    """Write the id, where there is one to be sent (GEM-09), and the name."""
    named = b'"name":"%b"' % name.encode()
    return b'"id":"%b",%b' % (call_id.encode(), named) if call_id else named


def preamble(settings: Settings, dialect: GeminiDialect, _: frozenset[str]) -> Preamble:
    """Return the preamble of a request; see `actors.adapters.codec.Codec`.

    The model, and whether the answer is streamed, are in the path.
    """
    losses: list[str] = []
    limit = dialect.request.max_tokens_default if settings.max_tokens is None else settings.max_tokens
    table: Fields = {
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
    return Preamble(
        path,
        opened(with_fields(table, settings, dialect), "contents"),
        b"",
        losses=tuple(dict.fromkeys(losses)),
    )


def _answer(settings: Settings, dialect: GeminiDialect, losses: list[str]) -> Mapping[str, Wire]:
    """Return the schema of the answer, in the provider's subset where the dialect has no other."""
    if settings.output is None:
        return {}
    if dialect.request.schema_subset != "gemini":
        return {"responseMimeType": "application/json", "responseJsonSchema": closed(settings.output)}
    schema, lost = projected(settings.output)
    losses += [f"schema.{keyword}" for keyword in lost]
    return {"responseMimeType": "application/json", "responseSchema": schema}


_MODES = {"required": "ANY", "none": "NONE", None: None}


def _calling(settings: Settings) -> Wire:
    choice = chosen(settings)
    if isinstance(choice, ToolSpec):
        return {"mode": "ANY", "allowedFunctionNames": [choice.name]}
    return {"mode": _MODES[choice]}


def _tool(tool: ToolSpec, dialect: GeminiDialect, losses: list[str]) -> Wire:
    named = {"name": tool.name, "description": tool.description}
    if dialect.request.schema_subset != "gemini":
        return named | {"parametersJsonSchema": tool.parameters}
    schema, lost = projected(tool.parameters)
    losses += [f"schema.{keyword}" for keyword in lost]
    return named | {"parameters": schema}


def _thinking(settings: Settings, dialect: GeminiDialect) -> Wire:
    """Return how much to think: a level or a budget of tokens, which are not accepted together."""
    has_levels, budget = dialect.reasoning.switch == "gemini", settings.thinking_tokens
    if settings.thinking == "off" and not has_levels:
        budget = 0
    level = settings.effort.upper() if settings.effort is not None and has_levels and budget is None else None
    shows: bool | None = settings.thinking in ("adaptive", "manual") or None
    if settings.display is not None:
        shows = settings.display == "summarized"
    return {"includeThoughts": shows, "thinkingBudget": budget, "thinkingLevel": level}
