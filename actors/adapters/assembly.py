"""One answer being put together: pieces in order of appearance in, events and a message out.

A family's decoder decides which piece belongs to which part, whether they are streamed or come in one body. This module
decides what a part becomes, and what may be kept of an answer that broke off.

Canonical ids are minted in order of appearance. What the provider called a call is kept sealed, and decides
nothing: ids may be blank, repeated, or restart with every response.

An answer that was cut (`length`, `max_tokens`, a filter) may end inside a call. Servers stop its block all the same,
and without its arguments it would read as a call with none. So the last call is not done before it is known what
follows. A call whose arguments are not whole when the answer was cut is left out; the reason to stop says why.

Where reasoning is bound to its prefix, what the model thought behind something that is not kept as it said it (an
empty text, an unfinished call, a block of an unknown kind) loses its seal: it could only be refused (ANT-44, OAR-09).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from actors.adapters.arriving import Events, LongTextDeltas, Own, Part, PartialCall, Pieces, Words, take_long
from actors.adapters.calls import CallTable, Slot, real_word
from actors.adapters.classify import cut
from actors.adapters.failure import broken
from actors.adapters.settling import AnswerCalls
from actors.adapters.wire import Long, fields, items, number, string
from actors.core.data.jsonio import quote, sanitise
from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.transcript.projection import tool_name
from actors.core.values.content import Block, Media, Message, ProviderState, Thinking
from actors.core.values.identity import Binding, mint
from actors.core.values.stream import ArgumentsDelta, CallDone, CallStarted, Cut, Finish, StreamEvent, Usage

_KINDS = 64  # of what is left out or marked, that are told apart; and characters of a word for it

MAX_CALLS = 1024
"""Calls one message may hold. The scheduler refuses extras far below this; past it the answer is a fault."""


@lru_cache(maxsize=64)
def _once(reason: str) -> str:
    """Return the word as it was first read: every round's is kept, and providers have few."""
    return reason


@dataclass(eq=False)
class MessageBuilder:
    """The parts of one answer, and the events not yet handed out.

    Attributes:
        binding: Who is answering: the message's origin, and what its seals are stamped with.
        tools: The declared tools by their names on the wire; None if they are not known.
        usage: The figures so far.
        upstream: Who served the answer behind a gateway, where the answer says so. Seals are stamped with it, or with
            the upstream that the binding is pinned to, whose name in answers may be another.
        continuation: By which the provider goes on with an answer that it paused; empty if it did not.
        withheld: Why the provider hid parts of the request from its model, a reason for each part.
        left_out: What the answer held that the message does not, by the provider's word for it, and how many: logprobs,
            what a search was grounded in, calls that were cut (`cut_call`).
    """

    dialect: Dialect
    binding: Binding
    first_call: int = 1
    turn: int = 0
    names: Mapping[str, str] | None = None
    keys: Mapping[str, Mapping[str, str]] | None = None
    tools: Collection[str] | None = None

    def __post_init__(self) -> None:
        self.usage = Usage()
        self._usage_before = Usage()  # by the responses before this one
        self.continuation = ""
        self.upstream = ""
        self.withheld: tuple[str, ...] = ()
        self._calls = 0
        self._known: list[StreamEvent | LongTextDeltas] = []
        self.begin()

    def begin(self) -> None:
        """Begin with nothing said."""
        self.finish_reason: str | None = None
        self.left_out: dict[str, int] = {}
        self._parts: list[Part] = []
        self._marks: dict[str, Own] = {}
        self._figures: dict[str, int] = {}
        self._held: PartialCall | None = None  # the last part: a call that ended, or was cut
        self._table = CallTable(self.tools)
        self._is_lost = False  # whether arguments, or a call's, went astray

    def take(self) -> list[StreamEvent]:
        """Return the events since the last call."""
        return list(self.take_lazily())

    def take_lazily(self) -> Iterable[StreamEvent]:
        """Return the events since the last call. The deltas of a long text are made when it is iterated."""
        known, self._known = self._known, []
        return Events(known)

    def restart(self) -> None:
        """Begin the answer again: what came before is void. A call's number that was given is not given again.

        Text that was handed out cannot be taken back; the message is without it.
        """
        for part in self._parts:
            if isinstance(part, PartialCall):
                self._announce(part)
        self.begin()

    def words(self, kind: Literal["text", "thinking"]) -> Words:
        part = Words(kind)
        self._append(part)
        return part

    def latest_words(self, kind: Literal["text", "thinking"]) -> Words:
        """Return the last part if it is of this kind, else begin one."""
        last = self._parts[-1] if self._parts else None
        return last if isinstance(last, Words) and last.kind == kind else self.words(kind)

    def say(self, part: Words, piece: str | Long) -> None:
        """Add a piece to a text or thinking block. An empty piece says nothing."""
        if not isinstance(piece, str):
            self._known.append(take_long(part, piece))
        elif text := part.pieces.add(piece):
            self._known.append(part.delta(text))

    def seal(self, part: Words, kind: str, data: str) -> None:
        """Attach the provider's own state to a thinking block, verbatim. A later one replaces it."""
        if data:
            part.seal = ProviderState(kind, quote(data), self._maker)

    @property
    def _maker(self) -> Binding:
        """Who seals: the binding, and the upstream that served it."""
        served = self.binding.upstream or self.upstream
        return replace(self.binding, upstream=served) if served else self.binding

    def complete(self, part: Words | PartialCall, *texts: str | Long) -> None:
        """Add what is missing of a text that the provider repeats whole at the end. On arguments it has the last word.

        An empty text or an empty object overrides nothing.
        """
        said = part.pieces
        rest: Iterable[str | Long] | None = filter(None, texts) if said.is_empty else said.rest_of(texts)
        if isinstance(part, Words):
            for text in rest or ():
                self.say(part, text)
        elif rest is not None:
            for text in rest:
                self.argue(part, text)
        else:
            final = Pieces()
            for text in texts:
                final.take(text)
            if final.stripped(len("{}")) not in ("", "{}"):
                part.pieces = final

    def sign(self, call: PartialCall, kind: str, data: str) -> None:
        """Put the provider's signature of a call directly in front of it."""
        words = call.signature = Words("thinking", done=True)
        self.seal(words, kind, data)
        self._parts.insert(self._parts.index(call), words)

    def native(self, name: str, value: object, *, goes_back: bool) -> Own:
        """Take a part that is the provider's own; `goes_back` if the provider takes it back as it is."""
        part = Own(_word(name), value, "part" if goes_back else "unknown")
        self._append(part)
        return part

    def media(self, media_type: str, data: str = "", url: str = "") -> None:
        made = Media(sanitise(media_type), sanitise(data), sanitise(url))
        self.native("media", made, goes_back=False).done = True

    def mark(self, name: str, value: object, *, more: bool = True) -> None:
        """Take what is said about the words. `more`: a list comes in pieces; else each time it is all there is."""
        if not value:
            return
        known = self._marks.get(name := _word(name))
        if known is None and len(self._marks) == _KINDS:
            return
        if more and known is not None and isinstance(known.value, list) and isinstance(value, list):
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
        """Take a fragment of a tool call, and return the call that it begins or continues.

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
        """Return a tool's name; empty for a placeholder, unless a tool has that name."""
        return name if isinstance(name, str) and name in (self.tools or ()) else real_word(name)

    def call(self, native_id: str, name: str, slot: Slot = None) -> PartialCall:
        """Begin a tool call. Without a name, it is arguments that wait for one.

        Raises:
            StreamFault: The message holds too many calls.
        """
        if self._calls == MAX_CALLS:
            raise broken(f"the answer holds more than {MAX_CALLS} tool calls")
        part = PartialCall(mint(self.first_call + self._calls), slot)
        self._calls += 1
        self._append(part)
        self._table.note(part, slot, native_id)
        self.identify(part, native_id, name)
        return part

    @property
    def minted(self) -> int:
        """How many calls were given a canonical id, those included that are left out or were never announced."""
        return self._calls

    def identify(self, call: PartialCall, native_id: str, name: str, *, is_final: bool = False) -> None:
        """Give a call the id and name that it does not have yet, or that a final item has for it.

        The call is announced once it has a name that is no piece of one.
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
        """Leave out the calls that the provider did not call complete: it says that the answer is cut."""
        for part in self._parts:
            if isinstance(part, PartialCall) and not part.done:
                self._drop(part)

    def end(self, part: Part, *, told: bool = True) -> None:
        """Mark a part as complete for good; `told` if its own end was told, and not the answer's alone.

        For a call this is announced. Doing it twice changes nothing.

        Raises:
            StreamFault: It is a call whose end was not told, without all of its arguments, and no reason to stop says
                that the answer was cut.
        """
        if not told and isinstance(part, PartialCall) and not (part.dropped or part.is_whole or self._is_cut):
            raise broken("the answer ended inside a tool call")
        part.done = True
        if not isinstance(part, PartialCall) or part.ended or part.dropped:
            return
        if part is self._parts[-1] and self.finish_reason is None:
            self._held = part
        else:
            self._conclude(part)

    def end_all(self, unended: Iterable[Part] = (), *, fails: bool = True) -> None:
        """Settle the calls and mark every part as complete: the answer has ended.

        The ends of the `unended` parts were not marked. If one of them is a call without all of its arguments, the
        answer `fails`, or it goes on without that call and is incomplete.

        Raises:
            StreamFault: As `end`, if it fails.
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
        """Whether the answer ended as it should, so that a call in it may have no arguments."""
        return True

    def finish(self, reason: str) -> None:
        """Note why the provider says it stopped. Calls that came whole are calls, whatever the reason.

        Relays give a reason more than once, and before the words. The last one counts, but a plain one does not make up
        for a cut.
        """
        reason = _once(sanitise(reason))
        if reason == self.finish_reason or (
            self.finish_reason and cut(self.finish_reason) and not cut(reason)
        ):
            return
        self.finish_reason = reason
        self._release()
        self._known.append(Finish(reason))

    @property
    def cut(self) -> Cut | None:
        """Why the answer is not whole: as its reason to stop says, or because arguments went astray."""
        return cut(self.finish_reason or "") or ("fault" if self._is_lost else None)

    def report_usage(self, usage: Usage) -> None:
        """Replace the token figures. They are cumulative on the wire, never summed here."""
        if usage != self.usage:
            self.usage = usage
            self._known.append(usage)

    def count(self, usage: object, places: Mapping[str, tuple[int, ...]]) -> None:
        """Take the figures that are given, keep the others: they are cumulative, and not always all there.

        `places` has the fields of a `Usage` that a name is added to: 0 input, 1 output, 2 cache read, 3 cache written.
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
        """Note the provider's list of what it hid from its model; a later list replaces it.

        Old reasoning that a provider leaves out at the end of a turn, as it says it will, is not told.
        """
        reasons = (sanitise(string(entry.get("reason"))) for entry in map(fields, items(given)))
        self.withheld = tuple(why for why in reasons if why not in ("", "turn_boundary")) or self.withheld

    def leave_out(self, kind: str) -> None:
        """Count something that the message does not hold."""
        kind = _word(kind)
        if kind in self.left_out or len(self.left_out) < _KINDS:
            self.left_out[kind] = self.left_out.get(kind, 0) + 1

    def leave_out_once(self, kind: str, value: object) -> None:
        """Note what a stream says over and over, in pieces or anew each time. What is empty says nothing."""
        if value and kind not in self.left_out:
            self.leave_out(kind)

    @property
    def calls(self) -> bool:
        return any(isinstance(part, PartialCall) and not part.dropped for part in self._parts)

    @property
    def says(self) -> bool:
        """Whether there is a call, or a text that is not blank."""
        texts = (part for part in self._parts if isinstance(part, Words) and part.kind == "text")
        return self.calls or any(not part.pieces.is_blank for part in texts)

    def partial_message(self) -> Message:
        """Return what may be kept of an answer that broke off: text as far as it came, sealed thinking, finished calls.

        A call or a thinking block counts as finished when the provider said so.
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
                blocks.append(block if stands else _unbound(block))
            if self.dialect.reasoning.binding == "prefix":
                stands = stands and part.is_said_again(block, self.dialect)
        marks = (mark.block(self.binding, self._maker) for mark in self._marks.values())
        blocks += [mark for mark in marks if mark is not None]
        return Message("assistant", blocks, self.turn, self.binding)

    @property
    def _is_cut(self) -> bool:
        """Whether the provider says that it stopped in the middle, and may have done so inside a call."""
        return cut(self.finish_reason or "") is not None

    def place_of(self, part: Part | None) -> int:
        """Return the place behind a part; None stands for the last."""
        return len(self._parts) if part is None else self._parts.index(part) + 1

    def move_parts(self, first: int, place: int) -> int:
        """Move the parts from `first` on to an earlier place, and return the place behind them."""
        moved = self._parts[first:]
        del self._parts[first:]
        self._parts[place:place] = moved
        return place + len(moved)

    def _append(self, part: Part) -> None:
        self._release()
        self._parts.append(part)

    def _release(self) -> None:
        """Decide on the call that was held: something follows it, or the answer has ended."""
        call, self._held = self._held, None
        if call is not None and call.done and not call.dropped:
            self._conclude(call)

    def _conclude(self, call: PartialCall) -> None:
        self._announce(call)  # a number that was given is told, so that nothing else gets it
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
        self._known += (CallStarted(call.id, call.name), *call.early())


def _word(kind: str) -> str:
    """Return the provider's word for something, no longer than such words are."""
    return sanitise(kind)[:_KINDS] or "unknown"


def _unbound(block: Block) -> Block:
    """Return a block without a seal that is bound to what stands before it."""
    if isinstance(block, Thinking) and block.seal is not None and block.seal.is_bound:
        return Thinking(json=block.json)
    return block
