"""Projection: canonical ids and tool names to what a provider accepts.

Injective within a lane and stable for its life: an id is never given to another call and never changes, whatever the
epoch. It depends on the canonical id and on earlier first appearances alone; in Kimi's form also on the name and on how
many calls the lane has seen, an index that is never given twice.

A native id goes back to the binding that minted it, where the dialect allows and the lane does not use it already;
newer models bind their reasoning to the bytes before it, ids included. REQ-915-018 and -019 govern the ids we mint.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, TypeAlias

from actors.core.data.form import replace
from actors.core.data.table import PersistentMap
from actors.core.dialects.dialect import Dialect
from actors.core.schemas.property_keys import with_keys
from actors.core.transcript.transcript import RenderState
from actors.core.values.content import ToolCall
from actors.core.values.identity import Binding, CallId, content_name

Digested: TypeAlias = Literal["openai", "anthropic", "mistral", "bedrock"]
"""Styles whose ids are made from a digest of the canonical id, and from nothing else."""
_FORMS: Mapping[Digested, tuple[str, int]] = {
    "openai": ("call_", 24),
    "anthropic": ("toolu_", 24),
    "bedrock": ("tooluse_", 22),
    "mistral": ("", 9),
}
"""What such an id begins with, and how many characters of the digest follow."""

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PAIRS = [low + high for high in _BASE62 for low in _BASE62]
_RANGE = 62**24


class Projection:
    """The ids and names of one lane while new ones are being given. Ids that `target` minted itself stay."""

    def __init__(self, state: RenderState, dialect: Dialect, target: Binding | None) -> None:
        self._calls = state.calls
        self._used = state.used
        self._has_given = len(state.calls) > 0
        self._index = state.index
        self._dialect = dialect
        self._models = dialect.reasoning.binding == "upstream"  # behind a gateway, each is another provider's
        self._home = None if target is None else self._provider(target)
        self._is_id = re.compile(dialect.ids.pattern).fullmatch
        self._new: dict[CallId, str] = {}
        self._taken: dict[str, CallId] = {}
        self._names: dict[str, str] = {}
        self._origin: Binding | None = None  # whose ids were asked about last,
        self._is_own = False  # and whether they are the reader's own

    def call(self, call: ToolCall) -> tuple[str, str]:
        """Return the id that `call` has in this lane, given at its first appearance, and its name."""
        name = self._names.get(call.name)
        if name is None:
            name = self._names[call.name] = tool_name(call.name, self._dialect.ids.tool_name_pattern)
        known = self._new.get(call.id) or (self._calls.get(call.id) if self._has_given else None)
        if known is not None:
            return known, name
        seal = call.native
        if seal is not None and seal.origin is not self._origin:  # calls in a row mostly share theirs
            self._origin = seal.origin
            self._is_own = self._dialect.ids.native_passthrough and self._provider(seal.origin) == self._home
        native = call.native_id if self._is_own and seal is not None else ""
        passes = native and self._is_id(native) and self._free(native)
        emitted = native if passes else self._minted(call.id, name)
        self._new[call.id] = emitted
        if emitted:
            self._taken[emitted] = call.id
        if ":" in emitted and (ordinal := _ORDINAL.search(emitted)):
            self._index = max(self._index, int(ordinal[1]))
        self._index += 1
        return emitted, name

    def arguments(self, call: ToolCall) -> ToolCall:
        """Return a call with the keys by which its provider knows its arguments, where it goes back there (ANT-57)."""
        if (
            call.native is None
            or call.native.kind != "call"
            or self._provider(call.native.origin) != self._home
        ):
            return call
        return replace(call, json=with_keys(call.json, call.native_keys))

    def with_names(self, before: frozenset[str]) -> frozenset[str]:
        """Return the names of tools that were called before, and of those in this tail; the same set if none is new."""
        return before if before.issuperset(self._names.values()) else before.union(self._names.values())

    def adopted(self) -> tuple[PersistentMap[CallId, str], PersistentMap[str, CallId], int]:
        """Return the lane's tables with the new ids in them, and the index of the next call."""
        return self._calls.update(self._new), self._used.update(self._taken), self._index

    def _free(self, emitted: str) -> bool:
        return emitted not in self._taken and not (self._has_given and emitted in self._used)

    def _provider(self, binding: Binding) -> tuple[str, str, str]:
        """Return what says whose ids a binding's calls have."""
        return (binding.dialect, binding.endpoint, binding.model if self._models else "")

    def _minted(self, call_id: CallId, name: str) -> str:
        style = self._dialect.ids.style
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
ITEM_ID = re.compile(rb'"(?:msg|fc|ctc)_[A-Za-z0-9_-]{1,60}"')
"""The id of an item that stands behind reasoning, as a JSON literal."""
_ORDINAL = re.compile(r":(\d{1,9})\Z")
"""The index at the end of an id in Kimi's form (REQ-915-020)."""


@lru_cache(maxsize=8192)  # sessions number their calls alike, so they share these
def mint(style: Digested, call_id: CallId, probe: int = 0) -> str:
    """Return the id of a foreign call in a provider's form; `probe` counts collisions already met."""
    opening, length = _FORMS[style]
    return opening + _digest(f"{call_id}#{probe}" if probe else call_id)[:length]


def _digest(text: str) -> str:
    number = int(content_name(text), 16) % _RANGE
    digits: list[str] = []
    for _ in range(12):
        number, pair = divmod(number, len(_PAIRS))
        digits.append(_PAIRS[pair])
    return "".join(digits)


def flat_name(namespace: str, name: str) -> str:
    """Return the name of a tool of a namespace, where there are no namespaces."""
    return f"{namespace}__{name}" if namespace else name


def within(name: str, namespace: str) -> str:
    """Return the name that a tool has within its namespace; `flat_name` undone."""
    return name.removeprefix(f"{namespace}__") if namespace else name


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
