"""A part of an answer while it arrives, and the block it becomes: words, a tool call, or what is its provider's own."""

from typing import Literal, TypeAlias

from actors.adapters.wire import json_text
from actors.core.content import Block, Media, Native, Seal, Text, Thinking, ToolCall
from actors.core.identity import Binding, CallId
from actors.core.jsonio import Json, parse_object, quote, sanitised


class Pieces:
    """Text that arrives in pieces, which may be cut inside a surrogate pair."""

    __slots__ = ("_half", "_kept", "size")

    def __init__(self) -> None:
        self._kept: list[str] = []
        self._half = ""
        self.size = 0
        """Characters so far."""

    def add(self, piece: str) -> str:
        """Keep `piece` and return what can be shown: well-formed, a trailing half pair held back."""
        piece, self._half = self._half + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        if not piece.isascii():
            piece = sanitised(piece)
        self._kept.append(piece)
        self.size += len(piece)
        return piece

    def whole(self) -> str:
        """Return all of it. A half pair whose other half never came is U+FFFD."""
        if len(self._kept) > 1:
            self._kept = ["".join(self._kept)]
        whole = "".join(self._kept)
        return whole + sanitised(self._half) if self._half else whole


class Words:
    """A text or thinking block that is arriving."""

    __slots__ = ("done", "kind", "pieces", "seal")

    def __init__(self, kind: Literal["text", "thinking"]) -> None:
        self.kind = kind
        self.pieces = Pieces()
        self.seal: Seal | None = None
        self.done = False

    def block(self) -> Block | None:
        """Return the block, or None if it would hold nothing."""
        text = self.pieces.whole()
        if self.kind == "text":
            return Text(text) if text else None
        return Thinking(text, self.seal) if text or self.seal else None


class ArrivingCall:
    """A tool call that is arriving."""

    __slots__ = (
        "announced",
        "arguments",
        "done",
        "dropped",
        "ended",
        "free",
        "id",
        "name",
        "namespace",
        "native_id",
        "renamed",
        "signature",
        "told",
    )

    def __init__(self, call_id: CallId) -> None:
        self.id = call_id
        self.native_id = ""
        self.name = ""
        self.namespace = ""
        self.free = False  # whether it is given free text, and no arguments
        self.arguments = Pieces()
        self.announced = False
        self.done = False
        self.ended = False  # as told; `done` may be taken back
        self.dropped = False
        self.told = False  # that it is complete, by name or by coming whole: free text cannot show it
        self.signature: Words | None = None  # what stands in front of it and is worth nothing without it
        self.renamed = False
        """Whether it goes back under another name than the model gave it: one that its provider takes."""

    @property
    def is_whole(self) -> bool:
        """Whether there are arguments, and all of them: as told, or an object that was written to its end."""
        text = self.arguments.whole().strip()
        return bool(text) and (self.told or parse_object(text) is not None)

    def block(self, binding: Binding) -> ToolCall:
        """Return the call. Its arguments are the model's own bytes; `{}` and `raw` if they are no object."""
        raw = self.arguments.whole()
        text = raw.strip()
        native = Seal("call_id", quote(self.native_id), binding) if self.native_id else None
        if self.free:
            return ToolCall.free_form(self.id, self.name, raw, native, self.namespace)
        if parse_object(text) is None:
            raw_text, json = raw, Json(b"{}")
        else:
            raw_text, json = None, Json(text.encode() or b"{}")
        return ToolCall(self.id, self.name, None, raw_text, native, namespace=self.namespace, json=json)


class Own:
    """What is the provider's own, or a medium that its model made.

    Attributes:
        value: As it stands on the wire, as far as it came; a `Media` where it is one.
        kind: As in `Native`: `part`, `unknown` or `mark`.
    """

    __slots__ = ("done", "kind", "name", "value")

    def __init__(self, name: str, value: object, kind: Literal["part", "unknown", "mark"]) -> None:
        self.name = name
        self.value = value
        self.kind: Literal["part", "unknown", "mark"] = kind
        self.done = False

    def block(self, origin: Binding) -> Block | None:
        """Return the block, or None if it would hold nothing."""
        if isinstance(self.value, Media):
            return self.value
        return (
            Native(self.name, Seal(self.kind, quote(json_text(self.value)), origin)) if self.value else None
        )


Part: TypeAlias = Words | ArrivingCall | Own
