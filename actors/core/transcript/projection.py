"""Map canonical call ids and tool names to ids and names that a provider accepts.

Within a lane, the mapping is injective and stable: two calls never share an id, and an id never changes, in any epoch.
An id depends only on the canonical id and on the calls that appeared earlier in the lane. In Kimi's format, it also
depends on the tool name and on the index of the call. A lane never reuses an index.

A native id is sent back to the binding that minted it, if the dialect allows this and the id is still free in the lane.
Newer models must receive their own ids, because their reasoning is bound to all preceding bytes, ids included.
REQ-915-018 and -019 govern minted ids.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, TypeAlias

from actors.core.data.persistent_map import PersistentMap
from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.schemas.property_keys import rename_keys
from actors.core.transcript.transcript import RenderState
from actors.core.values.content import ToolCall
from actors.core.values.identity import Binding, CallId, content_name

Digested: TypeAlias = Literal["openai", "anthropic", "mistral", "bedrock"]
"""Id styles in which an id is a digest of the canonical id."""
_FORMATS: Mapping[Digested, tuple[str, int]] = {
    "openai": ("call_", 24),
    "anthropic": ("toolu_", 24),
    "bedrock": ("tooluse_", 22),
    "mistral": ("", 9),
}
"""The prefix and the number of digest characters of an id, by style."""

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PAIRS = [low + high for high in _BASE62 for low in _BASE62]
_RANGE = 62**24


class Projection:
    """Maps the call ids and tool names of one lane during a render. Calls from `target` keep their native ids."""

    def __init__(self, state: RenderState, dialect: Dialect, target: Binding | None) -> None:
        self._calls = state.calls
        self._used = state.used
        self._has_given = len(state.calls) > 0
        self._index = state.index
        self._dialect = dialect
        # behind a gateway, each model has its own provider, so ids belong to a model
        self._models = dialect.reasoning.binding == "upstream"
        self._home = None if target is None else self._provider_key(target)
        self._is_id = re.compile(dialect.ids.pattern).fullmatch
        self._new: dict[CallId, str] = {}
        self._taken: dict[str, CallId] = {}
        self._names: dict[str, str] = {}
        self._origin: Binding | None = None  # the binding that produced the last call with a native id
        self._is_own = False  # True if the ids of calls from `_origin` belong to the target's provider

    def id_and_name(self, call: ToolCall) -> tuple[str, str]:
        """Return the id of `call` in this lane and its tool name. The id is assigned when the call first appears."""
        name = self._names.get(call.name)
        if name is None:
            name = self._names[call.name] = tool_name(call.name, self._dialect.ids.tool_name_pattern)
        known = self._new.get(call.id)
        if known is None and self._has_given:
            known = self._calls.get(call.id)
        if known is not None:
            return known, name
        emitted = self._own_id(call) or self._mint_id(call.id, name)
        self._new[call.id] = emitted
        if emitted:
            self._taken[emitted] = call.id
        self._index += 1
        return emitted, name

    def _own_id(self, call: ToolCall) -> str:
        """Return the native id of `call` if it is sent back, else ""."""
        seal = call.native
        if seal is None:
            return ""
        if seal.maker is not self._origin:  # successive calls mostly share their origin
            self._origin = seal.origin
            self._is_own = (
                self._dialect.ids.native_passthrough and self._provider_key(seal.origin) == self._home
            )
        native = call.native_id if self._is_own else ""
        if not native or not self._is_id(native) or not self._is_free(native):
            return ""
        if ":" in native and (ordinal := _ORDINAL.search(native)):
            self._index = max(self._index, int(ordinal[1]))
        return native

    def with_native_keys(self, call: ToolCall) -> ToolCall:
        """Return a call with its original argument keys if the call is sent back to its provider (ANT-57)."""
        seal = call.native
        if seal is None or seal.kind != "call" or self._provider_key(seal.origin) != self._home:
            return call
        return replace(call, json=rename_keys(call.json, call.native_keys))

    def with_names(self, names: frozenset[str]) -> frozenset[str]:
        """Return `names` with the tool names of this render added, or `names` itself if no name is new."""
        return names if names.issuperset(self._names.values()) else names.union(self._names.values())

    def new_state(self) -> tuple[PersistentMap[CallId, str], PersistentMap[str, CallId], int]:
        """Return the lane's updated id tables (`RenderState.calls` and `used`), and the index of the next call."""
        return self._calls.update(self._new), self._used.update(self._taken), self._index

    def _is_free(self, emitted: str) -> bool:
        return emitted not in self._taken and not (self._has_given and emitted in self._used)

    def _provider_key(self, binding: Binding) -> tuple[str, str, str]:
        """Return a key that is equal for bindings whose call ids come from the same provider."""
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
"""Matches the id of a reasoning item that a request may send back (OAR-06)."""
ITEM_ID = re.compile(rb'"(?:msg|fc|ctc)_[A-Za-z0-9_-]{1,60}"')
"""Matches the id of an item that follows reasoning, as a JSON literal."""
_ORDINAL = re.compile(r":(\d{1,9})\Z")
"""Matches the index at the end of an id in Kimi's format (REQ-915-020)."""


@lru_cache(
    maxsize=8192
)  # all sessions number their calls from 1, so they share canonical ids and cache entries
def mint(style: Digested, call_id: CallId, probe: int = 0) -> str:
    """Return an id in a provider's format for another provider's call. `probe` is the number of collisions so far."""
    opening, length = _FORMATS[style]
    return opening + _digest(f"{call_id}#{probe}" if probe else call_id)[:length]


def _digest(text: str) -> str:
    number = int(content_name(text), 16) % _RANGE
    digits: list[str] = []
    for _ in range(12):
        number, pair = divmod(number, len(_PAIRS))
        digits.append(_PAIRS[pair])
    return "".join(digits)


def flat_name(namespace: str, name: str) -> str:
    """Return a namespaced tool's full name, `namespace__name`, for dialects without namespaces."""
    return f"{namespace}__{name}" if namespace else name


def local_name(name: str, namespace: str) -> str:
    """Return a tool's name within its namespace. This is the inverse of `flat_name`."""
    return name.removeprefix(f"{namespace}__") if namespace else name


@lru_cache(maxsize=4096)
def tool_name(name: str, pattern: str) -> str:
    """Return `name` if it matches the dialect's pattern, else a matching name derived from `name`.

    A model may call a tool under an invalid name (`functions.read`, or an empty name). The call stays in the history,
    and providers validate the history's names like the tool list. Distinct names stay distinct, because a derived name
    ends in a digest of the original.
    """
    if re.fullmatch(pattern, name):
        return name
    stem = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:40].lstrip("-0123456789_") or "tool"
    return f"{stem}_{_digest(name)[:8]}"
