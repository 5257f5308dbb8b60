"""Define messages and their blocks as frozen, provider-neutral values.

Text is stored in the form that requests use. It is escaped to a JSON string literal once, when the value is created,
and each read of `.text` decodes it. Tool arguments and results are also converted to JSON once
(`actors.core.data.ingest`), so no later step can fail on them. State that only its provider can read, such as a
thinking signature or a native call id, is a `ProviderState`, which records the binding that produced it.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Literal, Self, TypeAlias

from actors.core.data.image_header import detect_media_type, find_damage
from actors.core.data.ingest import ingest
from actors.core.data.jsonio import (
    Json,
    JsonObject,
    JsonValue,
    Quoted,
    dump,
    parse,
    quote,
    quote_json,
    unquote,
)
from actors.core.data.record import ConstructorMeta, StoredRecord, from_fields
from actors.core.values.identity import Binding, CallId
from actors.errors import MediaError

FREE = b'{"input":%b}'
"""The arguments of a call of a free-form tool; `%b` stands for the call's text as a JSON string literal."""

MessageRole: TypeAlias = Literal["user", "assistant", "tool"]
Status: TypeAlias = Literal["pending", "complete", "error", "cancelled", "unknown"]
"""The state of a tool call or its result. Only calls can be `cancelled` or `unknown`; a `ToolResult` never is."""


class ProviderState(StoredRecord, frozen=True):
    """Opaque state of a provider, such as a reasoning signature, and the binding that produced it.

    Args:
        kind: The adapter's name for the state: `signature`, `redacted`, `call_id`.
        data: The state, unchanged, as a JSON string literal.
        maker: The binding that produced the state. In a packed message, `None` means the message's origin.
    """

    kind: str
    data: Json
    maker: Binding | None

    @property
    def origin(self) -> Binding:
        """The binding that produced the state. The dialect's rules decide which other bindings may read the state."""
        assert self.maker is not None, (
            "the provider state is packed; `unpack` its message before reading the origin"
        )
        return self.maker

    @property
    def is_bound(self) -> bool:
        """True if the state may depend on the preceding content.

        State of kind `phase` does not depend on it, because it only labels the text that follows.
        """
        return self.kind != "phase"


class Text(StoredRecord, frozen=True, tag="t", init=False, metaclass=ConstructorMeta):
    """Text, stored as a JSON string literal and decoded by `.text`.

    Args:
        text: The text.
        json: The text as a JSON string literal in UTF-8; replaces `text`.
    """

    json: Quoted

    def __new__(cls, text: str = "", *, json: Json | None = None) -> Self:
        return from_fields(cls, quote(text) if json is None else json)

    @property
    def text(self) -> str:
        """The text, decoded on each read."""
        return unquote(self.json)


class Thinking(StoredRecord, frozen=True, tag="h", init=False, metaclass=ConstructorMeta):
    """A model's reasoning.

    Args:
        text: The visible reasoning; empty if the provider hides its model's reasoning.
        seal: The provider's signature, or the reasoning in encrypted form; None if the provider sent neither. Only
            reasoning with a seal is sent back as reasoning, unchanged and only to the provider that produced it.
        json: The visible reasoning as a JSON string literal in UTF-8; replaces `text`.
    """

    json: Quoted
    seal: ProviderState | None

    def __new__(cls, text: str = "", seal: ProviderState | None = None, *, json: Json | None = None) -> Self:
        return from_fields(cls, quote(text) if json is None else json, seal)

    @property
    def text(self) -> str:
        """The reasoning, decoded on each read; empty if the provider hides its model's reasoning."""
        return unquote(self.json)


class ToolCall(StoredRecord, frozen=True, tag="c", init=False, metaclass=ConstructorMeta):
    """A model's request to run a tool.

    Args:
        id: The canonical call id. A history that a program builds may contain any string, even an empty or a repeated
            one.
        name: The tool's name, as the model wrote it.
        arguments: Any Python value, converted to JSON once. If the JSON is not an object, the arguments become `{}`,
            and `raw` keeps the JSON.
        raw: The model's own text if it was not a JSON object: malformed arguments, or the input of a free-form tool. It
            is the input of a free-form tool if `arguments` is `{"input": raw}`.
        native: The provider's id for the call, as sealed state of kind `call_id`. If the provider uses other names for
            some argument keys, the kind is `call`, and the state is an object that contains the `id` and these `keys`.
        namespace: The group that contains the tool, if the provider groups tools. The tool's name begins with it.
        json: The arguments as an encoded JSON object; replaces `arguments`.
        raw_json: The model's own text as a JSON string literal; replaces `raw`.
    """

    id: CallId
    name: str
    json: JsonObject
    raw_json: Quoted | None
    native: ProviderState | None
    namespace: str
    is_free: bool
    """True if the tool takes free text. `arguments` are then an object that contains the text as `input`."""

    def __new__(
        cls,
        id: str,  # noqa: A002  shadows the builtin, because every provider names this field `id`
        name: str,
        arguments: object = None,
        raw: str | None = None,
        native: ProviderState | None = None,
        *,
        namespace: str = "",
        json: Json | None = None,
        raw_json: Json | None = None,
    ) -> Self:
        if json is None:
            json = Json(b"{}") if arguments is None else ingest(arguments).json
            if not json.startswith(b"{"):
                json, raw = Json(b"{}"), raw if raw is not None else json.decode()
        is_free = False
        if raw is not None:
            raw_json = quote(raw)
            if is_free := json == FREE % raw_json:
                raw_json = None
        return from_fields(cls, id, name, json, raw_json, native, namespace, is_free)

    @staticmethod
    def free_form(
        call_id: str,
        name: str,
        text: str = "",
        native: ProviderState | None = None,
        namespace: str = "",
        *,
        json: Json | None = None,
    ) -> "ToolCall":
        """Return a call of a tool that takes free text.

        Dialects without free-form tools send the text as the object `{"input": text}`. Pass either `text` or `json`,
        which is this object in encoded form.
        """
        json = Json(FREE % quote(text)) if json is None else json
        return from_fields(ToolCall, call_id, name, json, None, native, namespace, True)

    @property
    def native_id(self) -> str:
        """The provider's id for the call; empty if unknown."""
        seal = self.native
        if seal is None:
            return ""
        return _read_native_call(seal)[0] if seal.kind == "call" else unquote(seal.data)

    @property
    def native_keys(self) -> dict[str, str]:
        """The argument keys that the provider renamed: each key in `arguments`, with the provider's key."""
        return {} if self.native is None or self.native.kind != "call" else _read_native_call(self.native)[1]

    @staticmethod
    def sealed_id(call_id: str, keys: Mapping[str, str], maker: Binding) -> ProviderState | None:
        """Return a call's provider id and renamed argument keys as sealed state; None if both are empty."""
        if keys:
            return ProviderState("call", quote(dump({"id": call_id, "keys": dict(keys)}).decode()), maker)
        return ProviderState("call_id", quote(call_id), maker) if call_id else None

    @property
    def text(self) -> str | None:
        """The free text of the call, decoded on each read; None unless the tool takes free text."""
        return str(self.arguments.get("input", "")) if self.is_free else None

    @property
    def raw(self) -> str | None:
        """The model's own text, decoded on each read; None if the text was a JSON object."""
        return self.text if self.raw_json is None else unquote(self.raw_json)

    def as_scheduled(self, arguments: Json) -> "ToolCall":
        """Return this call with the arguments of its `Scheduled` event, in which malformed arguments are repaired."""
        return self if arguments == self.json else self.with_arguments(JsonObject(arguments))

    @property
    def is_malformed(self) -> bool:
        """True if the model's arguments were not a JSON object although the tool takes one."""
        return self.raw_json is not None

    def with_arguments(self, json: JsonObject) -> "ToolCall":
        """Return this call with `json` as its arguments. The result is neither malformed nor free-form."""
        return from_fields(ToolCall, self.id, self.name, json, None, self.native, self.namespace, False)

    @property
    def arguments(self) -> dict[str, JsonValue]:
        """The arguments, decoded on each read."""
        value = parse(self.json)
        assert isinstance(value, dict)
        return value


def _read_native_call(seal: ProviderState) -> tuple[str, dict[str, str]]:
    """Return the id and the renamed keys in state of kind `call`. State of an unexpected shape yields empty values."""
    try:
        value = parse(unquote(seal.data).encode())
    except ValueError:  # includes JsonRefused, and UnicodeEncodeError for lone surrogates
        return "", {}
    fields = value if isinstance(value, dict) else {}
    call_id, keys = fields.get("id"), fields.get("keys")
    pairs = keys.items() if isinstance(keys, dict) else ()
    renamed = {ours: theirs for ours, theirs in pairs if isinstance(theirs, str)}
    return call_id if isinstance(call_id, str) else "", renamed


class Media(StoredRecord, frozen=True, tag="m", init=False, metaclass=ConstructorMeta):
    """An image or document with a media type such as `image/png`, as base64 data or as a URL.

    Args:
        media_type: The media type. If the first bytes of the data identify another type, that type replaces it, because
            providers reject media with a wrong type (ANT-61).
        data: The data in base64; empty for a URL.
        url: The URL that the provider fetches; empty for data.
    """

    media_type: str
    data: str = ""
    url: str = ""

    def __new__(cls, media_type: str, data: str = "", url: str = "") -> Self:
        has_bytes = bool(data) and type(data) is type(media_type) is str
        return from_fields(cls, detect_media_type(media_type, data) if has_bytes else media_type, data, url)

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str) -> "Media":
        """Return an image or document with these bytes.

        Raises:
            MediaError: The image is truncated or has no readable header, or `data` is empty.
        """
        media = cls(media_type, b64encode(data).decode())
        if (damage := media.damage) is not None:
            raise MediaError(
                f"Media of type {media.media_type} cannot be used: {damage}; pass the complete file"
            )
        return media

    @classmethod
    def from_url(cls, url: str, media_type: str) -> "Media":
        """Return an image or document at this URL. Dialects that cannot fetch URLs render a note in its place."""
        return cls(media_type, url=url)

    @property
    def damage(self) -> str | None:
        """The reason why the data cannot be read; None if the data is intact.

        PNG, JPEG, GIF and WebP must have a readable header and be complete. Data of all other types must be valid
        base64.
        """
        return find_damage(self.media_type, self.data) if self.data or not self.url else None


class ToolResult(StoredRecord, frozen=True, tag="r", init=False, metaclass=ConstructorMeta):
    """The block that answers a tool call.

    Args:
        call_id: The id of the call.
        content: The tool's return value: any Python value, converted to JSON once; None if the tool returned nothing.
        error: The error: any Python value, converted to JSON once; None if the call succeeded.
        is_complete: True if the call is known to have ended, False if it is known to be still running; None if the
            source of the result does not say. A call may end without content.
        media: Images and documents of the result, in order, in addition to its text.
        content_json, error_json: `content` and `error` as encoded JSON; each replaces the argument of the same name.
    """

    call_id: CallId
    content_json: Json | None
    error_json: Json | None
    is_complete: bool | None
    media: tuple[Media, ...]

    def __new__(
        cls,
        call_id: str,
        content: object = None,
        error: object = None,
        is_complete: bool | None = None,
        media: Iterable[Media] = (),
        *,
        content_json: Json | None = None,
        error_json: Json | None = None,
    ) -> Self:
        if content_json is None and content is not None:
            content_json = ingest(content).json
        if error_json is None and error is not None:
            error_json = ingest(error).json
        return from_fields(cls, call_id, content_json, error_json, is_complete, tuple(media))

    @property
    def content(self) -> JsonValue:
        """The return value, decoded on each read."""
        return None if self.content_json is None else parse(self.content_json)

    @property
    def error(self) -> JsonValue:
        """The error, decoded on each read."""
        return None if self.error_json is None else parse(self.error_json)

    @property
    def status(self) -> Status:
        """The result's status: `error`, `complete` or `pending`.

        A result with an error is an `error`. A result without an error is `complete` if it has content or media, or if
        `is_complete` is True. Any other result is `pending`. A result with content is therefore never `pending`.
        """
        # REQ-915-048 requires this order
        if self.error_json is not None:
            return "error"
        if self.is_complete or self.media:
            return "complete"
        return "pending" if self.content_json is None or self.content_json == b"null" else "complete"

    @property
    def rendered_json(self) -> Json:
        """The result's text in transcripts, as one JSON string literal."""
        return transcript_text(self.content_json if self.error_json is None else self.error_json)


def transcript_text(json: Json | None) -> Json:
    """Return a JSON value as text for a transcript, as one JSON string literal. None and null become empty text."""
    if json is None or json == b"null":
        return Json(b'""')
    return json if json.startswith(b'"') else quote_json(json)


class Code(StoredRecord, frozen=True, tag="s"):
    """Source code that belongs to the conversation but is not a tool call. Transcripts show it in a code fence.

    Args:
        source: The code, without a fence.
        language: The language after the opening fence, such as `python`; may be empty.
    """

    source: str
    language: str = ""


class ProviderBlock(StoredRecord, frozen=True, tag="n"):
    """A block of an answer that only its provider defines, such as a call of the provider's own tool or a citation.

    Args:
        name: The provider's name for the block.
        seal: The block as the provider sent it. Its `kind` decides what later requests contain. A `part` is sent back
            at the same position to every binding that may read the seal; other bindings receive a note. A block of kind
            `unknown` is never sent. A `mark`, which annotates the answer, is never sent either.
    """

    name: str
    seal: ProviderState


Block: TypeAlias = Text | Thinking | ToolCall | ToolResult | Media | Code | ProviderBlock
"""A part of a message."""


class Message(StoredRecord, frozen=True, init=False, metaclass=ConstructorMeta):
    """One message of a conversation.

    Args:
        role: `user`, `assistant` or `tool`.
        blocks: The content, in order.
        turn: Number of the message's turn, from 1; 0 if unknown.
        origin: The binding that produced the message; None if no binding did, as for a user's message.
    """

    role: MessageRole
    blocks: tuple[Block, ...]
    turn: int
    origin: Binding | None

    def __new__(
        cls, role: MessageRole, blocks: Iterable[Block] = (), turn: int = 0, origin: Binding | None = None
    ) -> Self:
        return from_fields(cls, role, tuple(blocks), turn, origin)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls among the blocks, in order."""
        return tuple([block for block in self.blocks if type(block) is ToolCall])

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results among the blocks, in order."""
        return tuple([block for block in self.blocks if type(block) is ToolResult])

    @property
    def text(self) -> str:
        """The text blocks, joined without a separator."""
        return "".join(block.text for block in self.blocks if type(block) is Text)
