"""Collect a part of an answer while it arrives, and build its block. A part is text, thinking, a tool call, or a
provider-specific block.

The decoders fill these parts through `actors.adapters.assembly`. All parts have these members:

- done: whether the provider reported the part as complete. A later delta may revoke this.
- is_keepable: whether the part can be kept if the answer breaks off.
- block: returns the block, or None if the block would be empty. `seal_origin` is the binding that is recorded with
  signatures. This binding names the upstream that served the answer.
- is_unchanged: returns True if the block repeats the model's output exactly, so that nothing was dropped, trimmed or
  renamed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from itertools import chain
from typing import Literal, TypeAlias

from actors.adapters.document import SLICE
from actors.adapters.wire import Long, json_text
from actors.core.data.jsonio import MAX_ARGUMENTS, Json, parse_object, quote, sanitise
from actors.core.dialects.dialect import Dialect
from actors.core.schemas.property_keys import rename_keys
from actors.core.values.content import (
    FREE,
    Block,
    Media,
    ProviderBlock,
    ProviderState,
    Text,
    Thinking,
    ToolCall,
)
from actors.core.values.identity import Binding, CallId
from actors.core.values.stream import ArgumentsDelta, StreamEvent, TextDelta, ThinkingDelta

_LARGE = 64 * 1024  # characters; longer text is written in slices


@dataclass(slots=True, eq=False)
class Pieces:
    """Text that arrives in pieces. A piece may end inside a surrogate pair. `size` is in characters.

    Pieces with non-ASCII characters are stored as UTF-8, because a Python string stores every character with the width
    of its widest one.
    """

    size: int = 0
    kept: list[str | bytes] = field(default_factory=list[str | bytes])
    _half: str = ""

    @classmethod
    def from_text(cls, text: str) -> "Pieces":
        """Return well-formed text as `Pieces` with a single piece."""
        return cls(len(text), [text])

    def add(self, piece: str) -> str:
        """Add a piece, and return the well-formed text that was added. If the piece ends with half of a surrogate pair,
        that half is held back and added with the next piece.
        """
        piece, self._half = self._half + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        if piece.isascii():
            if piece:
                self.kept.append(piece)
        else:
            piece = sanitise(piece)
            self.kept.append(piece.encode())
        self.size += len(piece)
        return piece

    def add_long(self, text: str | Long) -> None:
        """Add a string as one piece, or a long text as one piece per slice."""
        for piece in (text,) if isinstance(text, str) else text.slices():
            self.add(piece)

    def texts(self) -> Iterator[str]:
        """Yield the pieces as strings."""
        return map(_piece_text, self.kept)

    def join(self) -> str:
        """Return the complete text. An incomplete surrogate pair becomes U+FFFD."""
        whole = "".join(self.texts())
        return whole + sanitise(self._half) if self._half else whole

    def slices(self) -> Iterator[str]:
        """Yield the text in slices of at most `SLICE` characters."""
        for piece in chain(self.texts(), [sanitise(self._half)]):
            for at in range(0, len(piece), SLICE):
                yield piece[at : at + SLICE]

    def literal(self, template: bytes = b"%b") -> Json:
        """Return the text as a JSON string literal, inserted at the `%b` in `template`.

        Large text is written piece by piece, because one string would store every character with the width of its
        widest one.
        """
        if self.size < _LARGE:
            return Json(template % quote(self.join()))
        before, after = (template % b'""').split(b'""')
        written = BytesIO()
        written.seek(len(before) + 1 + sum(map(len, self._escaped_pieces())))
        written.write(b'"' + after)  # write the end first, so that exactly the final size is allocated
        written.seek(0)
        written.write(before + b'"')
        for piece in self._escaped_pieces():
            written.write(piece)
        return Json(written.getvalue())

    def _escaped_pieces(self) -> Iterator[bytes]:
        """Yield the escaped text, without quotation marks, in pieces of a bounded size."""
        begun: list[str] = []
        size = 0
        for piece in self.slices():
            begun.append(piece)
            size += len(piece)
            if size >= SLICE:
                yield quote("".join(begun))[1:-1]
                begun, size = [], 0
        yield quote("".join(begun))[1:-1]

    def stripped(self, max_length: int) -> str | None:
        """Return the text without surrounding whitespace, or None if the result would be longer than `max_length`
        characters.
        """
        if self.size <= max_length:
            return self.join().strip()
        begun: list[str] = []
        size = 0
        for piece in self.slices():
            piece = piece if begun else piece.lstrip()
            size += len(piece)
            if size <= max_length + SLICE:
                begun.append(piece)
            elif not piece.isspace():
                return None
        text = "".join(begun).strip()
        return text if len(text) <= max_length else None

    def remainder_of(self, texts: Iterable[str | Long]) -> Iterator[str] | None:
        """If the joined `texts` begin with this text, return the remainder; otherwise None."""
        given = _well_formed(texts)
        held, at = "", 0
        for piece in self.slices():
            done = 0
            while done < len(piece):
                if at == len(held):
                    if (more := next(given, None)) is None:
                        return None
                    held, at = more, 0
                size = min(len(held) - at, len(piece) - done)
                if not held.startswith(piece[done : done + size], at):
                    return None
                done, at = done + size, at + size
        return chain([held[at:]] if at < len(held) else (), given)

    @property
    def is_empty(self) -> bool:
        return not self.kept and not self._half

    @property
    def is_blank(self) -> bool:
        return not self._half and all(_piece_text(piece).isspace() for piece in self.kept)

    def ends_with(self, end: str) -> bool:
        """Return True if the text ends with `end`, ignoring whitespace. Only the last piece is examined."""
        return bool(self.kept) and _piece_text(self.kept[-1]).rstrip().endswith(end)


def _piece_text(piece: str | bytes) -> str:
    return piece if isinstance(piece, str) else piece.decode()


def _well_formed(texts: Iterable[str | Long]) -> Iterator[str]:
    """Yield the joined texts in well-formed pieces, as `Pieces` stores them."""
    pieces = Pieces()
    for text in texts:
        for piece in (text,) if isinstance(text, str) else text.slices():
            if well_formed := pieces.add(piece):
                yield well_formed
            pieces.kept.clear()
    if rest := pieces.join():
        yield rest


@dataclass(slots=True, eq=False)
class PartialText:
    """A text or thinking block that is still arriving."""

    kind: Literal["text", "thinking"]
    pieces: Pieces = field(default_factory=Pieces)
    seal: ProviderState | None = None
    done: bool = False

    def delta_event(self, text: str) -> TextDelta | ThinkingDelta:
        """Return the event that announces a piece of this block."""
        return TextDelta(text) if self.kind == "text" else ThinkingDelta(text)

    @property
    def is_keepable(self) -> bool:
        return self.kind == "text" or (self.done and self.seal is not None)

    def block(self, binding: Binding, seal_origin: Binding) -> Block | None:
        has_text = bool(self.pieces.size) or not self.pieces.is_empty
        if self.kind == "text":
            return Text(json=self.pieces.literal()) if has_text else None
        return Thinking(seal=self.seal, json=self.pieces.literal()) if has_text or self.seal else None

    def is_unchanged(self, block: Block | None, dialect: Dialect) -> bool:
        return self.done if block is not None else self.kind == "thinking" and self.pieces.size == 0


@dataclass(slots=True, eq=False)
class LongTextDeltas:
    """The delta events of a long text. Iteration creates them from the pieces of the text's block.

    Attributes:
        delta: Returns the event for a piece of text.
        kept: All pieces of the block.
        first: Index of the long text's first piece.
        last: Index after the long text's last piece.
    """

    delta: Callable[[str], StreamEvent]
    kept: Sequence[str | bytes]
    first: int
    last: int

    def __iter__(self) -> Iterator[StreamEvent]:
        for at in range(self.first, self.last):
            yield self.delta(_piece_text(self.kept[at]))


@dataclass(slots=True, eq=False)
class AnswerEvents:
    """The events of a complete answer, in order. The deltas of long texts are created during iteration."""

    known: Sequence[StreamEvent | LongTextDeltas]

    def __iter__(self) -> Iterator[StreamEvent]:
        for event in self.known:
            if isinstance(event, LongTextDeltas):
                yield from event
            else:
                yield event


@dataclass(slots=True, eq=False)
class PartialCall:
    """A tool call that is still arriving. If it has no name, it collects arguments whose call is not known yet.

    Attributes:
        slot: The index of the call's first fragment.
        name: The tool's own name.
        wire_name: The tool name that the provider sent.
        free: Whether the tool takes free text instead of arguments.
        ended: Whether the call's end was announced as an event. Unlike `done`, this is never revoked.
        dropped: Whether the message omits the call, because it was cut, is a copy, or is a piece of another call.
        is_marked_complete: Whether the wire format marks the call as complete. The mark is needed for free text, which
            does not show where it ends.
        is_closed: Whether the provider marked the call's end, after which another call may use the same index.
        is_guessed: Whether fragments were assigned to the call by position alone. Such fragments may belong to another
            call.
        signature: The thinking block directly before the call, which is useless without the call.
        keys: The tool's renamed properties: a mapping from wire keys to the tool's own keys.
        renamed: Whether the call is sent back with a different tool name, because the provider rejects the name that
            the model used.
    """

    id: CallId
    slot: int | str | None = None
    native_id: str = ""
    name: str = ""
    wire_name: str = ""
    namespace: str = ""
    free: bool = False
    pieces: Pieces = field(default_factory=Pieces)
    announced: bool = False
    ended: bool = False
    dropped: bool = False
    is_marked_complete: bool = False
    is_closed: bool = False
    is_guessed: bool = False
    signature: PartialText | None = None
    renamed: bool = False
    keys: Mapping[str, str] = field(default_factory=dict[str, str])
    done: bool = False
    _checked: tuple[str, bool] = ("", True)  # the last text checked by `_is_object`, and the result

    def delta_event(self, text: str) -> ArgumentsDelta:
        """Return the event that announces a piece of the arguments."""
        return ArgumentsDelta(self.id, text)

    def early_deltas(self) -> Sequence[StreamEvent | LongTextDeltas]:
        """Return the events of the arguments that arrived before the call was announced."""
        if self.pieces.size >= _LARGE:
            return [LongTextDeltas(self.delta_event, self.pieces.kept, 0, len(self.pieces.kept))]
        return [self.delta_event(early)] if (early := self.pieces.join()) else []

    @property
    def is_whole(self) -> bool:
        """True if arguments are present and complete: either the wire format says so, or they are a complete JSON
        object.
        """
        if self.pieces.is_blank:
            return False
        return self.is_marked_complete or (
            self.pieces.size <= MAX_ARGUMENTS and self._is_object(self.pieces.join().strip())
        )

    def _is_object(self, text: str) -> bool:
        """Return True if `text` is a JSON object. The result is cached, since `is_whole` and `block` check the same
        text.
        """
        if text != self._checked[0]:
            self._checked = text, parse_object(text) is not None
        return self._checked[1]

    @property
    def is_keepable(self) -> bool:
        return self.done and bool(self.wire_name) and (self.ended or self.is_marked_complete or self.is_whole)

    def block(self, binding: Binding, seal_origin: Binding) -> Block | None:
        """Return the tool call with the argument bytes that the model sent. If they are not a JSON object, the
        arguments are `{}`, and the block keeps the bytes as raw text.
        """
        if self.dropped:
            return None
        native = ToolCall.sealed_id(self.native_id, {}, binding)
        if self.free:
            json = self.pieces.literal(FREE)
            return ToolCall.free_form(self.id, self.name, "", native, self.namespace, json=json)
        text = self.pieces.stripped(MAX_ARGUMENTS)
        is_object = text is not None and self._is_object(text)
        json = Json((is_object and text and text.encode()) or b"{}")
        if self.keys and (own := self._with_own_keys(json)) != json:
            used = {key: made for made, key in self.keys.items() if bytes(quote(made)) in bytes(json)}
            native, json = ToolCall.sealed_id(self.native_id, used, binding), own
        raw = None if is_object else self.pieces.literal()
        return ToolCall(
            self.id, self.name, None, None, native, namespace=self.namespace, json=json, raw_json=raw
        )

    def _with_own_keys(self, json: Json) -> Json:
        """Return the arguments with the tool's own keys, or unchanged if a key would occur twice after the renaming."""
        own = rename_keys(json, self.keys)
        return json if own != json and parse_object(own.decode()) is None else own

    def is_unchanged(self, block: Block | None, dialect: Dialect) -> bool:
        if not isinstance(block, ToolCall) or self.renamed:
            return False
        takes_objects = dialect.turns.arguments == "object"
        if block.is_malformed or block.is_free or (takes_objects and not block.native_keys):
            return takes_objects
        said = self.pieces.join()
        if keys := block.native_keys:
            return rename_keys(block.json, keys).decode() == (said.strip() if takes_objects else said)
        return takes_objects or said == block.json.decode()


def add_long_text(part: PartialText | PartialCall, text: Long) -> LongTextDeltas:
    """Add a long text to a part and return its delta events."""
    kept = part.pieces.kept
    first = len(kept)
    part.pieces.add_long(text)
    return LongTextDeltas(part.delta_event, kept, first, len(kept))


@dataclass(slots=True, eq=False)
class ProviderPart:
    """A provider-specific block as received so far, or media that the model generated.

    `kind` is `part` for a block that is sent back to its provider, `unknown` for a block that is never sent back, and
    `mark` for an annotation of the answer, such as a citation.
    """

    name: str
    value: object
    kind: Literal["part", "unknown", "mark"]  # the same values as in `ProviderBlock`
    done: bool = False

    @property
    def is_keepable(self) -> bool:  # a provider rejects a call of its own tool without the result (ANT-10)
        return self.done and isinstance(self.value, Media)

    def block(self, binding: Binding, seal_origin: Binding) -> Block | None:
        if isinstance(self.value, Media):
            return self.value
        return (
            ProviderBlock(self.name, ProviderState(self.kind, quote(json_text(self.value)), seal_origin))
            if self.value
            else None
        )

    def is_unchanged(self, block: Block | None, dialect: Dialect) -> bool:
        return block is not None and self.kind == "part"


Part: TypeAlias = PartialText | PartialCall | ProviderPart
