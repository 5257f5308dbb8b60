"""Map canonical call ids and tool names to the forms that a provider accepts.

Within a lane, the mapping is injective and stable: an id is never given to another call and never changes, in any
epoch. It depends only on the canonical id and on earlier first appearances; in Kimi's format also on the tool name and
on the number of calls in the lane, an index that is never reused.

A native id returns to the binding that minted it, if the dialect allows it and the lane does not use it yet, because
newer models bind their reasoning to the preceding bytes, ids included. REQ-915-018 and -019 govern minted ids.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, TypeAlias

from actors.core.data.persistent_map import PersistentMap
from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.schemas.property_keys import with_keys
from actors.core.transcript.transcript import RenderState
from actors.core.values.content import ToolCall
from actors.core.values.identity import Binding, CallId, content_name

Digested: TypeAlias = Literal["openai", "anthropic", "mistral", "bedrock"]
"""Styles whose ids depend only on a digest of the canonical id."""
_FORMS: Mapping[Digested, tuple[str, int]] = {
    "openai": ("call_", 24),
    "anthropic": ("toolu_", 24),
    "bedrock": ("tooluse_", 22),
    "mistral": ("", 9),
}
"""The prefix of an id, and the number of digest characters after it."""

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PAIRS = [low + high for high in _BASE62 for low in _BASE62]
_RANGE = 62**24


class Projection:
    """The id and name mapping of one lane during a render. Native ids of `target` stay."""

    def __init__(self, state: RenderState, dialect: Dialect, target: Binding | None) -> None:
        self._calls = state.calls
        self._used = state.used
        self._has_given = len(state.calls) > 0
        self._index = state.index
        self._dialect = dialect
        self._models = (
            dialect.reasoning.binding == "upstream"
        )  # behind a gateway, each model has its own provider
        self._home = None if target is None else self._provider(target)
        self._is_id = re.compile(dialect.ids.pattern).fullmatch
        self._new: dict[CallId, str] = {}
        self._taken: dict[str, CallId] = {}
        self._names: dict[str, str] = {}
        self._origin: Binding | None = None  # the origin of the last seal,
        self._is_own = False  # and whether the target minted its ids

    def call(self, call: ToolCall) -> tuple[str, str]:
        """Return the id of `call` in this lane, assigned on first appearance, and its tool name."""
        name = self._names.get(call.name)
        if name is None:
            name = self._names[call.name] = tool_name(call.name, self._dialect.ids.tool_name_pattern)
        known = self._new.get(call.id) or (self._calls.get(call.id) if self._has_given else None)
        if known is not None:
            return known, name
        seal = call.native
        if seal is not None and seal.origin is not self._origin:  # successive calls mostly share their origin
            self._origin = seal.origin
            self._is_own = self._dialect.ids.native_passthrough and self._provider(seal.origin) == self._home
        native = call.native_id if self._is_own and seal is not None else ""
        passes = native and self._is_id(native) and self._is_free(native)
        emitted = native if passes else self._mint_id(call.id, name)
        self._new[call.id] = emitted
        if emitted:
            self._taken[emitted] = call.id
        if ":" in emitted and (ordinal := _ORDINAL.search(emitted)):
            self._index = max(self._index, int(ordinal[1]))
        self._index += 1
        return emitted, name

    def arguments(self, call: ToolCall) -> ToolCall:
        """Return the call with its provider's own argument keys if it returns to that provider (ANT-57)."""
        if (
            call.native is None
            or call.native.kind != "call"
            or self._provider(call.native.origin) != self._home
        ):
            return call
        return replace(call, json=with_keys(call.json, call.native_keys))

    def with_names(self, before: frozenset[str]) -> frozenset[str]:
        """Return `before` with the tool names of this render added; the same set if none is new."""
        return before if before.issuperset(self._names.values()) else before.union(self._names.values())

    def new_state(self) -> tuple[PersistentMap[CallId, str], PersistentMap[str, CallId], int]:
        """Return the lane's updated id tables, and the index of the next call."""
        return self._calls.update(self._new), self._used.update(self._taken), self._index

    def _is_free(self, emitted: str) -> bool:
        return emitted not in self._taken and not (self._has_given and emitted in self._used)

    def _provider(self, binding: Binding) -> tuple[str, str, str]:
        """Return the key of the provider that mints a binding's ids."""
        return (binding.dialect, binding.endpoint, binding.model if self._models else "")

    def _mint_id(self, call_id: CallId, name: str) -> str:
        style = self._dialect.ids.style
        if style == "none":
            return ""
        if style == "kimi":
            return f"functions.{name}:{self._index}"  # the index is never reused, so the id is free
        probe = 0
        while not self._is_free(emitted := mint(style, call_id, probe)):
            probe += 1
        return emitted


REASONING_ID = re.compile(r"rs_[A-Za-z0-9_-]{1,61}")
"""The id of a reasoning item that a request may repeat (OAR-06)."""
ITEM_ID = re.compile(rb'"(?:msg|fc|ctc)_[A-Za-z0-9_-]{1,60}"')
"""The id of an item after reasoning, as a JSON literal."""
_ORDINAL = re.compile(r":(\d{1,9})\Z")
"""The index at the end of an id in Kimi's format (REQ-915-020)."""


@lru_cache(maxsize=8192)  # sessions share canonical ids, and thereby these results
def mint(style: Digested, call_id: CallId, probe: int = 0) -> str:
    """Return the id of a foreign call in a provider's format; `probe` counts collisions so far."""
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
    """Return a namespaced tool's name for dialects without namespaces."""
    return f"{namespace}__{name}" if namespace else name


def local_name(name: str, namespace: str) -> str:
    """Return a tool's name within its namespace: the inverse of `flat_name`."""
    return name.removeprefix(f"{namespace}__") if namespace else name


@lru_cache(maxsize=4096)
def tool_name(name: str, pattern: str) -> str:
    """Return `name` if it matches the dialect's pattern, else a matching name derived from it.

    A model may invent a name (`functions.read`, an empty one); it stays in the history, which providers validate like
    the tool list. Distinct names stay distinct, because a derived name ends in a digest of the original.
    """
    if re.fullmatch(pattern, name):
        return name
    stem = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:40].lstrip("-0123456789_") or "tool"
    return f"{stem}_{_digest(name)[:8]}"
