"""A part of an answer while it arrives, and the block it becomes: words, a tool call, or what is its provider's own.

done            the provider says that it is complete, which it may take back
is_keepable     whether it may be kept of an answer that broke off
block           the block, or None if it would hold nothing; `maker` is the binding with the upstream that served it
is_said_again   whether the block says all that the model said: it is not left out, cut, trimmed or renamed
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from actors.adapters.wire import json_text
from actors.core.content import Block, Media, Native, Seal, Text, Thinking, ToolCall
from actors.core.dialect import Dialect
from actors.core.identity import Binding, CallId
from actors.core.jsonio import Json, parse_object, quote, sanitised
from actors.core.property_keys import with_keys


@dataclass(slots=True, eq=False)
class Pieces:
    """Text that arrives in pieces, which may be cut inside a surrogate pair. `size` is in characters."""

    size: int = 0
    kept: list[str] = field(default_factory=list)
    _half: str = ""

    def add(self, piece: str) -> str:
        """Keep `piece` and return what can be shown: well-formed, a trailing half pair held back."""
        piece, self._half = self._half + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        if not piece.isascii():
            piece = sanitised(piece)
        if piece:
            self.kept.append(piece)
            self.size += len(piece)
        return piece

    def whole(self) -> str:
        """Return all of it. A half pair whose other half never came is U+FFFD."""
        whole = "".join(self.kept)
        return whole + sanitised(self._half) if self._half else whole

    @property
    def is_blank(self) -> bool:
        return not self._half and all(piece.isspace() for piece in self.kept)

    def ends_with(self, end: str) -> bool:
        """Say whether the text ends with a character, blanks aside, as far as the last piece shows."""
        return bool(self.kept) and self.kept[-1].rstrip().endswith(end)


@dataclass(slots=True, eq=False)
class Words:
    """A text or thinking block that is arriving."""

    kind: Literal["text", "thinking"]
    pieces: Pieces = field(default_factory=Pieces)
    seal: Seal | None = None
    done: bool = False

    @property
    def is_keepable(self) -> bool:
        return self.kind == "text" or (self.done and self.seal is not None)

    def block(self, binding: Binding, maker: Binding) -> Block | None:
        text = self.pieces.whole()
        if self.kind == "text":
            return Text(text) if text else None
        return Thinking(text, self.seal) if text or self.seal else None

    def is_said_again(self, block: Block | None, dialect: Dialect) -> bool:
        return self.done if block is not None else self.kind == "thinking" and self.pieces.size == 0


@dataclass(slots=True, eq=False)
class ArrivingCall:
    """A tool call that is arriving. Without a name it is arguments that wait for their call.

    Attributes:
        slot: Where its first fragment said that it is.
        name: The tool's own name; `wire_name` is the one that the provider gave.
        free: Whether it is given free text instead of arguments.
        ended: Whether its end was announced; `done` may be taken back.
        dropped: Whether it is left out: cut, a copy of another, or a part of one.
        told: Whether it is complete by name or by coming whole: free text cannot show it.
        is_closed: Whether the provider marked its end, behind which another call may have its place.
        signature: What stands in front of it and is worth nothing without it.
        keys: Properties of its tool that the provider knows by another key: that key to the tool's own.
        renamed: Whether it goes back under another name than the model gave it: one that its provider takes.
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
    told: bool = False
    is_closed: bool = False
    signature: Words | None = None
    renamed: bool = False
    keys: Mapping[str, str] = field(default_factory=dict)
    done: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether there are arguments, and all of them: as told, or an object that was written to its end."""
        if self.pieces.is_blank:
            return False
        return self.told or parse_object(self.pieces.whole().strip()) is not None

    @property
    def is_keepable(self) -> bool:
        return self.done and bool(self.wire_name) and (self.ended or self.told or self.is_whole)

    def block(self, binding: Binding, maker: Binding) -> Block | None:
        """Return the call. Its arguments are the model's own bytes; `{}` and `raw` if they are no object."""
        if self.dropped:
            return None
        raw = self.pieces.whole()
        native = ToolCall.sealed_id(self.native_id, {}, binding)
        if self.free:
            return ToolCall.free_form(self.id, self.name, raw, native, self.namespace)
        is_object = parse_object(text := raw.strip()) is not None
        json = Json((is_object and text.encode()) or b"{}")
        if self.keys and (own := self._with_own_keys(json)) != json:
            used = {key: made for made, key in self.keys.items() if bytes(quote(made)) in bytes(json)}
            native, json = ToolCall.sealed_id(self.native_id, used, binding), own
        raw_text = None if is_object else raw
        return ToolCall(self.id, self.name, None, raw_text, native, namespace=self.namespace, json=json)

    def _with_own_keys(self, json: Json) -> Json:
        """Return arguments with the tool's own keys; as they are, if a key would be there twice."""
        own = with_keys(json, self.keys)
        return json if own != json and parse_object(own.decode()) is None else own

    def is_said_again(self, block: Block | None, dialect: Dialect) -> bool:
        if not isinstance(block, ToolCall) or self.renamed:
            return False
        said, takes_objects = self.pieces.whole(), dialect.turns.arguments == "object"
        if keys := block.native_keys:
            return with_keys(block.json, keys).decode() == (said.strip() if takes_objects else said)
        return takes_objects or said == block.json.decode()


@dataclass(slots=True, eq=False)
class Own:
    """What is the provider's own, as it stands on the wire and as far as it came, or a medium that its model made."""

    name: str
    value: object
    kind: Literal["part", "unknown", "mark"]  # as in `Native`
    done: bool = False

    @property
    def is_keepable(self) -> bool:  # a call of a provider's own tool is refused without its result (ANT-10)
        return self.done and isinstance(self.value, Media)

    def block(self, binding: Binding, maker: Binding) -> Block | None:
        if isinstance(self.value, Media):
            return self.value
        return Native(self.name, Seal(self.kind, quote(json_text(self.value)), maker)) if self.value else None

    def is_said_again(self, block: Block | None, dialect: Dialect) -> bool:
        return block is not None and self.kind == "part"


Part: TypeAlias = Words | ArrivingCall | Own
