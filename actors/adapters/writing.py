"""Write a request: the head with all fields before the first message, the array of messages, and cache marks.

The encoders of all wire families use this module. They collect the fields of the head in a table of wire keys. The
settings table (`actors.core.settings.table`) contains the wire field of each setting, so most settings need no code in
an encoder.

Each wire family derives its message writer from `BaseWriter`. In families that merge adjacent messages with the same
role, the last message stays open, and the next block with that role is added to it. The other families close every
message. In both cases, appending to the transcript never changes earlier bytes.

A cache mark tells the provider to cache the prompt up to the mark. `actors.adapters.adapter` calls `routing_keys`
and `add_marks`. The encoders call `block_mark` for tools and system prompts. The encoded messages of a session are
immutable segments without marks, so a segment is split where a mark is inserted. Two positions are marked: the end of
the previous request, and the end of this request. A provider writes a cache entry at each mark. So the first mark finds
the entry of the previous request, and the second mark creates the entry for the next request.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, get_args

from actors.adapters.request import Settings, ToolSpec
from actors.core.data.jsonio import dump, quote
from actors.core.data.persistent import SHARED, Segments
from actors.core.dialects.dialect import Cache, ChatDialect, Dialect
from actors.core.models.rules import Family, Role
from actors.core.settings.table import REQUEST_SETTINGS, SETTINGS, Setting
from actors.core.settings.values import ToolChoice
from actors.core.transcript.transcript import TranscriptFacts, Writer

_CONTENT = b'"content":'


Wire: TypeAlias = "bytes | str | int | float | Sequence[Wire] | Mapping[str, Wire] | None"
"""A value in a request body. Bytes are already encoded as JSON."""


class RequestHead(NamedTuple):
    """The part of a request that its settings determine: the path, the headers, and the body before the messages.

    `before` and `after` are the two parts of that body. The keys that route a request to a cache are inserted between
    them.
    """

    path: str
    before: bytes
    after: bytes
    headers: tuple[tuple[str, str], ...] = ()
    losses: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


def write_json(value: Wire) -> bytes:
    """Return a value as JSON, without empty members. None and empty containers become b""."""
    if value is None or isinstance(value, bytes):
        return value or b""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, int | float):
        return dump(value)
    if isinstance(value, dict):
        pairs = [
            b'"%b":%b' % (key.encode(), text) for key, item in value.items() if (text := write_json(item))
        ]
        return b"{%b}" % b",".join(pairs) if pairs else b""
    items = b",".join(filter(None, map(write_json, value)))
    return b"[%b]" % items if items else b""


def begin_body(table: Mapping[str, Wire], messages_key: str) -> bytes:
    """Return the beginning of a request body: the fields in `table`, then `messages_key` with a list that is not closed
    yet.
    """
    return write_json({**table, messages_key: b"["})[:-1]


def chosen_tool(settings: Settings) -> Literal["none", "required"] | ToolSpec | None:
    """Return the tool choice; for a forced tool, return the tool's declaration. Return None for the default choice."""
    choice = settings.tool_choice
    if choice == "auto" or not settings.tools:
        return None
    if isinstance(choice, ToolChoice):
        return next(tool for tool in settings.tools if tool.name == choice.tool)
    return choice


def system_prompt(settings: Settings) -> str | None:
    """Return the system prompt, or None if it is missing or blank."""
    return settings.system if settings.system and settings.system.strip() else None


WireTable = dict[str, Any]  # Any: values have the type `Wire`, but dict is invariant


def is_unsupported_setting(name: str, dialect: Dialect) -> bool:
    """Return True if the host or the model does not support a setting, regardless of the setting's value."""
    setting, request = SETTINGS[name], dialect.request
    field = field_name(name, dialect)
    if not field or name in request.unsupported_settings:
        return True
    if isinstance(dialect, ChatDialect) and dialect.request.keys and field not in dialect.request.keys:
        return True
    return bool(setting.fact) and not getattr(dialect.model, setting.fact)


def field_name(name: str, dialect: Dialect) -> str:
    """Return the path of the request field for a setting, with keys joined by dots, or "" if it has no field."""
    if isinstance(dialect, ChatDialect):
        if name == "max_tokens":
            return dialect.request.max_tokens_field
        if name == "seed":
            return dialect.request.seed_field
    return SETTINGS[name].wire.get(dialect.family, "")


def add_setting_fields(table: WireTable, settings: Settings, dialect: Dialect) -> WireTable:
    """Add to `table` the fields of all settings that need no code in an encoder, and return it."""
    for name, setting in _PLAIN[dialect.family].items():
        if (value := getattr(settings, name)) in (None, ()):
            continue
        _set_field(table, field_name(name, dialect), dict(value) if name == "metadata" else value)
        for path, constant in setting.constants.get(dialect.family, {}).items():
            _set_field(table, path, constant)
    return table


def _set_field(table: WireTable, path: str, value: object) -> None:
    """Set the value at a path of keys joined by dots, and create the missing objects around it."""
    *parents, key = path.split(".")
    for parent in parents:
        if not isinstance(table.get(parent), dict):
            table[parent] = {}
        table = table[parent]
    table[key] = value


def _plain_settings(family: str) -> Mapping[str, Setting]:
    return {
        name: setting
        for name, setting in SETTINGS.items()
        if name in REQUEST_SETTINGS and family in setting.wire and family not in setting.coded
    }


_PLAIN = {family: _plain_settings(family) for family in get_args(Family)}
"""The settings that an encoder copies to the request without further code, by wire family."""


class BaseWriter(Writer):
    """The base class of message writers. It begins messages and collects their bytes; subclasses write the blocks.

    The bytes are collected in pieces. A long JSON string becomes a separate piece without a copy. All bytes between
    two long strings are joined into one piece.
    """

    # closes the last message; empty in families that close every message at once
    closing: ClassVar[bytes] = b"]}"
    natives: ClassVar[bool] = True  # whether provider-specific parts can be written
    opening: ClassVar[bytes] = b'{"role":"%b","content":['  # begins a message; %b is the role
    roles: ClassVar[Mapping[str, bytes]] = {"user": b"user", "assistant": b"assistant"}

    def __init__(self, _: Dialect, last_role: Role | None) -> None:
        self._role = last_role
        self._comma = b"" if last_role is None else b","
        self._pieces: list[bytes] = []
        self._unjoined: list[bytes] = []  # bytes after the last piece, not joined yet

    def begin(self, role: Role) -> None:
        if role != self._role:
            opening = self.opening % self.roles[role]
            self._unjoined.append(opening if self._role is None else self.closing + b"," + opening)
            self._role, self._comma = role, b""

    def write_block(self, opening: bytes, literal: bytes = b"", ending: bytes = b"") -> None:
        """Write a block of the open message, or a complete message.

        The block consists of `opening` alone, or of `opening`, `literal` and `ending`. `write_more` can add more
        literals.
        """
        if len(literal) < SHARED:
            self._unjoined += (self._comma, opening, literal, ending)
        else:
            self._pieces += (b"".join((*self._unjoined, self._comma, opening)), literal)
            self._unjoined = [ending]
        self._comma = b","

    def write_more(self, literal: bytes, ending: bytes) -> None:
        """Write another literal in the current block, followed by the bytes `ending`."""
        if len(literal) < SHARED:
            self._unjoined += (literal, ending)
        else:
            self._pieces += (b"".join(self._unjoined), literal)
            self._unjoined = [ending]

    def write_native(self, part: bytes) -> None:
        self.write_block(part)

    def take_pieces(self) -> list[bytes]:
        written = [*self._pieces, b"".join(self._unjoined)] if self._unjoined else self._pieces
        self._pieces, self._unjoined = [], []
        return written


def block_mark(settings: Settings, dialect: Dialect) -> Mapping[str, Wire]:
    """Return the keys that mark a block for caching, or the cache point to add after the block. The result is empty if
    caching is off or the dialect has no cache marks.
    """
    kind = dialect.caching.marks
    return {} if settings.cache == "off" or kind == "none" else _mark_field(kind, settings.cache)


def _mark_field(kind: str, cache: Cache) -> Mapping[str, Wire]:
    key, says = ("cachePoint", "default") if kind == "point" else ("cache_control", "ephemeral")
    return {key: {"type": says, "ttl": "1h" if cache == "long" else None}}


@lru_cache
def _mark_bytes(kind: str, cache: Cache) -> bytes:
    """Return the bytes of a cache mark, to be inserted after the content of the marked block."""
    text = write_json(_mark_field(kind, cache))
    return b"," + (text if kind == "point" else text[1:-1])


def routing_keys(settings: Settings, dialect: Dialect, facts: TranscriptFacts) -> bytes:
    """Return the body fields that route a request to the machine that has cached its prompt, or b""."""
    if settings.cache == "off" or not dialect.caching.cache_key:
        return b""
    named = b',"prompt_cache_key":' + quote(facts.lane) if facts.lane else b""
    if settings.cache != "long" or dialect.caching.long_lifetime != "retention":
        return named
    return named + (_OPTIONS if dialect.model.cache == "options" else _RETENTION)


_RETENTION = b',"prompt_cache_retention":"24h"'
_OPTIONS = b',"prompt_cache_options":{"ttl":"12h"}'


def add_marks(
    segments: Segments, settings: Settings, dialect: Dialect, facts: TranscriptFacts, closing: bytes
) -> tuple[bytes, Segments]:
    """Add cache marks at the end of the previous request and at the end of this request.

    Return the mark for the head of the body and the segments with the other marks. The mark in the head (b"" if there
    is none) replaces the mark at the end of this request in dialects that allow this (`caching.moving`). `closing` is
    the last bytes of `segments`, which close the last message. Marks are inserted before these bytes.
    """
    if settings.cache == "off" or dialect.caching.marks == "none" or not segments.size:
        return b"", segments
    wanted = _mark_bytes(dialect.caching.marks, settings.cache)
    end = segments.size - len(closing)
    places = [end] if end > 0 and not dialect.caching.moving else []
    if 0 < facts.before < end:
        places.append(facts.before)
    for place in places:  # the last position first, so that a splice does not move the other position
        segments = _splice_mark(segments, place, wanted, dialect.caching.marks)
    return wanted if dialect.caching.moving else b"", segments


def _splice_mark(segments: Segments, position: int, mark: bytes, kind: str) -> Segments:
    """Return the segments with `mark` after the last block or message that ends at or before `position`.

    The search starts at the last segment, because in a long conversation, the marks are near its end.
    """
    if position <= segments.paged:
        segments = segments.flatten()
    last, at = len(segments.recent), segments.size
    while at >= position:
        last -= 1
        at -= len(segments.recent[last])
    first, piece, end = last, segments.recent[last], position - at
    while first and kind == "part" and not _has_content(piece, end):
        first -= 1  # a message with a long result consists of three segments
        piece, end = segments.recent[first] + piece, end + len(segments.recent[first])
    return segments.splice(first, last, _split_at_mark(piece, end, mark, kind))


def _has_content(piece: bytes, end: int) -> bool:
    """Return True if `piece` contains enough of the message that ends at `end` to insert a mark: its content or, for a
    list of blocks, the end of the list.
    """
    return piece[max(end - 3, 0) : end].endswith(b"}]}") or piece.rfind(_CONTENT, 0, end) >= 0


def _split_at_mark(piece: bytes, end: int, mark: bytes, kind: str) -> tuple[bytes, ...]:
    """Split a segment and insert the mark for the block or message that ends at `end`.

    Depending on the dialect, the mark is inserted after the block, inside it, or inside the last part of a message.
    Content that is a single string becomes a list of one part, with the same meaning. `content` is the last key of a
    message, and quotation marks inside a string are escaped, so a backward search finds the key.
    """
    if kind != "part" or piece[end - 2 : end] == b"]}":
        place = end - {"point": 0, "block": 1, "part": 3}[kind]
        return piece[:place], mark, piece[place:]
    start = piece.rindex(_CONTENT, 0, end) + len(_CONTENT)
    said = piece[start : end - 1]
    return piece[:start], b'[{"type":"text","text":', said, mark, b"}]", piece[end - 1 :]
