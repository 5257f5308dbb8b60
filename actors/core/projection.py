"""Projection: canonical ids and tool names to what a provider accepts.

Injective within a lane and stable for its life: an id, once given, is never given to another call and
never changes, whatever the epoch. It depends on the canonical id and on earlier first appearances alone; in
Kimi's form also on the name and on how many calls the lane has seen, an index that is never given twice.

Where documents have names, each is called after a digest of its bytes, so it is called the same in every epoch and
lane, and a number follows where the epoch has that name already (BED-15).

A native id goes back to the binding that minted it, where the dialect allows and the lane does not use it
already; newer models bind their reasoning to the bytes before it, ids included. The forms of REQ-915-018
and -019 are those of the ids we mint.
"""

import re
from functools import lru_cache
from hashlib import sha256
from typing import Literal, TypeAlias, assert_never

from actors.core.content import Media, Thinking, ToolCall, ToolResult
from actors.core.dialect import Dialect
from actors.core.identity import Binding, CallId
from actors.core.jsonio import Json, parse, unquote
from actors.core.table import Table
from actors.core.transcript import Spent, Standing, WireCall, WireMedia, WireResult

Digested: TypeAlias = Literal["openai", "anthropic", "mistral", "bedrock"]
"""Styles whose ids are made from a digest of the canonical id, and from nothing else."""

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PAIRS = [low + high for high in _BASE62 for low in _BASE62]
_RANGE = 62**24


class Projection:
    """The ids and names of one lane while new ones are being given.

    Args:
        standing: What the lane remembers of those given earlier.
        dialect: The form of ids and names.
        reader: The binding rendered for; the ids it minted itself stay.
    """

    def __init__(self, standing: Standing, dialect: Dialect, reader: Binding | None) -> None:
        self._calls = standing.calls
        self._used = standing.used
        self._index = standing.index
        self._spent = standing.spent
        self._dialect = dialect
        self._models = dialect.thinking_binding == "upstream"  # behind a gateway, each is another provider's
        self._home = None if reader is None else self._provider(reader)
        self._is_id = re.compile(dialect.id_pattern).fullmatch
        self._new: dict[CallId, str] = {}
        self._taken: dict[str, CallId] = {}
        self._names: dict[CallId, str] = {}
        self._items: dict[str, None] = {}
        self._titles: dict[str, int] = {}
        self._media = self._documents = 0

    def call(self, call: ToolCall) -> WireCall:
        """Return `call` with the id it has in this lane, given at its first appearance, and its name."""
        name = tool_name(call.name, self._dialect.tool_name_pattern)
        self._names[call.id] = name
        return WireCall(self._id(call, name), name, call.json)

    def result(self, result: ToolResult) -> WireResult:
        """Return a result under the id and name of its call: calls come before their results."""
        call_id = result.call_id
        emitted = self._new.get(call_id) or self._calls.get(call_id) or ""
        failed, name = result.error_json is not None, self._names.get(call_id, "")
        media = tuple([self.media(item) for item in result.media])
        return WireResult(emitted, result.shown, failed, name, media)

    def media(self, media: Media) -> WireMedia:
        """Return an attachment, counted, and named where it is a document and the dialect asks for a name."""
        self._media += 1
        if media.mime.startswith("image/"):
            return WireMedia(media.mime, media.data, media.url)
        self._documents += 1
        name = self._title(media) if self._dialect.named_documents else ""
        return WireMedia(media.mime, media.data, media.url, name)

    def _title(self, media: Media) -> str:
        content = (media.data or media.url).encode("utf-8", "surrogatepass")
        title = f"document-{sha256(content).hexdigest()[:8]}"
        times = 1 + (self._titles.get(title) or self._spent.titles.get(title) or 0)
        self._titles[title] = times
        return title if times == 1 else f"{title}-{times}"

    @property
    def thinking_once(self) -> bool:
        """Whether the dialect takes a reasoning item once only."""
        return self._dialect.thinking_once

    def withholds(self, block: Thinking) -> bool:
        """Say whether reasoning must stay behind: its item went out in this epoch before, or is none.

        An item that may go is noted.
        """
        if block.seal is None:
            return False
        if block.seal.kind == "phase":
            return block.seal.data not in _PHASES
        item_id = _reasoning_id(block.seal.data)
        if item_id is None:
            return True
        if item_id in self._items or item_id in self._spent.items:
            return True
        self._items[item_id] = None
        return False

    def _id(self, call: ToolCall, name: str) -> str:
        known = self._new.get(call.id) or self._calls.get(call.id)
        if known is not None:
            return known
        emitted = self._native(call) or self._minted(call.id, name)
        self._new[call.id] = emitted
        if emitted:
            self._taken[emitted] = call.id
        self._index = max(self._index + 1, _ordinal(emitted) + 1)
        return emitted

    @property
    def names(self) -> frozenset[str]:
        """The tool names given out, as the provider sees them."""
        return frozenset(self._names.values())

    def adopted(self) -> tuple[Table[CallId, str], Table[str, CallId], int, Spent]:
        """Return the lane's tables with the new ids in them, the index of the next call, and what is used up."""
        return self._calls.update(self._new), self._used.update(self._taken), self._index, self._used_up()

    def _used_up(self) -> Spent:
        if not self._media and not self._items:
            return self._spent
        media, documents, titles, items = self._spent
        return Spent(
            media + self._media,
            documents + self._documents,
            titles.update(self._titles),
            items.update(self._items),
        )

    def _free(self, emitted: str) -> bool:
        return emitted not in self._taken and emitted not in self._used

    def _native(self, call: ToolCall) -> str | None:
        seal = call.native
        if seal is None or not self._dialect.native_id_passthrough or not self._own(seal.origin):
            return None
        native = unquote(seal.data)
        return native if self._is_id(native) and self._free(native) else None

    def _own(self, origin: Binding) -> bool:
        return self._provider(origin) == self._home

    def _provider(self, binding: Binding) -> tuple[str, str, str]:
        """Return what says whose ids a binding's calls have."""
        return (binding.dialect, binding.endpoint, binding.model if self._models else "")

    def _minted(self, call_id: CallId, name: str) -> str:
        style = self._dialect.id_style
        if style == "none":
            return ""
        if style == "kimi":
            return f"functions.{name}:{self._index}"  # no call was ever given this index, so it is free
        probe = 0
        while not self._free(emitted := mint(style, call_id, probe)):
            probe += 1
        return emitted


REASONING_ID = re.compile(r"rs_[A-Za-z0-9_-]{1,61}")
"""The id of a reasoning item that may be sent again (OAR-06)."""
_PHASES = (b'"commentary"', b'"final_answer"')


def _reasoning_id(data: Json) -> str | None:
    """Return the id of the sealed reasoning item, None where the seal holds nothing that could be sent again."""
    try:
        item = parse(unquote(data).encode())
    except ValueError:  # JsonRefused, and UnicodeEncodeError for lone surrogates
        return None
    if type(item) is not dict or item.get("type") != "reasoning" or type(item.get("summary")) is not list:
        return None
    item_id, state = item.get("id"), item.get("encrypted_content")
    if type(item_id) is not str or not REASONING_ID.fullmatch(item_id):
        return None
    return item_id if type(state) is str and state else None


_ORDINAL = re.compile(r":(\d{1,9})\Z")


def _ordinal(emitted: str) -> int:
    """Return the index at the end of an id in Kimi's form, -1 where there is none (REQ-915-020)."""
    found = _ORDINAL.search(emitted) if ":" in emitted else None
    return int(found[1]) if found else -1


@lru_cache(maxsize=8192)  # sessions number their calls alike, so they share these
def mint(style: Digested, call_id: CallId, probe: int = 0) -> str:
    """Return the id of a foreign call in a provider's form; `probe` counts collisions already met."""
    digest = _digest(f"{call_id}#{probe}" if probe else call_id)
    match style:
        case "openai":
            return f"call_{digest[:24]}"
        case "anthropic":
            return f"toolu_{digest[:24]}"
        case "bedrock":
            return f"tooluse_{digest[:22]}"
        case "mistral":
            return digest[:9]
        case _:
            assert_never(style)


def _digest(text: str) -> str:
    number = int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest()) % _RANGE
    digits: list[str] = []
    for _ in range(12):
        number, pair = divmod(number, len(_PAIRS))
        digits.append(_PAIRS[pair])
    return "".join(digits)


@lru_cache(maxsize=4096)
def tool_name(name: str, pattern: str) -> str:
    """Return `name` if it matches the dialect's pattern, else a name made from it that does.

    A model may invent a name (`functions.read`, an empty one); it stays in history, and history is
    validated like the tool list. Distinct names stay distinct: a made name ends in a digest of the whole.
    """
    if re.fullmatch(pattern, name):
        return name
    stem = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:40].lstrip("-0123456789_") or "tool"
    return f"{stem}_{_digest(name)[:8]}"
