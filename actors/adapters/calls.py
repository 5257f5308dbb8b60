"""Choose the tool call that a fragment of an answer belongs to: one rule for every wire family.

In:  the index, the id, the name and the argument text of a fragment.
Out: the call that it continues, or None if it begins one.

Only a name begins a call. By the documentation, the index identifies the call. Relays send a growing index, 0 for
every call, the index as text, no index, a fresh id with each fragment, the words `null` and `None` for ids, the name
with each fragment, or the name in pieces. A fragment without a name therefore continues the call that its index, its
id or its position suggests. If that call already has complete arguments, the fragment becomes a nameless call of its
own, which waits for a name.

Ambiguities that only the complete answer resolves are left to `actors.adapters.settling`.
"""

from collections.abc import Collection
from typing import TypeAlias

from actors.adapters.partial import PartialCall
from actors.adapters.settling import join_arguments

Slot: TypeAlias = int | str | None
"""The index of a call as a fragment gives it; None if it gives none."""

_PLACEHOLDERS = frozenset({"null", "none", "undefined", "nil"})
_SMALL = 64 * 1024  # characters; longer argument text is not checked for completeness while it arrives


def slot_of(index: object) -> Slot:
    """Return the slot of an index. Some relays write the number as text."""
    if type(index) is int:
        return index
    if isinstance(index, str) and (word := index.strip()):
        return int(word) if word.isdecimal() and len(word) < 10 else word[:64]
    return int(index) if isinstance(index, float) and index.is_integer() else None


def real_word(value: object) -> str:
    """Return an id or a name unchanged; empty for a blank and for a placeholder such as `null`."""
    if isinstance(value, str):
        word = value.strip()
        return "" if not word or (len(word) < 10 and word.casefold() in _PLACEHOLDERS) else value
    return str(value)[:64] if type(value) is int else ""


class CallTable:
    """The calls of one answer by index and by id.

    `tools` are the declared tools by their names on the wire, None if unknown. If they are known, names that arrive
    in pieces are recognised.
    """

    def __init__(self, tools: Collection[str] | None) -> None:
        self.tools = tools
        self.makes_ids: bool = False  # whether a fragment of a call arrived under an id of its own
        self._latest: PartialCall | None = None
        self._reopened: PartialCall | None = None  # a complete call whose name arrived again
        self._by_slot: dict[Slot, PartialCall] = {}
        self._by_id: dict[tuple[Slot, str], PartialCall] = {}

    def find(
        self, slot: Slot, native_id: str, name: str, text: str, touched: Collection[PartialCall] = ()
    ) -> PartialCall | None:
        """Return the call that a fragment continues; None if it begins one.

        `touched` are the calls that earlier fragments of the same delta belong to: a name never continues those.
        """
        call = self._by_slot.get(slot)
        if not name:
            if call is not None and call is self._latest and not native_id:
                return call  # nearly every fragment
            return self._nameless_call(slot, native_id, text)
        if native_id and (same := self._by_id.get((slot, native_id))):
            call = same
        elif slot is None:
            call = self._latest
        if call is None or call in touched:
            return None
        return call if self._goes_on(call, native_id, name, text) else None

    def note(self, call: PartialCall, slot: Slot, native_id: str) -> None:
        """Record the slot and the id under which a fragment of a call arrived."""
        self._latest = call
        if slot is not None:
            self._by_slot[slot] = call
        if native_id:
            self._by_id[slot, native_id] = self._by_id[None, native_id] = call

    def _nameless_call(self, slot: Slot, native_id: str, text: str) -> PartialCall | None:
        """Return the call that a fragment without a name continues."""
        if native_id and (same := self._by_id.get((slot, native_id))):
            return same
        latest, call = self._latest, self._by_slot.get(slot)
        is_placed = call is not None
        call = call or self._by_id.get((None, native_id)) or latest
        if call is None or latest is None:
            return None
        if call.is_closed and not text.strip():
            return None  # the beginning of a block whose name was lost
        if not is_placed and not call.wire_name and slot not in (None, call.slot):
            return None  # one of several calls whose names come last
        is_foreign = bool(native_id) and call.native_id not in ("", native_id)
        if (
            (is_foreign or not is_placed)
            and call is not self._reopened
            and (call.is_closed or _has_all(call))
        ):
            return None
        if is_foreign:
            if not is_placed and not text.strip():
                return None  # the beginning of a call whose name was lost
            self.makes_ids = True
        if call is not latest and text.strip() and _has_all(call) and not _has_all(latest):
            return latest  # the index began again
        call.is_guessed = call.is_guessed or not (is_placed or call.native_id == native_id)
        return call

    def _goes_on(self, call: PartialCall, native_id: str, name: str, text: str) -> bool:
        """Return True if a fragment with a name continues the call at its index instead of beginning another."""
        has_other_id = bool(native_id and call.native_id and native_id != call.native_id)
        if call.is_closed:
            return False
        if not call.wire_name:
            return native_id in ("", call.native_id) or not _has_all(call)
        if call.wire_name != name:
            return bool(self.grown_name(call, native_id, name))
        if has_other_id:
            begun = not call.pieces.is_blank and not _has_all(call)
            self.makes_ids = self.makes_ids or begun
            return begun
        if not _has_all(call):
            return True
        if not text.strip():
            self._reopened = call  # it may be sent again from its start
            return bool(call.native_id)
        if call.native_id and not native_id:
            return True  # sent again: another call would also have an id
        opens, ends = call.pieces.strip(len("{}")) == "{}", text.strip() == "{}"  # as some relays do
        return (opens and not ends) or (ends and bool(native_id))

    def grown_name(self, call: PartialCall, native_id: str, name: str) -> str:
        """Return the name of a call extended by a further piece; empty if the piece is another call's name.

        The piece may repeat the name so far. If the declared tools are unknown, a name is a piece if it arrives
        without an id although the call has one.
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


def _has_all(call: PartialCall) -> bool:
    """Return True if the arguments of a call are complete, as far as can be seen before the end."""
    if call.told:
        return True
    pieces = call.pieces
    return pieces.size < _SMALL and pieces.ends_with("}") and join_arguments(pieces) is not None
