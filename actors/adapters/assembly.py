"""Assemble one answer: pieces go in by order of appearance, events and a message come out.

A family's decoder assigns each piece to a part, for streams and for complete bodies. This module decides what block a
part becomes, and which parts of a broken answer are kept.

Canonical ids are minted in order of appearance. The provider's id of a call is sealed and decides nothing: such ids
may be blank, repeated, or restart with every response.

An answer that was cut (`length`, `max_tokens`, a filter) may end inside a call. Servers close its block all the same,
and a call cut before its arguments looks like a call without arguments. So the last call stays open until the next
part or the end of the answer arrives. A call with incomplete arguments in a cut answer is dropped; the finish reason
tells the caller why.

If reasoning is bound to its prefix, thinking loses its seal after any part that is not kept exactly as it was sent
(an empty text, an unfinished call, a block of an unknown kind): the provider would reject it (ANT-44, OAR-09).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from actors.adapters.calls import CallTable, Slot, real_word
from actors.adapters.classify import cut_of_finish
from actors.adapters.failure import answer_fault
from actors.adapters.partial import (
    Events,
    LongTextDeltas,
    Own,
    Part,
    PartialCall,
    PartialText,
    Pieces,
    take_long,
)
from actors.adapters.settling import AnswerCalls
from actors.adapters.wire import Long, fields, items, number, string
from actors.core.data.jsonio import is_array, quote, sanitise
from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.transcript.projection import tool_name
from actors.core.values.content import Block, Media, Message, ProviderState, Thinking
from actors.core.values.identity import Binding, mint
from actors.core.values.stream import ArgumentsDelta, CallDone, CallStarted, Cut, Finish, StreamEvent, Usage

_KINDS = 64  # most distinct kinds of dropped or marked content, and most characters of the name of a kind

MAX_CALLS = 1024
"""Most calls in one message. The scheduler's limit is far lower; an answer with more calls is a fault."""


@lru_cache(maxsize=64)
def _intern(reason: str) -> str:
    """Return one shared string per reason: every round keeps its reason, and providers have few."""
    return reason


@dataclass(eq=False)
class MessageBuilder:
    """The parts of one answer, and the events not yet taken.

    Attributes:
        binding: The answering binding: the origin of the message and the maker of its seals.
        tools: The declared tools by their names on the wire; None if unknown.
        usage: The latest token figures.
        upstream: The provider behind a gateway that served the answer, if the answer names it. Seals carry it, or the
            upstream to which the binding is pinned, whose name in answers may differ.
        continuation: The token that continues an answer the provider paused; empty if it did not pause.
        withheld: Why the provider hid parts of the request from its model, one reason per part.
        left_out: Content of the answer that is missing from the message, such as logprobs, search grounding and dropped
            calls (`cut_call`): the number of items of each kind, keyed by the provider's name for the kind.
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
        self._usage_before = Usage()  # of the responses before this one
        self.continuation: str = ""
        self.upstream: str = ""
        self.withheld: tuple[str, ...] = ()
        self._calls = 0
        self._known: list[StreamEvent | LongTextDeltas] = []
        self.begin()

    def begin(self) -> None:
        """Reset the parts of the answer."""
        self.finish_reason: str | None = None
        self.left_out: dict[str, int] = {}
        self._parts: list[Part] = []
        self._marks: dict[str, Own] = {}
        self._figures: dict[str, int] = {}
        self._held: PartialCall | None = None  # the last part, if it is a call that ended or was cut
        self._table = CallTable(self.tools)
        self._is_lost = False  # whether arguments, or a whole call, were lost

    def take(self) -> list[StreamEvent]:
        """Return the events since the last call."""
        return list(self.take_lazily())

    def take_lazily(self) -> Iterable[StreamEvent]:
        """Return the events since the last call. The deltas of a long text are created during iteration."""
        known, self._known = self._known, []
        return Events(known)

    def restart(self) -> None:
        """Start the answer again and discard the earlier parts. Call numbers already used are not used again.

        Text that was already emitted cannot be revoked; the message lacks it.
        """
        for part in self._parts:
            if isinstance(part, PartialCall):
                self._announce(part)
        self.begin()

    def words(self, kind: Literal["text", "thinking"]) -> PartialText:
        part = PartialText(kind)
        self._append(part)
        return part

    def latest_words(self, kind: Literal["text", "thinking"]) -> PartialText:
        """Return the last part if it is of this kind, else begin one."""
        last = self._parts[-1] if self._parts else None
        return last if isinstance(last, PartialText) and last.kind == kind else self.words(kind)

    def say(self, part: PartialText, piece: str | Long) -> None:
        """Add a piece to a text or thinking block. An empty piece has no effect."""
        if not isinstance(piece, str):
            self._known.append(take_long(part, piece))
        elif text := part.pieces.add(piece):
            self._known.append(part.delta(text))

    def seal(self, part: PartialText, kind: str, data: str) -> None:
        """Attach the provider's own state to a thinking block, verbatim. A later seal replaces it."""
        if data:
            part.seal = ProviderState(kind, quote(data), self._maker)

    @property
    def _maker(self) -> Binding:
        """The maker of the seals: the binding, with the upstream that served it."""
        served = self.binding.upstream or self.upstream
        return replace(self.binding, upstream=served) if served else self.binding

    def complete(self, part: PartialText | PartialCall, *texts: str | Long) -> None:
        """Add the missing rest of a text that the provider repeats in full at the end. For arguments, the repetition
        wins.

        An empty text or an empty object overrides nothing.
        """
        said = part.pieces
        rest: Iterable[str | Long] | None = filter(None, texts) if said.is_empty else said.rest_of(texts)
        if isinstance(part, PartialText):
            for text in rest or ():
                self.say(part, text)
        elif rest is not None:
            for text in rest:
                self.argue(part, text)
        else:
            final = Pieces()
            for text in texts:
                final.take(text)
            if final.strip(len("{}")) not in ("", "{}"):
                part.pieces = final

    def sign(self, call: PartialCall, kind: str, data: str) -> None:
        """Insert the provider's signature of a call directly before the call."""
        words = call.signature = PartialText("thinking", done=True)
        self.seal(words, kind, data)
        self._parts.insert(self._parts.index(call), words)

    def native(self, name: str, value: object, *, goes_back: bool) -> Own:
        """Add a provider's own part; with `goes_back`, the provider accepts it unchanged in a later request."""
        part = Own(_word(name), value, "part" if goes_back else "unknown")
        self._append(part)
        return part

    def media(self, media_type: str, data: str = "", url: str = "") -> None:
        made = Media(sanitise(media_type), sanitise(data), sanitise(url))
        self.native("media", made, goes_back=False).done = True

    def mark(self, name: str, value: object, *, more: bool = True) -> None:
        """Add metadata about the text. With `more`, a list arrives in pieces; otherwise each value replaces the
        previous one."""
        if not value:
            return
        known = self._marks.get(name := _word(name))
        if known is None and len(self._marks) == _KINDS:
            return
        if more and known is not None and is_array(known.value) and is_array(value):
            value = [*known.value, *value]
        self._marks[name] = Own(name, value, "mark")

    def fragment(
        self,
        slot: Slot,
        native_id: object,
        name: object,
        text: str | Long = "",
        touched: Collection[PartialCall] = (),
    ) -> PartialCall:
        """Add a fragment of a tool call, and return the call that it begins or continues.

        `touched` are the calls that earlier fragments of the same delta belong to.

        Raises:
            StreamFault: The message holds too many calls.
        """
        given_id, given_name = real_word(native_id), self._real_name(name)
        said = text if isinstance(text, str) else next(filter(str.strip, text.slices()), "")
        call = self._table.find(slot, given_id, given_name, said, touched)
        if call is None:
            call = self.call(given_id, given_name, slot)
        else:
            if given_id or given_name:
                if given_name and call.wire_name not in ("", given_name):
                    given_name = self._table.grown_name(call, given_id, given_name)
                    call.name = ""
                self.identify(call, given_id, given_name)
            self._table.note(call, slot, given_id)
        if text:
            self.argue(call, text)
        return call

    def _real_name(self, name: object) -> str:
        """Return the tool name; empty for a placeholder, unless a declared tool has that name."""
        return name if isinstance(name, str) and name in (self.tools or ()) else real_word(name)

    def call(self, native_id: str, name: str, slot: Slot = None) -> PartialCall:
        """Begin a tool call. A call without a name holds arguments whose call is not known yet.

        Raises:
            StreamFault: The message holds too many calls.
        """
        if self._calls == MAX_CALLS:
            raise answer_fault(f"the answer holds more than {MAX_CALLS} tool calls")
        part = PartialCall(mint(self.first_call + self._calls), slot)
        self._calls += 1
        self._append(part)
        self._table.note(part, slot, native_id)
        self.identify(part, native_id, name)
        return part

    @property
    def minted_ids(self) -> int:
        """The number of canonical ids minted, including those of dropped and unannounced calls."""
        return self._calls

    def identify(self, call: PartialCall, native_id: str, name: str, *, is_final: bool = False) -> None:
        """Set the id and the name of a call if they are missing, or if a final item repeats them.

        The call is announced as soon as its name is complete.
        """
        if native_id and (is_final or not call.native_id) and (native_id := real_word(native_id)):
            call.native_id = sanitise(native_id)
        if name and (is_final or not call.name):
            call.wire_name = name
            call.name = (self.names or {}).get(name) or sanitise(name)
            call.renamed = tool_name(call.name, self.dialect.ids.tool_name_pattern) != name
            call.keys = (self.keys or {}).get(call.name, {})
        if call.name and (self.tools is None or call.wire_name in self.tools):
            self._announce(call)

    def argue(self, call: PartialCall, piece: str | Long) -> None:
        """Add a piece of argument text."""
        call.done = False
        if call.name and not call.announced:
            self._announce(call)
        if not isinstance(piece, str):
            deltas = take_long(call, piece)
            if call.announced:
                self._known.append(deltas)
        elif (text := call.pieces.add(piece)) and call.announced:
            self._known.append(ArgumentsDelta(call.id, text))

    def drop_unfinished_calls(self) -> None:
        """Drop the calls that the provider did not mark as complete, because it reports that the answer was cut."""
        for part in self._parts:
            if isinstance(part, PartialCall) and not part.done:
                self._drop(part)

    def end(self, part: Part, *, told: bool = True) -> None:
        """Mark a part as complete for good; with `told`, its own end marker arrived and not only that of the answer.

        The end of a call is announced. A second call has no effect.

        Raises:
            StreamFault: A call ended without an end marker and without complete arguments, and no finish reason
                reports that the answer was cut.
        """
        if not told and isinstance(part, PartialCall) and not (part.dropped or part.is_whole or self._is_cut):
            raise answer_fault("the answer ended inside a tool call")
        part.done = True
        if not isinstance(part, PartialCall) or part.ended or part.dropped:
            return
        if part is self._parts[-1] and self.finish_reason is None:
            self._held = part
        else:
            self._conclude(part)

    def end_all(self, unended: Iterable[Part] = (), *, fails: bool = True) -> None:
        """Settle the calls and mark every part as complete, at the end of the answer.

        The `unended` parts have no end marker. If one of them is a call with incomplete arguments, either the answer
        fails (`fails`), or the call is dropped and the answer is incomplete.

        Raises:
            StreamFault: As `end`, if `fails`.
        """
        self._settle()
        for part in unended:
            if fails:
                self.end(part, told=False)
            elif isinstance(part, PartialCall) and not (part.dropped or part.is_whole):
                self._drop(part)
                self._is_lost = True
        for part in self._parts:
            self.end(part)
        self._release()

    def _settle(self) -> None:
        calls = [part for part in self._parts if isinstance(part, PartialCall)]
        if not calls:
            return
        answered = AnswerCalls(calls, self.tools, makes_ids=self._table.makes_ids)
        answered.settle(is_proper=self.is_proper)
        for kind in answered.left_out:
            self.leave_out(kind)
        self._is_lost = self._is_lost or answered.is_lost

    @property
    def is_proper(self) -> bool:
        """True if the answer ended regularly, so that a call without arguments is plausible."""
        return True

    def finish(self, reason: str) -> None:
        """Record the provider's finish reason. Complete calls are kept for any reason.

        Relays send several reasons, some before the text. The last one counts, except that a plain reason does not
        replace a cut.
        """
        reason = _intern(sanitise(reason))
        if reason == self.finish_reason or (
            self.finish_reason and cut_of_finish(self.finish_reason) and not cut_of_finish(reason)
        ):
            return
        self.finish_reason = reason
        self._release()
        self._known.append(Finish(reason))

    @property
    def cut_reason(self) -> Cut | None:
        """Why the answer is incomplete: by its finish reason, or because arguments were lost."""
        return cut_of_finish(self.finish_reason or "") or ("fault" if self._is_lost else None)

    def report_usage(self, usage: Usage) -> None:
        """Replace the token figures. They are cumulative on the wire and never summed here."""
        if usage != self.usage:
            self.usage = usage
            self._known.append(usage)

    def count(self, usage: object, places: Mapping[str, tuple[int, ...]]) -> None:
        """Update the figures in `usage` and keep the others: they are cumulative, and events may omit some.

        `places` maps a name to the fields of `Usage` that it adds to: 0 input, 1 output, 2 cache read, 3 cache
        written.
        """
        for name, value in fields(usage).items():
            if name in places and (figure := number(value)) is not None:
                self._figures[name] = figure
        totals = [0, 0, 0, 0]
        for name, figure in self._figures.items():
            for place in places[name]:
                totals[place] += figure
        self.report_usage(self._usage_before + Usage(*totals))

    def report_withheld(self, given: object) -> None:
        """Record the provider's list of the parts that it hid from its model; a later list replaces it.

        Old reasoning that a provider omits at the end of a turn, as documented, is not reported.
        """
        reasons = (sanitise(string(entry.get("reason"))) for entry in map(fields, items(given)))
        self.withheld = tuple(why for why in reasons if why not in ("", "turn_boundary")) or self.withheld

    def leave_out(self, kind: str) -> None:
        """Count content that the message does not hold."""
        kind = _word(kind)
        if kind in self.left_out or len(self.left_out) < _KINDS:
            self.left_out[kind] = self.left_out.get(kind, 0) + 1

    def leave_out_once(self, kind: str, value: object) -> None:
        """Count content that a stream repeats, in pieces or completely. Empty values are ignored."""
        if value and kind not in self.left_out:
            self.leave_out(kind)

    @property
    def calls(self) -> bool:
        return any(isinstance(part, PartialCall) and not part.dropped for part in self._parts)

    @property
    def has_content(self) -> bool:
        """True if the answer has a call, or a text that is not blank."""
        texts = (part for part in self._parts if isinstance(part, PartialText) and part.kind == "text")
        return self.calls or any(not part.pieces.is_blank for part in texts)

    def partial_message(self) -> Message:
        """Return the usable part of a broken answer: text as far as it arrived, sealed thinking, finished calls.

        A call or a thinking block is finished if the provider marked its end.
        """
        return self._message(whole=False)

    def _message(self, *, whole: bool) -> Message:
        blocks: list[Block] = []
        stands = True
        for part in self._parts:
            block = part.block(self.binding, self._maker) if whole or part.is_keepable else None
            if block is None and isinstance(part, Own):
                self.leave_out_once(part.name, True)
            if block is not None:
                blocks.append(block if stands else _without_bound_seal(block))
            if self.dialect.reasoning.binding == "prefix":
                stands = stands and part.is_said_again(block, self.dialect)
        marks = (mark.block(self.binding, self._maker) for mark in self._marks.values())
        blocks += [mark for mark in marks if mark is not None]
        return Message("assistant", blocks, self.turn, self.binding)

    @property
    def _is_cut(self) -> bool:
        """True if the finish reason reports a cut, which may be inside a call."""
        return cut_of_finish(self.finish_reason or "") is not None

    def place_of(self, part: Part | None) -> int:
        """Return the position after a part; None stands for the last part."""
        return len(self._parts) if part is None else self._parts.index(part) + 1

    def move_parts(self, first: int, place: int) -> int:
        """Move the parts from `first` on to an earlier position, and return the position after them."""
        moved = self._parts[first:]
        del self._parts[first:]
        self._parts[place:place] = moved
        return place + len(moved)

    def _append(self, part: Part) -> None:
        self._release()
        self._parts.append(part)

    def _release(self) -> None:
        """Conclude the held call: another part follows, or the answer has ended."""
        call, self._held = self._held, None
        if call is not None and call.done and not call.dropped:
            self._conclude(call)

    def _conclude(self, call: PartialCall) -> None:
        self._announce(call)  # announce the number even if the call is dropped, so that no other call gets it
        if self._is_cut and not call.is_whole:
            self._drop(call)
        else:
            call.ended = True
            self._known.append(CallDone(call.id))

    def _drop(self, call: PartialCall) -> None:
        if call.dropped:
            return
        call.dropped = True
        self.leave_out("cut_call")
        if call.signature is not None:
            call.signature.seal = None

    def _announce(self, call: PartialCall) -> None:
        if call.announced:
            return
        call.announced = True
        self._known += (CallStarted(call.id, call.name), *call.early_deltas())


def _word(kind: str) -> str:
    """Return the provider's name for a kind of content, shortened to the usual length."""
    return sanitise(kind)[:_KINDS] or "unknown"


def _without_bound_seal(block: Block) -> Block:
    """Return a block without a seal that is bound to the preceding blocks."""
    if isinstance(block, Thinking) and block.seal is not None and block.seal.is_bound:
        return Thinking(json=block.json)
    return block
