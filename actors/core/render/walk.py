"""Write the transcript of a normal history, from the lane's cursor to the end, message by message.

A group is a user message, or an assistant message with the results of its calls. An assistant message keeps the blocks
that the target supports. The results follow directly, in call order; `choose` selects each result. For speed, steps
that neither the dialect nor the content needs are skipped.

If the protocol requires a message and the history has none, a constant filler is inserted and counted in the report. A
sent filler is part of the lane and stays. If the dialect rejects blank texts, they are dropped (rulebook ANT-20,
ANT-21), and so are messages that are empty without them (ANT-22).
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import assert_never

from actors.core.data.jsonio import MAYBE_BLANK, Json, is_blank, quote, unquote
from actors.core.dialects.dialect import Dialect
from actors.core.history.history import History
from actors.core.ledger import Answer, Ledger
from actors.core.models.rules import Role
from actors.core.render.attach import Attachments
from actors.core.render.choose import CompletionChooser
from actors.core.render.order import (
    EmittedCalls,
    add_required_reasoning,
    drop_stale_reasoning,
    move_calls_last,
    placeholder_reasoning,
    split_calls,
)
from actors.core.render.sealed import (
    ReasoningFilter,
    RenderTarget,
    SentItems,
    drop_item_ids,
    filter_native,
    native_note,
    reasoning_as_text,
    replayable_upstream,
    wire_bytes,
)
from actors.core.transcript.diagnostics import Filler, Notes
from actors.core.transcript.transcript import Encoder, Projection, RenderState, TitledMedia
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
"""Messages per slice. Slices are small, so that the check reads bytes that are still in the processor's cache."""

_NO_CALLS: Iterator[tuple[ToolCall, str, str]] = iter(())


def _image_count(messages: Sequence[Message], choice: CompletionChooser) -> int:
    """Return the number of images in messages and in the results of their calls."""
    media = [block for message in messages for block in message.blocks if isinstance(block, Media)]
    media += [item for message in messages for call in message.calls for item in choice.media_of(call)]
    return sum(item.media_type.startswith("image/") for item in media)


class RenderWalk:
    """One render, which continues a lane from `state` and writes the messages up to the end of `history`.

    `notes` records the decisions. `sent` lists the history lengths of requests that were already sent. At each of these
    lengths, the transcript is completed as in a request.
    """

    def __init__(
        self,
        state: RenderState,
        history: History,
        ledger: Ledger,
        dialect: Dialect,
        encoder: Encoder,
        target: RenderTarget,
        notes: Notes,
        sent: Sequence[int] = (),
    ) -> None:
        self._start_state = state
        self._ends = {length - state.cursor for length in sent}
        self._length = history.length
        self._tail = history.since(state.cursor)
        self._dialect = dialect
        self._notes = notes
        seen = self._tail[max(0, state.epoch_start - state.cursor) :]
        self._upstream = (
            replayable_upstream(seen, dialect, target) if state.upstream is None else state.upstream
        )
        target = RenderTarget(target.binding, "drop") if state.plain else target
        self._target = target.served_by(self._upstream)
        self._reasoning = ReasoningFilter(dialect, self._target)
        self._choice = CompletionChooser(ledger, history, state, notes)
        self._projection = Projection(state, dialect, target.binding)
        self._attachments = Attachments(dialect, state.usage, state.refused)
        self._items = SentItems(state.usage)
        self._writes_natives = encoder.natives
        self._writer = encoder.writer(state.last_role)
        self._max_string = dialect.turns.max_string or sys.maxsize
        self._last_role: Role | None = state.last_role
        self._loop = state.loop
        self._reorders = dialect.turns.calls_last or dialect.reasoning.required != "no"
        self._always_reasons = dialect.reasoning.required == "every"
        self._separates_reasoning = (
            dialect.turns.alternation == "merge_same" and dialect.reasoning.must_be_first
        )
        self._ends_unthinking_loops = target.budgeted and dialect.reasoning.is_fixed_in_loop
        self._separates_user_messages = (
            dialect.turns.user_after_tool == "filler"
            or dialect.turns.alternation == "fill"
            or self._ends_unthinking_loops
        )
        self._tracks_loop = dialect.reasoning.is_fixed_in_loop
        self._result_role: Role = "user" if dialect.turns.result_carrier == "user_block" else "tool"

    def write_fragments(self) -> Iterator[list[bytes]]:
        """Yield the new bytes of the lane, as one list of pieces per slice.

        Afterwards, `end_state` returns the lane's new state.
        """
        self._choice.collect_late_results(self._tail)
        self._expect_images(0)
        said = self._write_as_text if self._start_state.plain else self._write_assistant_with_results
        fresh = self._start_state.epoch_start - self._start_state.cursor
        for at, message in enumerate(self._tail):
            if at in self._ends:
                self._end_transcript()
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
        self._end_transcript()
        yield self._writer.take_pieces()

    def _expect_images(self, start: int) -> None:
        """Begin the request that contains the new messages from index `start` on.

        The limits on image sizes depend on the number of images in these messages.
        """
        stop = min((end for end in self._ends if end > start), default=len(self._tail))
        self._attachments.expect_images(partial(_image_count, self._tail[start:stop], self._choice))

    def end_state(self) -> RenderState:
        """Return the lane's state after the render."""
        state = self._start_state
        calls, used, index = self._projection.new_state()
        missing, carried, late_count = self._choice.new_state(state.missing)
        return state._replace(
            cursor=self._length,
            calls=calls,
            used=used,
            index=index,
            tools=self._projection.with_names(state.tools),
            missing=missing,
            carried=carried,
            late_count=late_count,
            upstream=self._upstream,
            last_role=self._last_role,
            loop=self._loop,
            usage=self._items.with_sent_items(self._attachments.updated_usage()),
        )

    def _write_user(self, blocks: Iterable[Block]) -> None:
        """Write a user message with the supported blocks. Write nothing if no block is supported."""
        if left := self._supported_blocks(blocks, by_human=True):
            self._begin_message("user")
            self._write_blocks(left)

    # ---- assistant messages and the results of their calls

    def _write_assistant_with_results(self, message: Message, *, sealed: bool) -> None:
        parts = (message.blocks,) if self._dialect.turns.calls_together else split_calls(message.blocks)
        for blocks in parts:
            if made := self._write_answer(blocks, sealed=sealed):
                self._write_results(made)

    def _write_answer(self, original: Sequence[Block], *, sealed: bool) -> EmittedCalls:
        """Write an assistant message without its results, and return its calls."""
        dialect, kinds = self._dialect, set(map(type, original))
        blocks, thinks = original, Thinking in kinds
        if thinks and dialect.reasoning.id_once:
            original = drop_item_ids(original, without_ids=self._start_state.without_ids)
        if thinks:
            blocks = self._reasoning.filter_blocks(original, self._notes, sealed=sealed)
            thinks = Thinking in map(type, blocks)
        if ProviderBlock in kinds:
            may_have = self._target.binding if sealed and self._writes_natives else None
            blocks = filter_native(blocks, dialect, may_have, self._items, self._notes)
        left = self._supported_blocks(blocks, by_human=False)
        if thinks:
            left = self._allowed_reasoning(left)
        calls: EmittedCalls = []
        if ToolCall in kinds:
            calls = [
                (block, *self._projection.id_and_name(block)) for block in left if type(block) is ToolCall
            ]
        if thinks or (calls and self._reorders) or (left and self._always_reasons):
            left = self._order_blocks(original, left, calls)
        if left:
            self._begin_message("assistant", thinks=type(left[0]) is Thinking)
            self._write_blocks(left, iter(calls))
        return calls

    def _write_blocks(
        self, blocks: Iterable[Block], calls: Iterator[tuple[ToolCall, str, str]] = _NO_CALLS
    ) -> None:
        writer, notes = self._writer, self._notes
        for block in blocks:
            match block:
                case Text():
                    writer.write_text(block.json)
                case ToolCall():
                    call, emitted, name = next(calls)
                    notes.calls.append(call.id)
                    notes.emitted_calls.append(emitted)
                    writer.write_call(emitted, name, self._projection.with_native_keys(call))
                case Thinking():
                    writer.write_thinking(block)
                case ProviderBlock():
                    writer.write_native(wire_bytes(block))
                case Media():
                    writer.write_media(*self._attachments.with_title(block))
                case ToolResult() | Code():
                    raise AssertionError(
                        f"A {type(block).__name__} block reached the writer; render it as text first"
                    )

    def _write_results(self, calls: EmittedCalls) -> None:
        """Write a result for each call, in call order, followed by the media that results cannot contain."""
        self._begin_message(self._result_role, results=True)
        choice, writer, emitted = self._choice, self._writer, self._notes.emitted_results
        moved: list[Media] = []
        for call, call_id, name in calls:
            emitted.append(call_id)
            answer = choice.choose_answer(call)
            words, failed, attached = answer
            held: Sequence[TitledMedia] = ()
            if attached:
                words, held = self._place_media(answer, moved)
            writer.write_result(call_id, name, words, failed, held)
        if moved:
            self._begin_message("user")
            for number, media in enumerate(moved, 1):
                self._write_blocks((Text(f"[Attachment {number}:]"), media))
        if choice.some_are_late:
            for call, _, _ in calls:
                choice.add_late_result(call)

    def _place_media(self, answer: Answer, moved: list[Media]) -> tuple[Json, Sequence[TitledMedia]]:
        """Return a result's text and the media that stay in the result; append the other media to `moved`.

        The text mentions the moved media and contains a note for each omitted attachment.
        """
        dialect, attachments = self._dialect, self._attachments
        words, failed, held = answer
        kept: list[TitledMedia] = []
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
                said.append(attachments.omission_note(media))
        if is_blank(words):
            words = Json(b'""')
        if said:
            gap = b"" if words == b'""' else b"\\n"
            words = Json(words[:-1] + gap + quote("\n".join(said))[1:])
        return words, kept

    def _write_as_text(self, message: Message, *, sealed: bool) -> None:
        """Write a message, its calls and their results as plain text, after the provider refused their structure.

        Plain text breaks no rule about tools.
        """
        del sealed  # this epoch sends no reasoning
        self._notes.calls += [call.id for call in message.calls]
        self._write_answer([_call_as_text(block) for block in message.blocks], sealed=False)
        answers: list[Block] = []
        for call in message.calls:
            words, failed, media = self._choice.choose_answer(call)
            answers += (Text(f"[The tool {'failed' if failed else 'answered'}: {unquote(words)}]"), *media)
        self._write_user(answers)
        for call in message.calls:
            self._choice.add_late_result(call)

    # ---- supported content

    def _supported_blocks(self, blocks: Iterable[Block], *, by_human: bool) -> list[Block]:
        """Return the blocks that can be sent: no blank texts, code as fenced text, notes for unsupported media."""
        dialect, notes, longest = self._dialect, self._notes, self._max_string
        kept: list[Block] = []
        for block in blocks:
            if isinstance(block, Text):
                json = block.json
                if json[1] in MAYBE_BLANK and dialect.turns.drop_empty_text and is_blank(json):
                    notes.losses["empty"] += 1
                elif len(json) > longest:
                    kept += _split_text(block, longest, dialect)
                else:
                    kept.append(block)
            elif isinstance(block, (ToolCall, ToolResult)) or (
                not by_human and isinstance(block, (Thinking, ProviderBlock))
            ):
                kept.append(block)
            elif isinstance(block, Media):
                if by_human and self._attachments.admit(block, dialect.media.user_kinds):
                    kept.append(block)
                else:
                    notes.losses["media"] += 1
                    kept.append(Text(self._attachments.omission_note(block)))
            elif isinstance(block, Code):
                notes.losses["code"] += 1
                kept.append(Text(f"```{block.language}\n{block.source}\n```"))
            elif isinstance(block, Thinking):
                said = reasoning_as_text(block, self._target, notes)
                kept += (said,) if said else ()
            elif isinstance(block, ProviderBlock):
                kept += native_note(block, notes)
            else:
                assert_never(block)
        return kept

    def _allowed_reasoning(self, blocks: list[Block]) -> list[Block]:
        """Return the blocks without the reasoning that the dialect rejects.

        A dialect may reject reasoning that ends its message, that is alone in its message, or that was sent before.
        """
        rules, notes = self._dialect.reasoning, self._notes
        # reasoning must not be the last content of a message (OAR-03, ANT-52)
        while rules.must_be_followed and blocks and type(blocks[-1]) is Thinking:
            blocks.pop()
            notes.losses["thinking"] += 1
        if not rules.may_be_alone and blocks and {Thinking}.issuperset(map(type, blocks)):
            notes.losses["thinking"] += len(blocks)
            return []
        if rules.id_once:
            withheld = self._items.must_withhold
            said, blocks = blocks, [b for b in blocks if type(b) is not Thinking or not withheld(b)]
            if len(blocks) < len(said):
                notes.losses["thinking"] += len(said) - len(blocks)
        return blocks

    def _order_blocks(
        self, original: Sequence[Block], blocks: list[Block], calls: EmittedCalls
    ) -> list[Block]:
        """Return the blocks in the order that the dialect requires.

        Reasoning that the dialect requires is added. Reasoning that is bound to the preceding content is removed if
        that content is not sent as the model wrote it.
        """
        dialect, demands = self._dialect, self._dialect.reasoning.required != "no"
        if dialect.turns.calls_last:
            blocks = move_calls_last(blocks)
        # done before `drop_stale_reasoning`, because a placeholder also changes the prefix of later reasoning
        if demands:
            blocks = add_required_reasoning(blocks, dialect, self._notes)
        if dialect.reasoning.binding == "prefix":
            bound = drop_stale_reasoning(original, blocks, calls, self._notes)
            if demands and len(bound) < len(blocks):
                bound = add_required_reasoning(bound, dialect, self._notes)
            blocks = bound
        return blocks

    # ---- the order of roles, and fillers

    def _begin_message(self, role: Role, *, thinks: bool = False, results: bool = False) -> None:
        """Begin a message with the given role, after any filler that must precede the message.

        If the dialect merges messages of one role, the writer continues the open message. There is one exception: if
        native reasoning must come first in its message (rulebook ANT-39), a filler separates the reasoning from earlier
        assistant content.
        """
        turns, last = self._dialect.turns, self._last_role
        if last is None and role != "user" and role not in turns.first_roles:
            self._write_filler_message("user", "first", turns.filler_first)
        elif role == "user":
            if self._separates_user_messages:
                self._separate_user_message()
        elif role == "assistant" == last and (
            (self._separates_reasoning and thinks) or turns.alternation == "fill"
        ):
            self._write_filler_message("user", "last", turns.filler_last)
        if self._tracks_loop:
            self._loop = self._loop.after_message(role, self._last_role, thinks, results)
        self._writer.begin(role)
        self._last_role = role

    def _separate_user_message(self) -> None:
        """Write an assistant filler before the next user message, if the dialect requires one."""
        turns, last = self._dialect.turns, self._last_role
        behind_result = last == "tool" and turns.user_after_tool == "filler"
        if (
            behind_result
            or (last == "user" and turns.alternation == "fill")
            or self._is_in_loop_without_thinking()
        ):
            self._write_filler_message("assistant", "between", turns.filler_between)

    def _is_in_loop_without_thinking(self) -> bool:
        """Return True in a tool loop that began without thinking, if the request requires thinking (ANT-40).

        A request could turn thinking off until the loop ends. But that setting comes before the messages, so the prompt
        cache would lose all messages twice. An assistant filler ends the loop instead.
        """
        return (
            self._ends_unthinking_loops
            and self._loop.answered
            and not self._loop.mixed
            and self._loop.thinks is False
        )

    def _end_transcript(self) -> None:
        """Write a user filler if the dialect does not allow a transcript to end with the last message's role."""
        if self._last_role not in self._dialect.turns.last_roles or self._is_in_loop_without_thinking():
            self._write_filler_message("user", "last", self._dialect.turns.filler_last)

    def _write_filler_message(self, role: Role, kind: Filler, text: str) -> None:
        self._begin_message(role)
        if role == "assistant" and self._always_reasons:
            self._writer.write_thinking(placeholder_reasoning(self._dialect.reasoning.placeholder))
        self._writer.write_text(quote(text))
        self._notes.fillers[kind] += 1


def _call_as_text(block: Block) -> Block:
    if type(block) is not ToolCall:
        return block
    return Text(f"[Called the tool {block.name} with {block.json.decode()}]")


def _split_text(block: Text, max_length: int, dialect: Dialect) -> list[Text]:
    """Split a text into texts of at most `max_length` characters, the dialect's maximum (rulebook OAC-14)."""
    text = block.text
    pieces = (text[start : start + max_length] for start in range(0, len(text), max_length))
    return [Text(piece) for piece in pieces if piece.strip() or not dialect.turns.drop_empty_text]
