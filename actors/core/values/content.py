"""What is said in a conversation: messages and their blocks, provider-neutral and frozen.

Text is held as it will be sent: escaped to a JSON string literal once, when it enters, and decoded only when someone
reads `.text`. Values that tools take and give are ingested in the same way, so nothing later can fail on them.
State that only its provider can read (a thinking signature, a native call id) is in a `ProviderState`, stamped with the
binding that produced it.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Literal, Self, TypeAlias

from actors.core.data.form import Form, Public, kept
from actors.core.data.image_header import detect_media_type, find_damage
from actors.core.data.ingest import ingest
from actors.core.data.jsonio import Json, JsonObject, JsonValue, Quoted, dump, nest, parse, quote, unquote
from actors.core.values.identity import Binding, CallId
from actors.errors import MediaError

FREE = b'{"input":%b}'
"""The arguments of a call of a tool that takes free text, with the text as a JSON string literal."""

MessageRole: TypeAlias = Literal["user", "assistant", "tool"]
Status: TypeAlias = Literal["pending", "complete", "error", "cancelled", "unknown"]
"""What is known of a tool call or its result. A result itself is never `cancelled` or `unknown`."""


class ProviderState(Form, frozen=True):
    """Opaque provider state, verbatim as a JSON string literal, and the binding that made it.

    `kind` says what it is, in the adapter's words: `signature`, `redacted`, `call_id`. A packed message leaves its own
    origin out as `maker`.
    """

    kind: str
    data: Json
    maker: Binding | None

    @property
    def origin(self) -> Binding:
        """The binding that produced it; the dialect's rule says who else may open it."""
        assert self.maker is not None, "what is packed is read by unpack"
        return self.maker

    @property
    def is_bound(self) -> bool:
        """Whether it may be bound to what stands before it. A phase is not: it marks the text behind it."""
        return self.kind != "phase"


class Text(Form, frozen=True, tag="t", init=False, metaclass=Public):
    """Words. Held as a JSON string literal; `.text` decodes it."""

    json: Quoted

    def __new__(cls, text: str = "", *, json: Json | None = None) -> Self:
        return kept(cls, quote(text) if json is None else json)

    @property
    def text(self) -> str:
        """The words, decoded at each read."""
        return unquote(self.json)


class Thinking(Form, frozen=True, tag="h", init=False, metaclass=Public):
    """A model's reasoning. With a seal it may go back, byte for byte, to its maker."""

    json: Quoted
    seal: ProviderState | None

    def __new__(cls, text: str = "", seal: ProviderState | None = None, *, json: Json | None = None) -> Self:
        return kept(cls, quote(text) if json is None else json, seal)

    @property
    def text(self) -> str:
        """The reasoning, decoded at each read. Empty where the provider shows none."""
        return unquote(self.json)


class ToolCall(Form, frozen=True, tag="c", init=False, metaclass=Public):
    """The model's request to run a tool, by the name that the model gave.

    Args:
        id: Canonical call id. In a history made by hand it may be anything, even empty or repeated.
        arguments: Any Python value, ingested to a JSON object once. What is not an object becomes `{}`, and the value
            is kept in `raw`.
        raw: The model's own text when it was no JSON object: malformed arguments, or free text. It is free text if
            `arguments` are an object that holds it as `input`.
        native: The provider's own id for the call, sealed (`call_id`); of a call with keys that its provider knows by
            others, an object with the `id` and these `keys` (`call`).
        namespace: The group of tools that the name is in, where its provider has groups; the name begins with it.
        json: The arguments as a JSON object already encoded; used in place of `arguments`.
        raw_json: Malformed arguments as a JSON string literal; used in place of `raw`.
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
        return kept(cls, id, name, json, raw_json, native, namespace, is_free)

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
        """Return a call of a tool that takes free text. Where there are only functions, the text is their `input`.

        `json` is that object already encoded; used in place of `text`.
        """
        json = Json(FREE % quote(text)) if json is None else json
        return kept(ToolCall, call_id, name, json, None, native, namespace, True)

    @property
    def native_id(self) -> str:
        """What its provider calls it; empty if it is not known."""
        return "" if self.native is None else _native_call(self.native)[0]

    @property
    def native_keys(self) -> dict[str, str]:
        """Keys of the arguments that its provider knows by others: the tool's own, each with the provider's."""
        return {} if self.native is None or self.native.kind != "call" else _native_call(self.native)[1]

    @staticmethod
    def sealed_id(call_id: str, keys: Mapping[str, str], maker: Binding) -> ProviderState | None:
        """Return what a call's provider knows of it, sealed: its id, and the keys that it has under other names."""
        if keys:
            return ProviderState("call", quote(dump({"id": call_id, "keys": dict(keys)}).decode()), maker)
        return ProviderState("call_id", quote(call_id), maker) if call_id else None

    @property
    def text(self) -> str | None:
        """The free text the tool was given, decoded at each read; None if it was given arguments."""
        return str(self.arguments.get("input", "")) if self.is_free else None

    @property
    def raw(self) -> str | None:
        """The model's own text, decoded at each read; None if it was a JSON object."""
        return self.text if self.raw_json is None else unquote(self.raw_json)

    def as_scheduled(self, arguments: Json) -> "ToolCall":
        """Return this call with the arguments that it was scheduled with, if they are others: repaired ones."""
        return self if arguments == self.json else self.with_arguments(JsonObject(arguments))

    @property
    def is_malformed(self) -> bool:
        """Whether what the model gave the tool should be a JSON object and is not."""
        return self.raw_json is not None

    def with_arguments(self, json: JsonObject) -> "ToolCall":
        """Return the call with other arguments in place of what the model wrote."""
        return kept(ToolCall, self.id, self.name, json, None, self.native, self.namespace, False)

    @property
    def arguments(self) -> dict[str, JsonValue]:
        """The arguments, decoded at each read."""
        value = parse(self.json)
        assert isinstance(value, dict)
        return value


def _native_call(seal: ProviderState) -> tuple[str, dict[str, str]]:
    """Return the id and the keys that a provider's seal of a call holds; nothing of one that holds something else."""
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


class Media(Form, frozen=True, tag="m", init=False, metaclass=Public):
    """An image or a document of a media type such as `image/png`: by value, as base64 text, or by address.

    If the bytes show their type, that type replaces `media_type`: providers refuse a wrong label (ANT-61).
    """

    media_type: str
    data: str = ""
    url: str = ""

    def __new__(cls, media_type: str, data: str = "", url: str = "") -> Self:
        has_bytes = bool(data) and type(data) is type(media_type) is str
        return kept(cls, detect_media_type(media_type, data) if has_bytes else media_type, data, url)

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str) -> "Media":
        """Return an image or a document by its bytes.

        Raises:
            MediaError: It is an image that is cut off or has no readable header, or there are no bytes.
        """
        made = cls(media_type, b64encode(data).decode())
        if (damage := made.damage) is not None:
            raise MediaError(f"Media of type {made.media_type} cannot be used: {damage}; give the whole file")
        return made

    @classmethod
    def from_url(cls, url: str, media_type: str) -> "Media":
        """Return an image or a document by its address. Who does not fetch addresses is shown a note in its place."""
        return cls(media_type, url=url)

    @property
    def damage(self) -> str | None:
        """Why a file given by value cannot be read, in words; None if nothing is wrong with it.

        Of PNG, JPEG, GIF and WebP the header is read, and whether all of the file is there; of others the base64.
        """
        return find_damage(self.media_type, self.data) if self.data or not self.url else None


class ToolResult(Form, frozen=True, tag="r", init=False, metaclass=Public):
    """The block that answers a tool call.

    Args:
        content: What the tool returned: any Python value, ingested once; None if it returned nothing.
        error: What went wrong, ingested likewise; None if nothing did.
        is_complete: What the source said of it, if it said anything.
        media: Images and documents it holds beside its words, in order.
        content_json, error_json: The same as `content` and `error`, already encoded; used in place of them.
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
        return kept(cls, call_id, content_json, error_json, is_complete, tuple(media))

    @property
    def content(self) -> JsonValue:
        """What the tool returned, decoded at each read."""
        return None if self.content_json is None else parse(self.content_json)

    @property
    def error(self) -> JsonValue:
        """What went wrong, decoded at each read."""
        return None if self.error_json is None else parse(self.error_json)

    @property
    def status(self) -> Status:
        """What the content says: error, else is_complete, else a result that is there, else pending (REQ-915-048).

        Media are a result as words are. One that is there is never pending, whatever its source said of it.
        """
        if self.error_json is not None:
            return "error"
        if self.is_complete or self.media:
            return "complete"
        return "pending" if self.content_json is None or self.content_json == b"null" else "complete"

    @property
    def rendered_json(self) -> Json:
        """The result's words as the model is shown them: one JSON string literal."""
        return in_words(self.content_json if self.error_json is None else self.error_json)


def in_words(json: Json | None) -> Json:
    """Return a value as a model is shown it: one JSON string literal, empty where there is none."""
    if json is None or json == b"null":
        return Json(b'""')
    return json if json.startswith(b'"') else nest(json)


class Code(Form, frozen=True, tag="s"):
    """Code that belongs to the conversation but is not a tool call. Shown to a model as a fenced text."""

    source: str
    language: str = ""


class ProviderBlock(Form, frozen=True, tag="n"):
    """Something of an answer that is its provider's own, by its word for it: calls of its own tools, citations.

    The seal holds the wire value. A `part` goes back in its place to whoever may open the seal; others are told that it
    stood there. An `unknown` part goes back to nobody. A `mark` belongs to what was said and stays here.
    """

    name: str
    seal: ProviderState


Block: TypeAlias = Text | Thinking | ToolCall | ToolResult | Media | Code | ProviderBlock


class Message(Form, frozen=True, init=False, metaclass=Public):
    """One item of a conversation.

    Args:
        role: `user`, `assistant` or `tool`.
        blocks: What was said, in order.
        turn: Number of the turn it belongs to, from 1; 0 where it is not known.
        origin: The binding that produced it; None for what came from outside.
    """

    role: MessageRole
    blocks: tuple[Block, ...]
    turn: int
    origin: Binding | None

    def __new__(
        cls, role: MessageRole, blocks: Iterable[Block] = (), turn: int = 0, origin: Binding | None = None
    ) -> Self:
        return kept(cls, role, tuple(blocks), turn, origin)

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
        """All text blocks, joined."""
        return "".join(block.text for block in self.blocks if type(block) is Text)
