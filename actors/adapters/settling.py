"""Decide which tool calls an answer contains, after the complete answer has arrived.

In:  the calls in order of arrival, with the fragments that `actors.adapters.calls` assigned to them.
Out: the same calls, some with corrected arguments, some dropped. Also the kinds of dropped content, and whether content
     was lost.

Only the complete answer shows whether arguments or calls were sent twice, and whether some fragments belong to no call.
A regular answer, in which every call has a name, an object as arguments and a distinct id, is not changed. Lost
arguments are never replaced with `{}`.
"""

import json
import re
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from hashlib import blake2b
from io import BytesIO
from itertools import chain, pairwise, takewhile

from msgspec import DecodeError, Raw
from msgspec.json import Decoder

from actors.adapters.partial import PartialCall, Pieces
from actors.core.data.jsonio import MAX_ARGUMENTS, parse_object

_MAX_SENT = 8 * MAX_ARGUMENTS  # maximum characters of a call's arguments, including repetitions
_MAX_JOINS = 64  # maximum number of calls per answer whose missing fragments are searched for
_EMPTY_IN_FRONT, _EMPTY_BEHIND = re.compile(r"\A(?:\{\s*\}\s*)+"), re.compile(r"(?:\s*\{\s*\})+\Z")
_EMPTY = re.compile(rb"(?:\{\s*\}\s*)+")
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
# Bytes of a text that are examined for its first object and the empty objects before it.
_WINDOW = MAX_ARGUMENTS + 1024
_read, _skip = json.JSONDecoder().raw_decode, Decoder(Raw).decode


class AnswerCalls:
    """The tool calls of one answer, to be joined, repaired or dropped.

    Attributes:
        left_out: The kinds of dropped content: `repeated_call`, `repeated_arguments`, `stray_arguments`, `cut_call`.
        is_lost: Whether content may be missing: either the arguments of a call, or the call to which some arguments
            belong.
    """

    def __init__(
        self, calls: Sequence[PartialCall], tools: Collection[str] | None, *, has_changing_ids: bool
    ) -> None:
        self._calls = [call for call in calls if not call.dropped]
        self._tools = tools
        self._has_changing_ids = has_changing_ids
        self.left_out: list[str] = []
        self.is_lost: bool = False

    def settle_calls(self, *, has_regular_end: bool) -> None:
        """Join, repair or drop the calls.

        If the answer has no regular end, calls without arguments are dropped, unless the wire format marks them as
        complete.
        """
        if any(call.native_id for call in self._calls) and not all(call.native_id for call in self._calls):
            self._join_calls_without_ids()
        if not all(
            call.wire_name and (call.is_marked_complete or call.free or call.is_whole) for call in self._calls
        ):
            self._drop_echoes()
            self._assign_strays()
            self._join_fragments()
            for call in self._calls:
                self._repair_arguments(call)
            self._join_calls_without_arguments()
            if self._has_odd_arguments() and any(
                call.pieces.is_blank and not call.is_closed for call in self._calls
            ):
                self.is_lost = True  # the invalid arguments may belong to a call that has none
            if self.is_lost or not has_regular_end:
                self._drop_doubtful_calls()
        self._drop_copies()

    def _drop_echoes(self) -> None:
        """Drop each call without arguments that repeats the id and the name of an earlier call.

        Such a repetition is an empty fragment of the earlier call.
        """
        known: dict[tuple[str, str], PartialCall] = {}
        for call in self._calls:
            key = call.native_id, call.wire_name
            if not call.pieces.is_blank:
                known[key] = call
            elif key in known and not call.is_closed and (call.native_id or known[key].slot == call.slot):
                call.dropped = True
                self.is_lost = self.is_lost or not call.native_id or known[key].slot != call.slot
        self._remove_dropped()

    def _assign_strays(self) -> None:
        """Append arguments that arrived without a tool name to the previous call's arguments, if the result is an
        object. Otherwise, drop them.
        """
        before: PartialCall | None = None
        for call in self._calls:
            if call.wire_name:
                before = call
            elif call.pieces.is_blank and not (call.is_marked_complete or call.is_closed):
                call.dropped = True
            elif before is not None and self._continues_call(before, call):
                is_copy = _canonical_arguments(before) == _canonical_arguments(call)
                self.is_lost = self.is_lost or (before.is_whole and not is_copy)
                _absorb_call(before, call)
            else:
                call.dropped = self.is_lost = True
                self.left_out.append("stray_arguments")
        self._remove_dropped()

    def _continues_call(self, earlier: PartialCall, stray: PartialCall) -> bool:
        """Return True if `stray`, which has arguments but no name, continues the call `earlier`."""
        if earlier.is_closed or (stray.native_id and not self._has_changing_ids):
            return False
        return join_arguments(earlier.pieces, stray.pieces) is not None

    def _join_calls_without_ids(self) -> None:
        """Join a call with the following calls that have the same name but no id, if their arguments together form one
        object.
        """
        at = 0
        while at < len(self._calls):
            call, behind = self._calls[at], self._calls[at + 1 :]
            is_more = partial(_has_name_without_id, call.wire_name)
            more = list(takewhile(is_more, behind))
            may_go_on = more and call.native_id and not (call.free or call.is_closed)
            if may_go_on and join_arguments(*(each.pieces for each in (call, *more))) is not None:
                for other in more:
                    _absorb_call(call, other)
            at += 1 + len(more)
        self._remove_dropped()

    def _join_fragments(self) -> None:
        """Join adjacent incomplete calls of the same name whose arguments together form one object."""
        tries, at = 0, 0
        while at < len(self._calls) and tries < _MAX_JOINS:
            first = self._calls[at]
            at += 1
            if (
                first.free
                or first.is_marked_complete
                or first.pieces.is_blank
                or first.pieces.size > MAX_ARGUMENTS
                or first.is_whole
            ):
                continue
            tries += 1
            for other in self._calls[at : at + _count_fragments(self._calls[at - 1 :])]:
                _absorb_call(first, other)
                self._has_changing_ids = self._has_changing_ids or first.native_id != other.native_id
            self._remove_dropped()

    def _repair_arguments(self, call: PartialCall) -> None:
        """If arguments were sent repeatedly, keep a single copy. Other invalid arguments are not changed."""
        if call.free or call.is_marked_complete or call.pieces.is_blank or call.is_whole:
            return
        text = join_arguments(call.pieces)
        if text is not None:
            call.pieces = Pieces.from_text(text)
            self.left_out.append("repeated_arguments")
        elif _has_second_object(call.pieces):
            self.is_lost = True

    def _join_calls_without_arguments(self) -> None:
        """Join a call without arguments with the next call, if both may be halves of one call."""
        for at, call in enumerate(self._calls[:-1]):
            if call.free or call.is_closed or not call.pieces.is_blank:
                continue
            other = self._next_call(at)
            if call.wire_name != other.wire_name:
                if self._may_be_piece(call, other):
                    call.dropped = self.is_lost = True
                    self.left_out.append("cut_call")
            elif call.native_id and not other.pieces.is_blank:
                is_same, is_there = call.native_id == other.native_id, call.slot == other.slot
                if not is_same and call.slot is None and _canonical_arguments(other) == "{}":
                    continue  # these are two separate calls without arguments
                if is_same or is_there or not other.native_id:
                    is_certain = self._has_changing_ids or not other.native_id or (is_same and is_there)
                    self.is_lost = self.is_lost or not is_certain
                    _absorb_call(call, other)
        self._remove_dropped()

    def _next_call(self, position: int) -> PartialCall:
        """Return the call that follows the call at `position`.

        If fragments of one call have different ids, prefer a later call with the same index.
        """
        call, behind = self._calls[position], self._calls[position + 1 :]
        if self._has_changing_ids and call.slot is not None:
            return next((other for other in behind if other.slot == call.slot), behind[0])
        return behind[0]

    def _has_odd_arguments(self) -> bool:
        """Return True if the arguments of any call were repeated, or are not an object."""
        return bool(self.left_out) or any(
            not (call.free or call.is_marked_complete or call.pieces.is_blank or call.is_whole)
            for call in self._calls
        )

    def _may_be_piece(self, call: PartialCall, other: PartialCall) -> bool:
        """Return True if the name of `call` may be the beginning of a name that continues in `other`."""
        if self._tools is None:
            return call.slot == other.slot and not other.native_id
        whole, is_known = call.wire_name + other.wire_name, call.wire_name in self._tools
        grows = any(tool.startswith(whole) for tool in self._tools)
        return other.wire_name not in self._tools and (grows or not is_known)

    def _drop_doubtful_calls(self) -> None:
        """Drop the calls without arguments. If arguments were lost, drop the calls that may contain another call's
        arguments as well.
        """
        was_lost = self.is_lost
        for call in self._calls:
            is_empty = call.pieces.is_blank and not (call.is_marked_complete and (call.free or not was_lost))
            if is_empty or (was_lost and call.is_guessed):
                call.dropped = self.is_lost = True
                self.left_out.append("cut_call")
        self._remove_dropped()

    def _drop_copies(self) -> None:
        """Drop each call with the same id, name and arguments as an earlier call."""
        known: dict[tuple[str, str], list[PartialCall]] = {}
        for call in self._calls:
            if not call.native_id:
                continue
            same = known.setdefault((call.native_id, call.wire_name), [])
            if same and _canonical_arguments(call) in map(_canonical_arguments, same):
                call.dropped = True
                self.left_out.append("repeated_call")
            else:
                same.append(call)

    def _remove_dropped(self) -> None:
        self._calls = [call for call in self._calls if not call.dropped]


def join_arguments(*parts: Pieces) -> str | None:
    """Return the JSON object that fragments of arguments form, or None. The object may have been sent more than once.

    Fragments that together form an object are joined unchanged, because a fragment that looks like an object may be the
    content of a string. Otherwise, a leading or trailing `{}` and exact repetitions are ignored. If each fragment
    begins with the fragment before it, the last fragment is the object.
    """
    size = sum(part.size for part in parts)
    if size > _MAX_SENT or (size > MAX_ARGUMENTS and not _may_be_object(parts)):
        return None
    pieces = [piece for part in parts for piece in part.texts()]
    text = "".join(pieces).strip()
    if _is_object(text):
        return text
    rest = _strip_empty_objects(text)
    if rest != text and (not rest or _is_object(rest)):
        return rest or "{}"
    if (end := object_end(rest)) and _is_object(first := rest[:end]) and not rest.replace(first, "").strip():
        return first
    told = [piece.strip() for piece in pieces if piece.strip()]
    return _complete_last_piece(told) or _complete_last_piece([piece for piece in told if piece != "{}"])


def _may_be_object(parts: Sequence[Pieces]) -> bool:
    """Return True if the beginning of an oversized text suggests that it is a repeated object.

    Most oversized texts are not repeated objects, and joining their parts could take too much memory.
    """
    window = _first_bytes(parts)
    rest = window[empty.end() :] if (empty := _EMPTY.match(window)) else window
    if end := _first_object_end(rest):
        behind = rest[end:].lstrip()
        return rest.startswith(behind[:end]) or _EMPTY.match(behind) is not None
    return not rest or (
        rest.startswith(b"{") and _is_growing(text for part in parts for text in part.texts())
    )


def _is_growing(texts: Iterable[str]) -> bool:
    """Return True if each fragment begins with the fragment before it. Blank and empty fragments are ignored."""
    before = ""
    for text in texts:
        if len(text) > MAX_ARGUMENTS:
            return False
        if (said := text.strip()) not in ("", "{}"):
            if not said.startswith(before):
                return False
            before = said
    return True


def _first_bytes(parts: Sequence[Pieces]) -> bytes:
    """Return the first `_WINDOW` bytes of a text, without leading whitespace."""
    written, size = BytesIO(), 0  # BytesIO, because `getvalue` does not copy the buffer
    for text in chain.from_iterable(part.slices() for part in parts):
        size += written.write((text if size else text.lstrip()).encode())
        if size >= _WINDOW:
            break
    written.truncate(_WINDOW)
    return written.getvalue()


def _first_object_end(data: bytes) -> int:
    """Return the end position of the JSON object at the start of `data`, or 0 if there is no complete object.

    The object is skipped without decoding it, because decoded strings may take four times as much memory.
    """
    if not data.startswith(b"{"):
        return 0
    end = len(data)
    try:
        _skip(data)
    except DecodeError as error:
        found = _TRAILING.search(str(error))
        end = int(found[1]) - 1 if found else 0
    except RecursionError:
        end = 0
    return len(data[:end].rstrip())


def _complete_last_piece(pieces: Sequence[str]) -> str | None:
    """Return the last piece if it is an object and each piece begins with the piece before it."""
    if (
        pieces
        and all(later.startswith(earlier) for earlier, later in pairwise(pieces))
        and _is_object(pieces[-1])
    ):
        return pieces[-1]
    return None


def object_end(text: str) -> int:
    """Return the end position of the JSON object at the start of `text`, or 0 if there is none."""
    if not text.startswith("{"):
        return 0
    try:
        return _read(text)[1]
    except (ValueError, RecursionError):
        return 0


def _is_object(text: str) -> bool:
    return bool(text) and parse_object(text) is not None


def _strip_empty_objects(text: str) -> str:
    """Return a text without its leading and trailing empty objects."""
    return _EMPTY_BEHIND.sub("", _EMPTY_IN_FRONT.sub("", text))


def _count_fragments(calls: Sequence[PartialCall]) -> int:
    """Return how many of the following calls continue the arguments of the first call."""
    name, size = calls[0].wire_name, 0
    texts: list[str] = []
    for call in calls:
        is_more = call.wire_name == name and not (call.free or call.is_marked_complete)
        if not is_more or max(size, call.pieces.size) > MAX_ARGUMENTS:
            break
        texts.append(call.pieces.join())
        size += len(texts[-1])
    if end := object_end("".join(texts).lstrip()):
        reach, blank = 0, len(texts[0]) - len(texts[0].lstrip())
        for at, text in enumerate(texts):
            reach += len(text)
            if reach - blank >= end:
                return at if not "".join(texts)[end + blank : reach].strip() else 0
    for at, text in enumerate(texts[1:], 1):
        if not text.startswith(texts[at - 1]):
            return 0
        if _is_object(text.strip()):
            return at
    return 0


def _has_name_without_id(name: str, call: PartialCall) -> bool:
    return not call.native_id and call.wire_name == name


def _has_second_object(pieces: Pieces) -> bool:
    """Return True if the fragments contain a second object, which begins with a new fragment and does not belong to any
    known call.
    """
    if pieces.size > MAX_ARGUMENTS and (
        pieces.size > _MAX_SENT or not _first_object_end(_first_bytes([pieces]))
    ):
        return False
    texts = list(pieces.texts())
    text = "".join(texts)
    end, reach = object_end(text), 0
    for piece in texts[:-1]:
        reach += len(piece)
        if end and reach >= end:
            return object_end(text[reach:].strip()) > 0
    return False


def _absorb_call(call: PartialCall, absorbed: PartialCall) -> None:
    """Append the fragments of `absorbed`, which has a different index or id, to `call`, and drop `absorbed`."""
    call.pieces.size += absorbed.pieces.size
    call.pieces.kept += absorbed.pieces.kept
    call.native_id = call.native_id or absorbed.native_id
    call.done = call.done or absorbed.done
    call.signature = call.signature or absorbed.signature
    absorbed.signature = None
    absorbed.dropped = True


def _canonical_arguments(call: PartialCall) -> str:
    """Return a call's arguments in a canonical form, so that equal arguments are equal strings. Missing arguments
    become `{}`.
    """
    if call.pieces.size > MAX_ARGUMENTS:
        digest = blake2b()
        for piece in call.pieces.slices():
            digest.update(piece.encode())
        return digest.hexdigest()
    text = call.pieces.join().strip()
    value = None if call.free else parse_object(text)
    return (text or "{}") if value is None else json.dumps(value, sort_keys=True)
