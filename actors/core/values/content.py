"""Define messages and their blocks as frozen, provider-neutral values.

Text is stored in the form that requests use: escaped to a JSON string literal once, on entry, and decoded by each read
of `.text`. Tool arguments and results are converted to JSON in the same way (`core.data.ingest`), so no later step can
fail on them. State that only its provider can read, such as a thinking signature or a native call id, is a
`ProviderState` with the binding that produced it.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Literal, Self, TypeAlias

from actors.core.data.image_header import detect_media_type, find_damage
from actors.core.data.ingest import ingest
from actors.core.data.jsonio import Json, JsonObject, JsonValue, Quoted, dump, nest, parse, quote, unquote
from actors.core.data.record import ConstructorMeta, StoredRecord, from_fields
from actors.core.values.identity import Binding, CallId
from actors.errors import MediaError

FREE = b'{"input":%b}'
"""The arguments of a free-form tool's call; `%b` stands for the text as a JSON string literal."""

MessageRole: TypeAlias = Literal["user", "assistant", "tool"]
Status: TypeAlias = Literal["pending", "complete", "error", "cancelled", "unknown"]
"""The state of a tool call or its result. A `ToolResult` itself is never `cancelled` or `unknown`."""


class ProviderState(StoredRecord, frozen=True):
    """Opaque provider state: a JSON string literal, verbatim, and the binding that produced it.

    `kind` is the adapter's name for the state: `signature`, `redacted`, `call_id`. `maker` is None only inside a
    packed message, where it stands for the message's own origin.
    """

    kind: str
    data: Json
    maker: Binding | None

    @property
    def origin(self) -> Binding:
        """The binding that produced the state. The dialect's rules decide which other bindings may read it."""
        assert self.maker is not None, "only `unpack` may read packed state"
        return self.maker

    @property
    def is_bound(self) -> bool:
        """True if the state may depend on the preceding content. A phase does not: it describes the text after it."""
        return self.kind != "phase"


class Text(StoredRecord, frozen=True, tag="t", init=False, metaclass=ConstructorMeta):
    """Text, stored as a JSON string literal; `.text` decodes it."""

    json: Quoted

    def __new__(cls, text: str = "", *, json: Json | None = None) -> Self:
        return from_fields(cls, quote(text) if json is None else json)

    @property
    def text(self) -> str:
        """The text, decoded on each read."""
        return unquote(self.json)


class Thinking(StoredRecord, frozen=True, tag="h", init=False, metaclass=ConstructorMeta):
    """A model's reasoning. With a seal, it may be sent back unchanged to the provider that produced it."""

    json: Quoted
    seal: ProviderState | None

    def __new__(cls, text: str = "", seal: ProviderState | None = None, *, json: Json | None = None) -> Self:
        return from_fields(cls, quote(text) if json is None else json, seal)

    @property
    def text(self) -> str:
        """The reasoning, decoded on each read; empty if the provider hides it."""
        return unquote(self.json)


class ToolCall(StoredRecord, frozen=True, tag="c", init=False, metaclass=ConstructorMeta):
    """A model's request to run a tool, under the tool name that the model wrote.

    Args:
        id: Canonical call id. In a history that a program builds, any string, even empty or repeated.
        arguments: Any Python value, converted to a JSON object once. A value of another type becomes `{}`, and its text
            is kept in `raw`.
        raw: The model's own text if it was not a JSON object: malformed arguments or free text. It is free text if
            `arguments` is an object that holds it as `input`.
        native: The provider's id for the call, sealed (`call_id`). If the provider has other names for some keys, an
            object with the `id` and these `keys` (`call`).
        namespace: The group of tools that contains the tool, if its provider has groups; a prefix of the name.
        json: The arguments as an encoded JSON object; replaces `arguments`.
        raw_json: Malformed arguments as a JSON string literal; replaces `raw`.
    """

    id: CallId
    name: str
    json: JsonObject
    raw_json: Quoted | None
    native: ProviderState | None
    namespace: str
    is_free: bool

    def __new__(
        cls,
        id: str,  # noqa: A002  the field's standard name
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
        """Return a call of a tool that takes free text. Dialects without free-form tools send the text as `input`.

        `json` is that object already encoded; it replaces `text`.
        """
        json = Json(FREE % quote(text)) if json is None else json
        return from_fields(ToolCall, call_id, name, json, None, native, namespace, True)

    @property
    def native_id(self) -> str:
        """The provider's id for the call; empty if unknown."""
        return "" if self.native is None else _native_call(self.native)[0]

    @property
    def native_keys(self) -> dict[str, str]:
        """The provider's key for each argument key that it renames."""
        return {} if self.native is None or self.native.kind != "call" else _native_call(self.native)[1]

    @staticmethod
    def sealed_id(call_id: str, keys: Mapping[str, str], maker: Binding) -> ProviderState | None:
        """Return the provider's id and renamed keys of a call as sealed state; None if both are empty."""
        if keys:
            return ProviderState("call", quote(dump({"id": call_id, "keys": dict(keys)}).decode()), maker)
        return ProviderState("call_id", quote(call_id), maker) if call_id else None

    @property
    def text(self) -> str | None:
        """The free text of the call, decoded on each read; None if the call has arguments."""
        return str(self.arguments.get("input", "")) if self.is_free else None

    @property
    def raw(self) -> str | None:
        """The model's own text, decoded on each read; None if it was a JSON object."""
        return self.text if self.raw_json is None else unquote(self.raw_json)

    def as_scheduled(self, arguments: Json) -> "ToolCall":
        """Return this call with the arguments it was scheduled with, which differ if they were repaired."""
        return self if arguments == self.json else self.with_arguments(JsonObject(arguments))

    @property
    def is_malformed(self) -> bool:
        """True if the model's arguments should be a JSON object but are not."""
        return self.raw_json is not None

    def with_arguments(self, json: JsonObject) -> "ToolCall":
        """Return the call with `json` in place of the model's arguments."""
        return from_fields(ToolCall, self.id, self.name, json, None, self.native, self.namespace, False)

    @property
    def arguments(self) -> dict[str, JsonValue]:
        """The arguments, decoded on each read."""
        value = parse(self.json)
        assert isinstance(value, dict)
        return value


def _native_call(seal: ProviderState) -> tuple[str, dict[str, str]]:
    """Return the id and the renamed keys in a call's sealed state; empty values for state of another shape."""
    if seal.kind != "call":
        return unquote(seal.data), {}
    try:
        held = parse(unquote(seal.data).encode())
    except ValueError:  # JsonRefused, and UnicodeEncodeError for lone surrogates
        return "", {}
    fields = held if isinstance(held, dict) else {}
    call_id, keys = fields.get("id"), fields.get("keys")
    known = keys.items() if isinstance(keys, dict) else ()
    texts = {own: made for own, made in known if isinstance(made, str)}
    return call_id if isinstance(call_id, str) else "", texts


class Media(StoredRecord, frozen=True, tag="m", init=False, metaclass=ConstructorMeta):
    """An image or document with a media type such as `image/png`: base64 data, or a URL.

    If the first bytes identify a type, that type replaces `media_type`, because providers reject a wrong label
    (ANT-61).
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
        made = cls(media_type, b64encode(data).decode())
        if (damage := made.damage) is not None:
            raise MediaError(
                f"Media of type {made.media_type} cannot be used: {damage}; pass the complete file"
            )
        return made

    @classmethod
    def from_url(cls, url: str, media_type: str) -> "Media":
        """Return an image or document with this URL. Dialects that cannot fetch URLs render a note instead."""
        return cls(media_type, url=url)

    @property
    def damage(self) -> str | None:
        """The reason why the data cannot be read; None if it is intact.

        PNG, JPEG, GIF and WebP are checked for a readable header and a complete file, all other types for valid
        base64.
        """
        return find_damage(self.media_type, self.data) if self.data or not self.url else None


class ToolResult(StoredRecord, frozen=True, tag="r", init=False, metaclass=ConstructorMeta):
    """The block that answers a tool call.

    Args:
        content: The tool's return value: any Python value, converted to JSON once. None if there is none.
        error: The error, converted in the same way; None if the call succeeded.
        is_complete: The source's own completion flag, if it has one.
        media: Images and documents of the result, in order, in addition to its text.
        content_json, error_json: `content` and `error` already encoded; they replace these arguments.
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
        """The result's status: an error first, then `is_complete`, then present content, else pending (REQ-915-048).

        Media count as content. A result with content is never pending, whatever its source reports.
        """
        if self.error_json is not None:
            return "error"
        if self.is_complete or self.media:
            return "complete"
        return "pending" if self.content_json is None or self.content_json == b"null" else "complete"

    @property
    def rendered_json(self) -> Json:
        """The result's text as a transcript contains it: one JSON string literal."""
        return in_words(self.content_json if self.error_json is None else self.error_json)


def in_words(json: Json | None) -> Json:
    """Return a value as the text of a transcript: one JSON string literal, empty for None and null."""
    if json is None or json == b"null":
        return Json(b'""')
    return json if json.startswith(b'"') else nest(json)


class Code(StoredRecord, frozen=True, tag="s"):
    """Code that belongs to the conversation but is not a tool call. Rendered as a fenced code block."""

    source: str
    language: str = ""


class ProviderBlock(StoredRecord, frozen=True, tag="n"):
    """A provider-specific part of an answer, under the provider's name for it: a server tool's call, a citation.

    The seal holds the wire value. A `part` is sent back in its place to every binding that may read the seal; other
    bindings see a note that it existed. An `unknown` part is never sent again. A `mark` annotates the answer and is
    never sent.
    """

    name: str
    seal: ProviderState


Block: TypeAlias = Text | Thinking | ToolCall | ToolResult | Media | Code | ProviderBlock


class Message(StoredRecord, frozen=True, init=False, metaclass=ConstructorMeta):
    """One message of a conversation.

    Args:
        role: `user`, `assistant` or `tool`.
        blocks: The content, in order.
        turn: Number of the message's turn, from 1; 0 if unknown.
        origin: The binding that produced the message; None for messages from outside.
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
