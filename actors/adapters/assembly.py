"""Assemble one answer: collect its pieces in order of arrival, and produce its events and its message.

The decoders derive from `MessageBuilder` and assign each piece to a part, for streams and for complete bodies. This
module decides which parts an answer has; `actors.adapters.answer_blocks` decides which blocks they become.

Canonical ids are assigned in order of arrival. A call's provider id is stored as provider state, but does not influence
the canonical id, because providers' ids may be blank, repeat, or restart with every response.

An answer that was cut (`length`, `max_tokens`, a filter) may end inside a call. Servers still mark this call as
complete, and a call that was cut before its arguments looks like a call without arguments. So the last call stays open
until the next part or the end of the answer arrives. In a cut answer, a call with incomplete arguments is dropped, and
the finish reason tells the caller why.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from actors.adapters.answer_blocks import MAX_KINDS, TextMetadata, TokenFigures, answer_blocks, kind_name
from actors.adapters.calls import CallTable, Slot, without_placeholder
from actors.adapters.failure import answer_fault, cut_from_finish_reason
from actors.adapters.partial import (
    AnswerEvents,
    LongTextDeltas,
    Part,
    PartialCall,
    PartialText,
    Pieces,
    ProviderPart,
    add_long_text,
)
from actors.adapters.settling import AnswerCalls
from actors.adapters.wire import Long, as_array, as_object, as_string
from actors.core.data.jsonio import quote, sanitise
from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.transcript.transcript import tool_name
from actors.core.values.content import Media, Message, ProviderState
from actors.core.values.identity import Binding, mint
from actors.core.values.stream import ArgumentsDelta, CallDone, CallStarted, Cut, Finish, StreamEvent, Usage

MAX_CALLS = 1024
"""Maximum number of tool calls in one answer; more calls are a fault. The scheduler's own limit is far lower."""


@lru_cache(maxsize=64)
def _intern_reason(reason: str) -> str:
    """Return a shared copy of a finish reason, to save memory. Every round stores one of a few different reasons."""
    return reason


@dataclass(eq=False)
class MessageBuilder:
    """The parts of one answer, and the events that the caller has not taken yet.

    Attributes:
        binding: The binding that sent the answer. It becomes the origin of the message and of its seals.
        tools: The wire names of the declared tools; None if unknown.
        usage: The latest token figures.
        upstream: The gateway's upstream provider that served the answer; "" if the answer does not name it. Seals
            record this provider, unless the binding is pinned to an upstream; then they record the pinned one.
        continuation: The token that requests the rest of a paused answer; empty if the provider did not pause.
        withheld: The reason for each part of the request that the provider hid from its model.
        left_out: The number of items of the answer that are missing from the message, by kind, such as logprobs, search
            grounding and dropped calls (`cut_call`). Kinds have the provider's names.
    """

    dialect: Dialect
    binding: Binding
    first_call: int = 1
    turn: int = 0
    names: Mapping[str, str] | None = None
    keys: Mapping[str, Mapping[str, str]] | None = None
    tools: Collection[str] | None = None

    def __post_init__(self) -> None:
        self.usage: Usage = Usage()
        self._figures = TokenFigures()
        self.continuation: str = ""
        self.upstream: str = ""
        self.withheld: tuple[str, ...] = ()
        self._calls = 0
        self._known: list[StreamEvent | LongTextDeltas] = []
        self.reset_parts()

    def reset_parts(self) -> None:
        """Discard the parts of the answer and start with none."""
        self.finish_reason: str | None = None
        self.left_out: dict[str, int] = {}
        self._parts: list[Part] = []
        self._metadata = TextMetadata()
        self._figures.discard()
        self._held: PartialCall | None = None  # the last part, if it is a call whose end is not announced yet
        self._table = CallTable(self.tools)
        self._is_lost = False  # whether a call or its arguments were lost

    def take_events(self) -> list[StreamEvent]:
        """Return the events since the last call of `take_events` or `take_events_lazily`."""
        return list(self.take_events_lazily())

    def take_events_lazily(self) -> Iterable[StreamEvent]:
        """Like `take_events`, but the deltas of a long text are created only during iteration."""
        known, self._known = self._known, []
        return AnswerEvents(known)

    def restart(self) -> None:
        """Discard the parts received so far, because the answer starts again. The ids of the discarded calls are not
        reused.

        Events that were already emitted cannot be revoked. They may contain text that is missing from the message.
        """
        for part in self._parts:
            if isinstance(part, PartialCall):
                self._announce_call(part)
        self.reset_parts()

    def begin_text(self, kind: Literal["text", "thinking"]) -> PartialText:
        """Begin a text or thinking block and return it."""
        part = PartialText(kind)
        self._append_part(part)
        return part

    def continue_text(self, kind: Literal["text", "thinking"]) -> PartialText:
        """Return the last part if it is a block of this kind; otherwise begin a new block."""
        last = self._parts[-1] if self._parts else None
        return last if isinstance(last, PartialText) and last.kind == kind else self.begin_text(kind)

    def add_text(self, part: PartialText, piece: str | Long) -> None:
        """Add a piece of text to a text or thinking block. An empty piece has no effect."""
        if not isinstance(piece, str):
            self._known.append(add_long_text(part, piece))
        elif text := part.pieces.add(piece):
            self._known.append(part.delta_event(text))

    def attach_seal(self, part: PartialText, kind: str, data: str) -> None:
        """Attach the provider's state to a thinking block, verbatim. A later seal replaces an earlier one."""
        if data:
            part.seal = ProviderState(kind, quote(data), self._seal_origin)

    @property
    def _seal_origin(self) -> Binding:
        """The binding to store with opaque provider state (seals): that of the answer, with the upstream that served
        it.
        """
        served = self.binding.upstream or self.upstream
        return replace(self.binding, upstream=served) if served else self.binding

    def complete_text(self, part: PartialText | PartialCall, *final_texts: str | Long) -> None:
        """Correct a part by its complete text, which the provider repeats at the end of the part, in one or more
        pieces.

        If the complete text begins with the text received so far, the remainder is added. Otherwise, the complete text
        replaces the arguments of a call, unless it is empty or `{}`.
        """
        said = part.pieces
        rest: Iterable[str | Long] | None = (
            filter(None, final_texts) if said.is_empty else said.remainder_of(final_texts)
        )
        if isinstance(part, PartialText):
            for text in rest or ():
                self.add_text(part, text)
        elif rest is not None:
            for text in rest:
                self.add_arguments(part, text)
        else:
            final = Pieces()
            for text in final_texts:
                final.add_long(text)
            if final.stripped(len("{}")) not in ("", "{}"):
                part.pieces = final

    def sign_call(self, call: PartialCall, kind: str, data: str) -> None:
        """Insert a thinking block with a call's signature from the provider, directly before the call."""
        words = call.signature = PartialText("thinking", done=True)
        self.attach_seal(words, kind, data)
        self._parts.insert(self._parts.index(call), words)

    def add_native(self, name: str, value: object, *, is_resendable: bool) -> ProviderPart:
        """Add a provider-specific part. `is_resendable` means that the provider accepts the part in a later request."""
        part = ProviderPart(kind_name(name), value, "part" if is_resendable else "unknown")
        self._append_part(part)
        return part

    def add_media(self, media_type: str, data: str = "", url: str = "") -> None:
        """Add media that the model generated, as base64 data or as a URL."""
        made = Media(sanitise(media_type), sanitise(data), sanitise(url))
        self.add_native("media", made, is_resendable=False).done = True

    def add_metadata(self, name: str, value: object, *, appends: bool = True) -> None:
        """Record metadata about the text, such as citations, under a name.

        A value replaces the previous value of this name. With `appends`, a list is appended to the previous list.
        """
        self._metadata.add(name, value, appends=appends)

    def add_fragment(
        self,
        slot: Slot,
        native_id: object,
        name: object,
        text: str | Long = "",
        delta_calls: Collection[PartialCall] = (),
    ) -> PartialCall:
        """Add a fragment of a tool call, and return the call that the fragment begins or continues.

        Args:
            slot: The fragment's index.
            native_id: The fragment's id, as sent.
            name: The fragment's tool name, as sent.
            text: The fragment's piece of the arguments.
            delta_calls: The calls to which earlier fragments of the same delta belong.

        Raises:
            StreamFault: The answer contains too many calls.
        """
        given_id, given_name = without_placeholder(native_id), self._clean_name(name)
        said = text if isinstance(text, str) else next(filter(str.strip, text.slices()), "")
        call = self._table.find_call(slot, given_id, given_name, said, delta_calls)
        if call is None:
            call = self.begin_call(given_id, given_name, slot)
        else:
            if given_id or given_name:
                if given_name and call.wire_name not in ("", given_name):
                    given_name = self._table.extended_name(call, given_id, given_name)
                    call.name = ""
                self.identify_call(call, given_id, given_name)
            self._table.record_fragment(call, slot, given_id)
        if text:
            self.add_arguments(call, text)
        return call

    def _clean_name(self, name: object) -> str:
        """Return a fragment's tool name; "" for a placeholder such as `null`, unless a declared tool has that name."""
        return name if isinstance(name, str) and name in (self.tools or ()) else without_placeholder(name)

    def begin_call(self, native_id: str, name: str, slot: Slot = None) -> PartialCall:
        """Begin a tool call. A call without a `name` only collects arguments, until their real call is known.

        Raises:
            StreamFault: The answer contains too many calls.
        """
        if self._calls == MAX_CALLS:
            raise answer_fault(f"the answer contains more than {MAX_CALLS} tool calls")
        part = PartialCall(mint(self.first_call + self._calls), slot)
        self._calls += 1
        self._append_part(part)
        self._table.record_fragment(part, slot, native_id)
        self.identify_call(part, native_id, name)
        return part

    @property
    def minted_id_count(self) -> int:
        """The number of canonical ids assigned so far, including the ids of dropped and unannounced calls."""
        return self._calls

    def identify_call(self, call: PartialCall, native_id: str, name: str, *, is_final: bool = False) -> None:
        """Set the id and the name of a call if they are missing. With `is_final`, replace earlier values.

        The call is announced as soon as its name is complete.
        """
        if native_id and (is_final or not call.native_id) and (native_id := without_placeholder(native_id)):
            call.native_id = sanitise(native_id)
        if name and (is_final or not call.name):
            call.wire_name = name
            call.name = (self.names or {}).get(name) or sanitise(name)
            call.renamed = tool_name(call.name, self.dialect.ids.tool_name_pattern) != name
            call.keys = (self.keys or {}).get(call.name, {})
        if call.name and (self.tools is None or call.wire_name in self.tools):
            self._announce_call(call)

    def add_arguments(self, call: PartialCall, piece: str | Long) -> None:
        """Add a piece of text to the arguments of a call."""
        call.done = False
        if call.name and not call.announced:
            self._announce_call(call)
        if not isinstance(piece, str):
            deltas = add_long_text(call, piece)
            if call.announced:
                self._known.append(deltas)
        elif (text := call.pieces.add(piece)) and call.announced:
            self._known.append(ArgumentsDelta(call.id, text))

    def drop_unfinished_calls(self) -> None:
        """Drop the calls that the provider did not mark as complete.

        The decoder calls this method when the provider reports that the answer was cut.
        """
        for part in self._parts:
            if isinstance(part, PartialCall) and not part.done:
                self._drop_call(part)

    def end_part(self, part: Part, *, has_marker: bool = True) -> None:
        """Mark a part as complete. If the part is a tool call, announce its end. Repeating this has no effect.

        Pass `has_marker=False` if the part has no end marker, but the answer has ended.

        Raises:
            StreamFault: A tool call has neither an end marker nor complete arguments, and no finish reason reports that
                the answer was cut.
        """
        if (
            not has_marker
            and isinstance(part, PartialCall)
            and not (part.dropped or part.is_whole or self._is_cut)
        ):
            raise answer_fault("the answer ended inside a tool call")
        part.done = True
        if not isinstance(part, PartialCall) or part.ended or part.dropped:
            return
        if part is self._parts[-1] and self.finish_reason is None:
            self._held = part
        else:
            self._end_call(part)

    def end_all_parts(self, unended: Iterable[Part] = (), *, may_fail: bool = True) -> None:
        """Decide which tool calls to keep, and mark every part as complete. Called at the end of the answer.

        The `unended` parts have no end marker. If `may_fail` is False, an unended call with incomplete arguments is
        dropped, and the answer counts as incomplete.

        Raises:
            StreamFault: An unended call has incomplete arguments, and `may_fail` is True.
        """
        self._settle_calls()
        for part in unended:
            if may_fail:
                self.end_part(part, has_marker=False)
            elif isinstance(part, PartialCall) and not (part.dropped or part.is_whole):
                self._drop_call(part)
                self._is_lost = True
        for part in self._parts:
            self.end_part(part)
        self._end_held_call()

    def _settle_calls(self) -> None:
        calls = [part for part in self._parts if isinstance(part, PartialCall)]
        if not calls:
            return
        answered = AnswerCalls(calls, self.tools, has_changing_ids=self._table.has_changing_ids)
        answered.settle_calls(has_regular_end=self.has_regular_end)
        for kind in answered.left_out:
            self.count_omission(kind)
        self._is_lost = self._is_lost or answered.is_lost

    @property
    def has_regular_end(self) -> bool:
        """True if the answer ended regularly, so that a call without arguments is plausible."""
        return True

    def record_finish_reason(self, reason: str) -> None:
        """Record the provider's finish reason. Complete calls are kept, regardless of the reason.

        Relays send several reasons, some of them before the text. The last reason counts, except that an ordinary
        reason does not replace a reason that reports a cut.
        """
        reason = _intern_reason(sanitise(reason))
        if reason == self.finish_reason or (
            self.finish_reason
            and cut_from_finish_reason(self.finish_reason)
            and not cut_from_finish_reason(reason)
        ):
            return
        self.finish_reason = reason
        self._end_held_call()
        self._known.append(Finish(reason))

    @property
    def cut_reason(self) -> Cut | None:
        """Why the answer is incomplete, for example because of its finish reason; None if it is complete."""
        return cut_from_finish_reason(self.finish_reason or "") or ("fault" if self._is_lost else None)

    def set_usage(self, usage: Usage) -> None:
        """Replace the token figures, and emit them if they changed. Providers send totals, so they are not summed."""
        if usage != self.usage:
            self.usage = usage
            self._known.append(usage)

    def update_usage(self, usage: object, usage_fields: Mapping[str, tuple[int, ...]]) -> None:
        """Update the token figures with those of an event. Figures are totals. A missing figure keeps its value.

        `usage_fields` maps the provider's name for a figure to the indices of the `Usage` fields that include the
        figure: 0 input, 1 output, 2 cache read, 3 cache written.
        """
        self.set_usage(self._figures.update(usage, usage_fields))

    def record_withheld(self, transformations: object) -> None:
        """Record the provider's list of the request parts that it hid from its model.

        Reasoning of earlier turns, which the provider always omits, is not recorded.
        """
        reasons = (
            sanitise(as_string(entry.get("reason"))) for entry in map(as_object, as_array(transformations))
        )
        self.withheld = tuple(why for why in reasons if why not in ("", "turn_boundary")) or self.withheld

    def count_omission(self, kind: str) -> None:
        """Count an item that is missing from the message, by its kind."""
        kind = kind_name(kind)
        if kind in self.left_out or len(self.left_out) < MAX_KINDS:
            self.left_out[kind] = self.left_out.get(kind, 0) + 1

    def count_omission_once(self, kind: str, value: object) -> None:
        """Count missing content of a kind at most once per answer, because streams repeat it. Ignore empty values."""
        if value and kind not in self.left_out:
            self.count_omission(kind)

    @property
    def has_calls(self) -> bool:
        """True if the answer contains a tool call that was not dropped."""
        return any(isinstance(part, PartialCall) and not part.dropped for part in self._parts)

    @property
    def has_content(self) -> bool:
        """True if the answer contains a tool call or text that is not blank."""
        texts = (part for part in self._parts if isinstance(part, PartialText) and part.kind == "text")
        return self.has_calls or any(not part.pieces.is_blank for part in texts)

    def partial_message(self) -> Message:
        """Return the usable content of an answer that broke off: the text so far, sealed thinking, and finished calls.

        A call or a thinking block is finished if the provider marked its end.
        """
        return self._build_message(is_complete=False)

    def _build_message(self, *, is_complete: bool) -> Message:
        blocks = answer_blocks(
            self._parts,
            self.dialect,
            self.binding,
            self._seal_origin,
            lambda kind: self.count_omission_once(kind, True),
            is_complete=is_complete,
        )
        blocks += self._metadata.blocks(self.binding, self._seal_origin)
        return Message("assistant", blocks, self.turn, self.binding)

    @property
    def _is_cut(self) -> bool:
        """True if the finish reason reports that the answer was cut, perhaps inside a call."""
        return cut_from_finish_reason(self.finish_reason or "") is not None

    def position_after(self, part: Part | None) -> int:
        """Return the position after `part`, or after the last part if `part` is None."""
        return len(self._parts) if part is None else self._parts.index(part) + 1

    def move_parts(self, first: int, target: int) -> int:
        """Move all parts from position `first` on to the earlier position `target`. Return the position after the moved
        parts.
        """
        moved = self._parts[first:]
        del self._parts[first:]
        self._parts[target:target] = moved
        return target + len(moved)

    def _append_part(self, part: Part) -> None:
        self._end_held_call()
        self._parts.append(part)

    def _end_held_call(self) -> None:
        """Announce the end of the last call, because another part follows or the answer has ended."""
        call, self._held = self._held, None
        if call is not None and call.done and not call.dropped:
            self._end_call(call)

    def _end_call(self, call: PartialCall) -> None:
        # Announce the call even if it is dropped below, so that no other call gets its id.
        self._announce_call(call)
        if self._is_cut and not call.is_whole:
            self._drop_call(call)
        else:
            call.ended = True
            self._known.append(CallDone(call.id))

    def _drop_call(self, call: PartialCall) -> None:
        if call.dropped:
            return
        call.dropped = True
        self.count_omission("cut_call")
        if call.signature is not None:
            call.signature.seal = None

    def _announce_call(self, call: PartialCall) -> None:
        if call.announced:
            return
        call.announced = True
        self._known += (CallStarted(call.id, call.name), *call.early_deltas())
