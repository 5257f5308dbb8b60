"""Encode a rendered transcript as an Anthropic Messages request.

Only the fields listed in this module are ever sent (rulebook ANT-28). Anthropic's API and the cloud platforms that
serve Claude differ in three keys of the body and in the path (`Route`).
"""

from collections.abc import Mapping, Sequence
from typing import Literal
from urllib.parse import quote as percent_encoded

from msgspec import Struct

from actors.adapters.request import Settings, ToolSpec
from actors.adapters.schemas.closed import close_schema
from actors.adapters.thinking import answer_token_limit, claude_thinking
from actors.adapters.writing import (
    BaseWriter,
    RequestHead,
    Wire,
    WireTable,
    add_setting_fields,
    block_mark,
    chosen_tool,
    system_prompt,
    write_json,
)
from actors.core.data.jsonio import Json, is_blank, quote
from actors.core.dialects.dialect import AnthropicDialect
from actors.core.transcript.transcript import TitledMedia
from actors.core.values.content import Media, Thinking, ToolCall

VERSION = "2023-06-01"


class Route(Struct, frozen=True):
    """The API operation to which a host's requests are sent.

    Args:
        plain_path: Path of a request without streaming, relative to the endpoint. `{model}` stands for the model's
            name.
        stream_path: Path of a request with streaming.
        version: The value of `anthropic_version` in the body, or an empty string if a header contains the version.
        has_stream_field: Whether a field of the body requests streaming. Otherwise, only the path requests it.
        framing: The framing of a stream: server-sent events, or AWS's binary frames.
    """

    plain_path: str
    stream_path: str
    version: str = ""
    has_stream_field: bool = True
    framing: Literal["sse", "aws"] = "sse"

    def path(self, settings: Settings) -> str:
        """Return the path of a request, relative to the endpoint."""
        model = percent_encoded(settings.model, safe="@")  # "@" precedes a model's version on Vertex AI
        return (self.stream_path if settings.stream else self.plain_path).format(model=model)

    def first_fields(self, settings: Settings) -> Mapping[str, Wire]:
        """Return the first keys of a request body: the version, or the model."""
        return {"anthropic_version": self.version} if self.version else {"model": settings.model}

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """The headers of every request except credentials."""
        return () if self.version else (("anthropic-version", VERSION),)


_ROUTES: Mapping[str, Route] = {
    "messages": Route("/v1/messages", "/v1/messages"),
    "raw_predict": Route(
        "/models/{model}:rawPredict", "/models/{model}:streamRawPredict", version="vertex-2023-10-16"
    ),
    "invoke_model": Route(
        "/model/{model}/invoke",
        "/model/{model}/invoke-with-response-stream",
        version="bedrock-2023-05-31",
        has_stream_field=False,
        framing="aws",
    ),
}


def route_of(dialect: AnthropicDialect) -> Route:
    """Return the operation to which requests in a dialect are sent."""
    return _ROUTES[dialect.request.route]


UNSIGNED = "unsigned"
"""The kind of seal for unsigned thinking from a compatible host that requires thinking to be sent back."""


class AnthropicWriter(BaseWriter):
    """Writes the `messages` of a request, block by block."""

    def write_text(self, text_json: Json) -> None:
        self.write_block(b'{"type":"text","text":', text_json, b"}")

    def write_thinking(self, block: Thinking) -> None:
        """Write thinking verbatim. Thinking without a signature gets an empty signature."""
        seal = block.seal
        if seal is not None and seal.kind == "redacted":
            self.write_block(b'{"type":"redacted_thinking","data":', seal.data, b"}")
        else:
            signature = b'""' if seal is None or seal.kind == UNSIGNED else seal.data
            self.write_block(b'{"type":"thinking","thinking":', block.json, b',"signature":')
            self.write_more(signature, b"}")

    def write_media(self, media: Media, title: str) -> None:
        self.write_block(_media_json(media))

    def write_call(self, call_id: str, name: str, call: ToolCall) -> None:
        opening = b'{"type":"tool_use","id":"%b","name":"%b","input":%b}'
        self.write_block(opening % (call_id.encode(), name.encode(), call.json))

    def write_result(
        self, call_id: str, name: str, json: Json, failed: bool, media: Sequence[TitledMedia]
    ) -> None:
        """Write a `tool_result` block. A blank failed result gets a placeholder text, because it must not be empty
        (ANT-53).
        """
        opening = b'{"type":"tool_result","tool_use_id":"%b","content":' % call_id.encode()
        ending = b',"is_error":true}' if failed else b"}"
        if failed and is_blank(json):
            json = _NO_WORDS
        if media:
            self.write_block(opening + _result_blocks(json, media) + ending)
        else:
            self.write_block(opening, json, ending)


_NO_WORDS = quote("(The tool failed and said nothing.)")


def _result_blocks(json: Json, media: Sequence[TitledMedia]) -> bytes:
    """Return the content of a result that has media, as a list of blocks. Empty text is omitted (ANT-20)."""
    words = [b'{"type":"text","text":%b}' % json] if json != b'""' else []
    return b"[%b]" % b",".join([*words, *(_media_json(item) for item, _ in media)])


def _media_json(media: Media) -> bytes:
    kind = b"image" if media.media_type.startswith("image/") else b"document"
    if media.url:
        source = b'{"type":"url","url":%b}' % quote(media.url)
    else:
        source = b'{"type":"base64","media_type":%b,"data":%b}' % (quote(media.media_type), quote(media.data))
    return b'{"type":"%b","source":%b}' % (kind, source)


def request_head(settings: Settings, dialect: AnthropicDialect, _: frozenset[str]) -> RequestHead:
    """Return the head of a request; see `actors.adapters.codec.Codec`."""
    ends, most = (
        block_mark(settings, dialect),
        answer_token_limit(settings, dialect.request.max_tokens_default),
    )
    said, tools, route = system_prompt(settings), settings.tools, route_of(dialect)
    table: WireTable = {
        **route.first_fields(settings),
        "max_tokens": most,
        "tools": [_tool_json(tool, ends if tool is tools[-1] else {}) for tool in tools],
        "tool_choice": _tool_choice(settings),
        "thinking": claude_thinking(settings, dialect),
        "output_config": {"effort": settings.effort, "format": _output_format(settings)},
        "system": [{"type": "text", "text": said, **ends}] if said else None,
        "stream": (settings.stream and route.has_stream_field) or None,
    }
    assumed = () if settings.max_tokens == most else (f"max_tokens {most}",)
    opening = write_json(add_setting_fields(table, settings, dialect))[:-1]
    return RequestHead(route.path(settings), opening, b',"messages":[', route.headers, assumed=assumed)


def _output_format(settings: Settings) -> Wire:
    """Return the field for the answer's schema, in which every object is closed. Return None without a schema."""
    schema = None if settings.output is None else close_schema(settings.output)
    return None if schema is None else {"type": "json_schema", "schema": schema}


_CHOICES = {"required": "any", "none": "none", None: None}


def _tool_choice(settings: Settings) -> Wire:
    """Return the `tool_choice` field, which can also limit the answer to one tool call."""
    choice, parallel = chosen_tool(settings), settings.parallel_tool_calls
    limit = {} if parallel is None else {"disable_parallel_tool_use": not parallel}
    if isinstance(choice, ToolSpec):
        return {"type": "tool", "name": choice.name, **limit}
    return {"type": _CHOICES[choice] or ("auto" if limit else None), **limit}


def _tool_json(tool: ToolSpec, mark: Mapping[str, Wire]) -> Wire:
    named = {"name": tool.name, "description": tool.description}
    return {**named, "input_schema": tool.parameters, **mark}
