"""Projection: canonical ids and tool names to what a provider accepts.

Injective within a lane and stable for its life: an id, once given, is never given to another call and
never changes, whatever the epoch. It depends on the canonical id and on earlier first appearances alone.

A native id goes back to the binding that minted it, where the dialect allows and the lane does not use it
already; newer models bind their reasoning to the bytes before it, ids included. The forms of REQ-915-018
and -019 are those of the ids we mint.
"""

import re
from functools import lru_cache
from hashlib import sha256
from typing import assert_never

from actors.core.content import ToolCall
from actors.core.dialect import Dialect, IdStyle
from actors.core.identity import Binding, CallId
from actors.core.jsonio import unquote
from actors.core.table import Table

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PAIRS = [low + high for high in _BASE62 for low in _BASE62]
_RANGE = 62**24


class Projection:
    """The ids of one lane while new calls are being given theirs."""

    def __init__(
        self,
        calls: Table[CallId, str],
        used: Table[str, CallId],
        dialect: Dialect,
        reader: Binding | None,
    ) -> None:
        self._calls = calls
        self._used = used
        self._dialect = dialect
        self._home = None if reader is None else (reader.dialect, reader.endpoint)
        self._is_id = re.compile(dialect.id_pattern).fullmatch
        self._new: dict[CallId, str] = {}
        self._taken: dict[str, CallId] = {}

    def id(self, call: ToolCall) -> str:
        """Return the id `call` has in this lane, giving it one at its first appearance."""
        known = self._new.get(call.id) or self._calls.get(call.id)
        if known is not None:
            return known
        emitted = self._native(call) or self._minted(call.id)
        self._new[call.id] = emitted
        self._taken[emitted] = call.id
        return emitted

    def result_id(self, call_id: CallId) -> str:
        """Return the id of a call that has one: calls come before their results."""
        return self._new.get(call_id) or self._calls.get(call_id) or ""

    def adopted(self) -> tuple[Table[CallId, str], Table[str, CallId]]:
        """Return the lane's tables with the new ids in them."""
        return self._calls.update(self._new), self._used.update(self._taken)

    def _free(self, emitted: str) -> bool:
        return emitted not in self._taken and emitted not in self._used

    def _native(self, call: ToolCall) -> str | None:
        seal = call.native
        if seal is None or not self._dialect.native_id_passthrough or not self._own(seal.origin):
            return None
        native = unquote(seal.data)
        return native if self._is_id(native) and self._free(native) else None

    def _own(self, origin: Binding) -> bool:
        return (origin.dialect, origin.endpoint) == self._home

    def _minted(self, call_id: CallId) -> str:
        probe = 0
        while not self._free(emitted := mint(self._dialect.id_style, call_id, probe)):
            probe += 1
        return emitted


@lru_cache(maxsize=8192)  # sessions number their calls alike, so they share these
def mint(style: IdStyle, call_id: CallId, probe: int = 0) -> str:
    """Return the id of a foreign call in a provider's form; `probe` counts collisions already met."""
    digest = _digest(f"{call_id}#{probe}" if probe else call_id)
    match style:
        case "openai":
            return f"call_{digest[:24]}"
        case "anthropic":
            return f"toolu_{digest[:24]}"
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
