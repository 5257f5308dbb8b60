"""Walk the groups of a normal history from the lane's cursor to the end, and write the transcript.

A group is a user message, or an assistant message with the results of its calls. An assistant message keeps the blocks
that the target supports; the results follow directly, in call order, each chosen by `choose`. Steps that only some
dialects or some content need run only if their flag is set or the content is present.

Where the protocol requires a message and there is none, a constant filler takes its place and is counted in the
report. A sent filler is part of the lane and stays. Most providers reject empty and whitespace-only texts (rulebook
ANT-20, ANT-21), and messages left empty by a dropped block (ANT-22).
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from actors.core.data.jsonio import MAYBE_BLANK, Json, is_blank, quote, unquote
from actors.core.dialects.dialect import Dialect
from actors.core.history.history import History
from actors.core.ledger import Answer, Ledger
from actors.core.models.rules import Role
from actors.core.render.attach import Attachments
from actors.core.render.choose import Choice
from actors.core.render.order import Made, add_required_reasoning, drop_unbound, move_calls_last, split_calls
from actors.core.render.sealed import (
    Items,
    RenderTarget,
    as_text,
    drop_item_ids,
    filter_native,
    filter_reasoning,
    native_note,
    upstream,
    wire_bytes,
)
from actors.core.transcript.diagnostics import Filler, Notes
from actors.core.transcript.projection import Projection
from actors.core.transcript.transcript import Encoder, RenderState, Titled
from actors.core.values.content import (
    Block,
    Code,
    Media,
    Message,
    ProviderBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

STRIDE = 64
"""Messages per slice. The judge then reads bytes that are still in the processor's cache."""

_NO_CALLS: Iterator[tuple[ToolCall, str, str]] = iter(())


class RenderWalk:
    """One render, from the lane's state `begun` to the end of `history`; `notes` records the decisions.

    `sent` lists the history lengths of requests already sent, each of which ended as a request must.
    """

    def __init__(
        self,
        begun: RenderState,
        history: History,
        ledger: Ledger,
        dialect: Dialect,
        encoder: Encoder,
        target: RenderTarget,
        notes: Notes,
        sent: Sequence[int] = (),
    ) -> None:
        self._begun = begun
        self._ends = {length - begun.cursor for length in sent}
        self._length = history.length
        self._tail = history.since(begun.cursor)
        self._dialect = dialect
        self._notes = notes
        seen = self._tail[max(0, begun.epoch_start - begun.cursor) :]
        self._upstream = upstream(seen, dialect, target) if begun.upstream is None else begun.upstream
        target = RenderTarget(target.binding, "drop") if begun.plain else target
        self._target = target.served_by(self._upstream)
        self._choice = Choice(ledger, history, begun, notes)
        self._projection = Projection(begun, dialect, target.binding)
        self._attachments = Attachments(dialect, begun.usage, begun.refused)
        self._items = Items(begun.usage)
        self._writes_natives = encoder.natives
        self._writer = encoder.writer(begun.last_role)
        self._longest = dialect.turns.max_string or sys.maxsize
        self._last_role: Role | None = begun.last_role
        self._loop = begun.loop
        self._orders = dialect.turns.calls_last or dialect.reasoning.required != "no"
        self._always_reasons = dialect.reasoning.required == "every"
        self._leads = dialect.turns.alternation == "merge_same" and dialect.reasoning.first
        self._closes = target.budgeted and dialect.reasoning.is_fixed_in_loop
        self._parts = (
            dialect.turns.user_after_tool == "filler" or dialect.turns.alternation == "fill" or self._closes
        )
        self._follows = dialect.reasoning.is_fixed_in_loop
        self._answers: Role = "user" if dialect.turns.result_carrier == "user_block" else "tool"

    def fragments(self) -> Iterator[list[bytes]]:
        """Yield the new pieces of the lane, a slice at a time. Afterwards, `state` returns the lane's new state."""
        self._choice.collect_late_results(self._tail)
        self._expect_images(0)
        said = self._write_plainly if self._begun.plain else self._write_assistant_with_results
        fresh = self._begun.epoch_start - self._begun.cursor
        for at, message in enumerate(self._tail):
            if at in self._ends:
                self._end()
                self._expect_images(at)
            if message.role == "assistant":
                said(message, sealed=at >= fresh)
            else:
                if waiting := self._choice.waiting:
                    self._choice.waiting = []
                    self._write_user(waiting)
                self._write_user(message.blocks)
            if at % STRIDE == STRIDE - 1:
                yield self._writer.take_pieces()
        self._end()
        yield self._writer.take_pieces()

    def _expect_images(self, start: int) -> None:
        """Count the images of the request that begins at message `start` of the tail."""
        if not self._attachments.counts_images:
            return
        stop = min((end for end in self._ends if end > start), default=len(self._tail))
        said = self._tail[start:stop]
        media = [block for message in said for block in message.blocks if isinstance(block, Media)]
        media += [item for message in said for call in message.calls for item in self._choice.media_of(call)]
        self._attachments.expect(sum(item.media_type.startswith("image/") for item in media))

    def state(self) -> RenderState:
        begun = self._begun
        calls, used, index = self._projection.new_state()
        missing, carried, late_count = self._choice.new_state(begun.missing)
        return begun._replace(
            cursor=self._length,
            calls=calls,
            used=used,
            index=index,
            tools=self._projection.with_names(begun.tools),
            missing=missing,
            carried=carried,
            late_count=late_count,
            upstream=self._upstream,
            last_role=self._last_role,
            loop=self._loop,
            usage=self._items.usage(self._attachments.usage()),
        )

    def _write_user(self, blocks: Iterable[Block]) -> None:
        """Write a user message with the supported blocks, if any."""
        if left := self._supported_blocks(blocks, by_human=True):
            self._begin("user")
            self._write(left)

    # ---- assistant messages and the results of their calls

    def _write_assistant_with_results(self, message: Message, *, sealed: bool) -> None:
        parts = (message.blocks,) if self._dialect.turns.calls_together else split_calls(message.blocks)
        for blocks in parts:
            if made := self._write_answer(blocks, sealed=sealed):
                self._write_results(made)

    def _write_answer(self, said: Sequence[Block], *, sealed: bool) -> Made:
        """Write an assistant message and return its calls."""
        dialect, kinds = self._dialect, set(map(type, said))
        blocks, thinks = said, Thinking in kinds
        if thinks and dialect.reasoning.once:
            said = drop_item_ids(said, without_ids=self._begun.without_ids)
        if thinks:
            blocks = filter_reasoning(said, dialect, self._target, self._notes, sealed=sealed)
            thinks = Thinking in map(type, blocks)
        if ProviderBlock in kinds:
            may_have = self._target.binding if sealed and self._writes_natives else None
            blocks = filter_native(blocks, dialect, may_have, self._items, self._notes)
        left = self._supported_blocks(blocks, by_human=False)
        if thinks:
            left = self._allowed_reasoning(left)
        made: Made = []
        if ToolCall in kinds:
            made = [(block, *self._projection.call(block)) for block in left if type(block) is ToolCall]
        if thinks or (made and self._orders) or (left and self._always_reasons):
            left = self._order(said, left, made)
        if left:
            self._begin("assistant", thinks=type(left[0]) is Thinking)
            self._write(left, iter(made))
        return made

    def _write(self, blocks: Iterable[Block], calls: Iterator[tuple[ToolCall, str, str]] = _NO_CALLS) -> None:
        writer, notes = self._writer, self._notes
        for block in blocks:
            match block:
                case Text():
                    writer.write_text(block.json)
                case ToolCall():
                    call, emitted, name = next(calls)
                    notes.calls.append(call.id)
                    notes.emitted_calls.append(emitted)
                    writer.write_call(emitted, name, self._projection.arguments(call))
                case Thinking():
                    writer.write_thinking(block)
                case ProviderBlock():
                    writer.write_native(wire_bytes(block))
                case Media():
                    writer.write_media(*self._attachments.with_title(block))
                case ToolResult() | Code():
                    raise AssertionError("results come from the ledger, and code was rendered as text")

    def _write_results(self, made: Made) -> None:
        """Write a result for each call, in call order, followed by the media that results cannot hold."""
        self._begin(self._answers, results=True)
        choice, writer, emitted = self._choice, self._writer, self._notes.emitted_results
        moved: list[Media] = []
        for call, call_id, name in made:
            emitted.append(call_id)
            answer = choice.answer(call)
            words, failed, attached = answer
            held: Sequence[Titled] = ()
            if attached:
                words, held = self._place_media(answer, moved)
            writer.write_result(call_id, name, words, failed, held)
        if moved:
            self._begin("user")
            for number, media in enumerate(moved, 1):
                self._write((Text(f"[Attachment {number}:]"), media))
        if choice.some_are_late:
            for call, _, _ in made:
                choice.add_late_result(call)

    def _place_media(self, answer: Answer, moved: list[Media]) -> tuple[Json, Sequence[Titled]]:
        """Return a result's text, which mentions its moved media, and the media it keeps; the others join `moved`."""
        dialect, attachments = self._dialect, self._attachments
        words, failed, held = answer
        kept: list[Titled] = []
        said: list[str] = []
        for media in held:
            if not failed and attachments.admit(media, dialect.media.result_kinds):
                kept.append(attachments.with_title(media))
            elif attachments.admit(media, dialect.media.user_kinds):
                moved.append(media)
                said.append(
                    f"[Attachment {len(moved)}, of type {media.media_type}, follows the tool results.]"
                )
            else:
                self._notes.losses["media"] += 1
                said.append(attachments.note(media))
        if is_blank(words):
            words = Json(b'""')
        if said:
            gap = b"" if words == b'""' else b"\\n"
            words = Json(words[:-1] + gap + quote("\n".join(said))[1:])
        return words, kept

    def _write_plainly(self, message: Message, *, sealed: bool) -> None:
        """Write a group as text, after its structure was refused: texts break no rule about tools."""
        del sealed  # this epoch sends no reasoning
        self._notes.calls += [call.id for call in message.calls]
        self._write_answer([_as_text(block) for block in message.blocks], sealed=False)
        answers: list[Block] = []
        for call in message.calls:
            words, failed, media = self._choice.answer(call)
            answers += (Text(f"[The tool {'failed' if failed else 'answered'}: {unquote(words)}]"), *media)
        self._write_user(answers)
        for call in message.calls:
            self._choice.add_late_result(call)

    # ---- supported content

    def _supported_blocks(self, blocks: Iterable[Block], *, by_human: bool) -> list[Block]:
        """Return the supported blocks: no blank text, code as fenced text, notes for unsupported media."""
        dialect, notes, longest = self._dialect, self._notes, self._longest
        kept: list[Block] = []
        for block in blocks:
            if isinstance(block, Text):
                if block.json[1] in MAYBE_BLANK and dialect.turns.drop_empty_text and is_blank(block.json):
                    notes.losses["empty"] += 1
                elif len(block.json) > longest:
                    kept += _pieces(block, longest, dialect)
                else:
                    kept.append(block)
            elif isinstance(block, (ToolCall, ToolResult)):
                kept.append(block)
            elif isinstance(block, Media):
                if by_human and self._attachments.admit(block, dialect.media.user_kinds):
                    kept.append(block)
                else:
                    notes.losses["media"] += 1
                    kept.append(Text(self._attachments.note(block)))
            elif isinstance(block, Code):
                notes.losses["code"] += 1
                kept.append(Text(f"```{block.language}\n{block.source}\n```"))
            elif isinstance(block, Thinking) and by_human:
                said = as_text(block, self._target, notes)
                kept += (said,) if said else ()
            elif isinstance(block, ProviderBlock) and by_human:
                kept += native_note(block, notes)
            elif isinstance(block, (Thinking, ProviderBlock)):
                kept.append(block)
            else:
                assert_never(block)
        return kept

    def _allowed_reasoning(self, blocks: list[Block]) -> list[Block]:
        """Return the blocks without reasoning that the dialect rejects: at the end, alone or repeated."""
        dialect, notes = self._dialect, self._notes
        while dialect.reasoning.followed and blocks and type(blocks[-1]) is Thinking:  # OAR-03
            blocks.pop()
            notes.losses["thinking"] += 1
        if not dialect.reasoning.alone and blocks and {Thinking}.issuperset(map(type, blocks)):
            notes.losses["thinking"] += len(blocks)
            return []
        if dialect.reasoning.once:
            said, blocks = blocks, [block for block in blocks if not self._items.must_withhold(block)]
            if len(blocks) < len(said):
                notes.losses["thinking"] += len(said) - len(blocks)
        return blocks

    def _order(self, said: Sequence[Block], left: list[Block], made: Made) -> list[Block]:
        """Return the blocks in the order that the target requires, with the allowed and required reasoning."""
        dialect, demands = self._dialect, self._dialect.reasoning.required != "no"
        if dialect.turns.calls_last:
            left = move_calls_last(left)
        if demands:  # first, because a placeholder also changes the prefix of later reasoning
            left = add_required_reasoning(left, dialect, self._notes)
        if dialect.reasoning.binding == "prefix":
            stands = drop_unbound(said, left, made, self._notes)
            if demands and len(stands) < len(left):
                stands = add_required_reasoning(stands, dialect, self._notes)
            left = stands
        return left

    # ---- neighbours

    def _begin(self, role: Role, *, thinks: bool = False, results: bool = False) -> None:
        """Begin a message, after any filler that must precede it.

        Where the dialect merges neighbours of one role, the writer continues the open message. One exception: where
        native reasoning must open its message (rulebook ANT-39), a filler separates it from earlier assistant content.
        """
        turns, last = self._dialect.turns, self._last_role
        if last is None and role != "user" and role not in turns.first_roles:
            self._fill("user", "first", turns.filler_first)
        elif role == "user":
            if self._parts:
                self._write_filler()
        elif role == "assistant" == last and ((self._leads and thinks) or turns.alternation == "fill"):
            self._fill("user", "last", turns.filler_last)
        if self._follows:
            self._loop = self._loop.after(role, self._last_role, thinks, results)
        self._writer.begin(role)
        self._last_role = role

    def _write_filler(self) -> None:
        """Write the assistant filler that must precede the next user message, if any."""
        turns, last = self._dialect.turns, self._last_role
        behind_result = last == "tool" and turns.user_after_tool == "filler"
        if behind_result or (last == "user" and turns.alternation == "fill") or self._is_in_unthinking_loop():
            self._fill("assistant", "between", turns.filler_between)

    def _is_in_unthinking_loop(self) -> bool:
        """Return True after the results of a tool loop that began without thinking, if thinking is required (ANT-40).

        A request could turn thinking off until the loop ends, but that setting precedes the messages, so prompt caches
        would lose all of them twice. An assistant filler ends the loop instead.
        """
        return self._closes and self._loop.answered and not self._loop.mixed and self._loop.thinks is False

    def _end(self) -> None:
        """Write a filler if the dialect does not allow the transcript to end on the last role."""
        if self._last_role not in self._dialect.turns.last_roles or self._is_in_unthinking_loop():
            self._fill("user", "last", self._dialect.turns.filler_last)

    def _fill(self, role: Role, kind: Filler, words: str) -> None:
        self._begin(role)
        if role == "assistant" and self._always_reasons:
            self._writer.write_thinking(Thinking(self._dialect.reasoning.placeholder))
        self._writer.write_text(quote(words))
        self._notes.fillers[kind] += 1


def _as_text(block: Block) -> Block:
    if type(block) is not ToolCall:
        return block
    return Text(f"[Called the tool {block.name} with {block.json.decode()}]")


def _pieces(block: Text, longest: int, dialect: Dialect) -> list[Text]:
    """Split a text into pieces of at most the dialect's maximum length (rulebook OAC-14)."""
    text = block.text
    pieces = (text[start : start + longest] for start in range(0, len(text), longest))
    return [Text(piece) for piece in pieces if piece.strip() or not dialect.turns.drop_empty_text]
