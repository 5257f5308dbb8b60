"""Choose the tool call to which a fragment of an answer belongs. The rule is the same for every wire family.

In:  the index, the id, the name and the argument text of a fragment.
Out: the call that the fragment continues, or None if the fragment begins a new call.

A call begins with its name. According to the documentation, the index identifies the call. But relays send a growing
index, 0 for every call, the index as text, no index, a new id with each fragment, the words `null` and `None` as ids,
the name with each fragment, or the name in pieces. Therefore, a fragment without a name continues the call that its
index, its id or its position suggests. If the arguments of that call are already complete, the fragment begins a
separate call, whose name may still arrive.

`actors.adapters.settling` resolves the ambiguities that only the complete answer can resolve.
"""

from collections.abc import Collection
from typing import TypeAlias

from actors.adapters.partial import PartialCall
from actors.adapters.settling import join_arguments

Slot: TypeAlias = int | str | None
"""The index of a call in a fragment; None if the fragment has no index."""

_PLACEHOLDERS = frozenset({"null", "none", "undefined", "nil"})
_SMALL = 64 * 1024  # characters; longer arguments are not checked for completeness while they arrive


def slot_of(index: object) -> Slot:
    """Return an index in a comparable form, or None if it is missing or invalid. Some relays send indexes as text."""
    if type(index) is int:
        return index
    if isinstance(index, str) and (word := index.strip()):
        return int(word) if word.isdecimal() and len(word) < 10 else word[:64]
    return int(index) if isinstance(index, float) and index.is_integer() else None


def without_placeholder(value: object) -> str:
    """Return an id or a name unchanged, or "" if it is blank or a placeholder such as `null`."""
    if isinstance(value, str):
        word = value.strip()
        return "" if not word or (len(word) < 10 and word.casefold() in _PLACEHOLDERS) else value
    return str(value)[:64] if type(value) is int else ""


class CallTable:
    """The tool calls of one answer, by index and by id.

    `tools` contains the wire names of the declared tools, and is needed to recognise a name that arrives in pieces.
    None means that the declared tools are unknown.
    """

    def __init__(self, tools: Collection[str] | None) -> None:
        self.tools = tools
        self.has_changing_ids: bool = False  # whether fragments of the same call had different ids
        self._latest: PartialCall | None = None
        self._reopened: PartialCall | None = None  # a complete call whose name was sent again
        self._by_slot: dict[Slot, PartialCall] = {}
        self._by_id: dict[tuple[Slot, str], PartialCall] = {}

    def find_call(
        self, slot: Slot, native_id: str, name: str, text: str, delta_calls: Collection[PartialCall] = ()
    ) -> PartialCall | None:
        """Return the call that a fragment continues, or None if the fragment begins a call.

        `delta_calls` contains the calls of earlier fragments of the same delta. A fragment with a name never continues
        one of them.
        """
        call = self._by_slot.get(slot)
        if not name:
            if call is not None and call is self._latest and not native_id:
                return call  # nearly every fragment continues the latest call
            return self._call_without_name(slot, native_id, text)
        if native_id and (same := self._by_id.get((slot, native_id))):
            call = same
        elif slot is None:
            call = self._latest
        if call is None or call in delta_calls:
            return None
        return call if self._continues_call(call, native_id, name, text) else None

    def record_fragment(self, call: PartialCall, slot: Slot, native_id: str) -> None:
        """Record the index and the id of a fragment that belongs to `call`."""
        self._latest = call
        if slot is not None:
            self._by_slot[slot] = call
        if native_id:
            self._by_id[slot, native_id] = self._by_id[None, native_id] = call

    def _call_without_name(self, slot: Slot, native_id: str, text: str) -> PartialCall | None:
        """Return the call that a fragment without a name continues, or None if no call fits."""
        if native_id and (same := self._by_id.get((slot, native_id))):
            return same
        latest, call = self._latest, self._by_slot.get(slot)
        is_placed = call is not None
        call = call or self._by_id.get((None, native_id)) or latest
        if call is None or latest is None:
            return None
        if call.is_closed and not text.strip():
            return None  # the fragment begins a block whose name was lost
        if not is_placed and not call.wire_name and slot not in (None, call.slot):
            return None  # the fragment belongs to one of several calls whose names arrive last
        is_foreign = bool(native_id) and call.native_id not in ("", native_id)
        if (
            (is_foreign or not is_placed)
            and call is not self._reopened
            and (call.is_closed or _has_complete_arguments(call))
        ):
            return None
        if is_foreign:
            if not is_placed and not text.strip():
                return None  # the fragment begins a call whose name was lost
            self.has_changing_ids = True
        if (
            call is not latest
            and text.strip()
            and _has_complete_arguments(call)
            and not _has_complete_arguments(latest)
        ):
            return latest  # the relay restarted the index at 0
        call.is_guessed = call.is_guessed or not (is_placed or call.native_id == native_id)
        return call

    def _continues_call(self, call: PartialCall, native_id: str, name: str, text: str) -> bool:
        """Return True if a fragment with a name continues `call`, and False if it begins a new call with the same
        index.
        """
        has_other_id = bool(native_id and call.native_id and native_id != call.native_id)
        if call.is_closed:
            return False
        if not call.wire_name:
            return native_id in ("", call.native_id) or not _has_complete_arguments(call)
        if call.wire_name != name:
            return bool(self.extended_name(call, native_id, name))
        if has_other_id:
            begun = not call.pieces.is_blank and not _has_complete_arguments(call)
            self.has_changing_ids = self.has_changing_ids or begun
            return begun
        if not _has_complete_arguments(call):
            return True
        if not text.strip():
            self._reopened = call  # the relay may send the call again from its start
            return bool(call.native_id)
        if call.native_id and not native_id:
            return True  # the same call again, because a new call would have an id
        # Some relays send `{}` before or after the arguments.
        opens, ends = call.pieces.stripped(len("{}")) == "{}", text.strip() == "{}"
        return (opens and not ends) or (ends and bool(native_id))

    def extended_name(self, call: PartialCall, native_id: str, name: str) -> str:
        """Return a call's name, extended by the piece `name`. Return "" if `name` belongs to another call.

        The piece may repeat the name received so far. If the declared tools are unknown, `name` counts as a piece if
        the call has an id and the fragment has none.
        """
        if not call.pieces.is_blank:
            return ""
        tools, before = self.tools, call.wire_name
        whole = name if name.startswith(before) else ""
        if tools is None:
            return (whole or before + name) if call.native_id and not native_id else ""
        if name in tools and (before in tools or native_id not in ("", call.native_id)):
            return before + name if before + name in tools and not native_id else ""
        for grown in filter(None, (before + name, whole)):
            if grown in tools or (name not in tools and any(tool.startswith(grown) for tool in tools)):
                return grown
        return ""


def _has_complete_arguments(call: PartialCall) -> bool:
    """Return True if the arguments of a call seem complete before the answer has ended."""
    if call.is_marked_complete:
        return True
    pieces = call.pieces
    return pieces.size < _SMALL and pieces.ends_with("}") and join_arguments(pieces) is not None
