"""Define lanes. A lane is one session's rendered transcript for one binding; within an epoch, it only grows.

A lane consists of its render state, the encoded text so far, and the check state. A request renders, encodes and checks
only the messages after the cursor, so its cost depends on the new messages. The text is stored as immutable pieces
(`Segments`). A long computation runs in slices, so that an event loop can run other tasks in between.

A lane is a cache that is computed from the log: if it was dropped, it is rebuilt with the same bytes
(`actors.core.session.state`).
"""

import re
from collections.abc import Generator, Sequence
from typing import TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from actors.core.check import CheckState, check_fragment, finish_check, initial_state, with_canonical_ids
from actors.core.data.persistent import Segments
from actors.core.dialects.dialect import Dialect
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.log.call_events import Reason
from actors.core.log.events import EpochBegan
from actors.core.policy.routing import SkippedMember
from actors.core.render import RenderTarget, RenderWalk
from actors.core.transcript.diagnostics import Notes, Report
from actors.core.transcript.transcript import Encoder, RenderState, TranscriptFacts
from actors.core.values.identity import Binding, CallId
from actors.errors import CanonicalFault, Fault

T = TypeVar("T")
Slices: TypeAlias = Generator[None, None, T]


def run_slices(slices: Slices[T]) -> T:
    """Run all slices of a computation and return its result."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            outcome: T = end.value
            return outcome


class Lane(Struct, frozen=True, gc=False):
    """One version of a session's transcript for a binding: its render state, check state and encoded messages.

    The encoded messages do not include the bytes that close the last message.
    """

    _state: RenderState
    _segments: Segments
    _check_state: CheckState

    @property
    def size(self) -> int:
        """The size of the lane's text, in bytes."""
        return self._segments.size


class Rendered(Struct, frozen=True, gc=False):
    """The result of a render, with the lane's next version. That version is used only if the request is sent.

    Args:
        lane: The lane's next version.
        report: The decisions of the render.
        dialect: The dialect of the transcript.
        system: The system prompt that was imported with the history; None if no system prompt was imported.
        new_epoch: The epoch that begins with this request, logged before the request; None if no epoch begins.
    """

    lane: Lane
    report: Report
    dialect: Dialect
    _closing: bytes  # the bytes that close the last message
    _before: int  # the number of bytes of the lane that were already sent
    system: str | None = None
    new_epoch: EpochBegan | None = None

    @property
    def _segments(self) -> Segments:
        """The lane's complete text, with its last message closed as in a request."""
        return self.lane._segments.append_unjoined(self._closing) if self._closing else self.lane._segments

    @property
    def transcript(self) -> bytes:
        """The messages as a JSON array, as the request contains them."""
        return b"[%b]" % b"".join(self._segments)

    @property
    def _facts(self) -> TranscriptFacts:
        """The properties of the transcript that the other fields of the request depend on."""
        return TranscriptFacts(self.lane._state.tools, self._before)


def empty_lane(dialect: Dialect, epoch_start: int = 0) -> Lane:
    """Return a lane in which nothing has been sent.

    The first `epoch_start` messages were imported. Their reasoning and provider-specific parts are not replayed,
    because they are bound to a prefix that this lane never sent.
    """
    return Lane(RenderState(epoch_start=epoch_start), Segments(), initial_state(dialect))


def begin_epoch(lane: Lane, event: EpochBegan, dialect: Dialect, epoch_start: int) -> Lane:
    """Return the lane at the beginning of an epoch: it is empty again, but all calls keep their ids.

    `epoch_start` is the number of messages in the history. The reasoning and the provider-specific parts of these
    messages were bound to the old prefix and are not replayed, with two exceptions. Plain-text reasoning is replayed,
    because it is not bound and some providers require it (DSK-05, KIM-03). If a refused attachment caused the epoch,
    reasoning and provider-specific parts are replayed unless the dialect binds reasoning to the prefix.
    """
    old = lane._state
    if event.reason == "media" and dialect.reasoning.binding != "prefix":
        epoch_start = min(epoch_start, old.epoch_start)
    if dialect.reasoning.carrier == "reasoning_content" and event.reason != "thinking":
        epoch_start = min(epoch_start, old.epoch_start)
    state = RenderState(
        event.epoch,
        epoch_start,
        event.plain,
        calls=old.calls,
        used=old.used,
        index=old.index,
        without_ids=old.without_ids or event.reason == "thinking",
        refused=old.refused.union(event.media),
    )
    return Lane(state, Segments(), initial_state(dialect))


def advance(
    lane: Lane, history: History, ledger: Ledger, dialect: Dialect, encoder: Encoder, target: RenderTarget
) -> Rendered:
    """Render, encode and check the messages of `history` that `lane` has not rendered yet.

    The result depends only on the arguments. Faults that the check finds are reported in the result, not raised.

    Raises:
        CanonicalFault: The lane belongs to another dialect family; or it has rendered more messages than the history
            has, because the history was shortened and `begin_epoch` was not called.
    """
    return run_slices(advance_in_slices(lane, history, ledger, dialect, encoder, target))


def advance_in_slices(
    lane: Lane, history: History, ledger: Ledger, dialect: Dialect, encoder: Encoder, target: RenderTarget
) -> Slices[Rendered]:
    """Do the same as `advance`, but in slices, so that the event loop can run other tasks in between."""
    other, sent = lane._check_state.dialect, lane._state.cursor
    if other.family != dialect.family:
        raise CanonicalFault(
            f"This lane has dialect {other.name!r}, not {dialect.name!r}; begin an epoch or use another lane"
        )
    if sent > history.length:
        lengths = f"{sent} messages, but the history was shortened to {history.length}"
        raise CanonicalFault(f"This lane has rendered {lengths}; begin an epoch")
    notes = Notes()
    walk = RenderWalk(lane._state, history, ledger, dialect, encoder, target, notes)
    # An epoch after the first may follow a refusal, so its first request is checked with the strict parser.
    starts_later_epoch = lane._state.epoch > 0 and not lane.size
    after, faults = yield from _write_in_slices(lane, walk, strict=starts_later_epoch)
    faults += finish_check(after._check_state, manual_thinking=target.budgeted)
    faults = with_canonical_ids(
        faults,
        after._state.used.get,
        lambda: [call.id for message in history.since(0) for call in message.calls],
    )
    report = notes.to_report(dialect.name, tuple(faults))
    return Rendered(after, report, dialect, encoder.closing, lane.size, history.system)


def replay_in_slices(
    lane: Lane,
    history: History,
    ledger: Ledger,
    dialect: Dialect,
    encoder: Encoder,
    target: RenderTarget,
    lengths: Sequence[int],
) -> Slices[Lane]:
    """Return a lane with the messages of a series of sent requests, computed in slices.

    `lengths` are the history lengths of the requests. The bytes equal those of separate renders at each length,
    provided that the ledger has the same completions as when the requests were sent.
    """
    walk = RenderWalk(lane._state, history, ledger, dialect, encoder, target, Notes(), lengths)
    return (yield from _write_in_slices(lane, walk, strict=False))[0]


def _write_in_slices(lane: Lane, walk: RenderWalk, *, strict: bool) -> Slices[tuple[Lane, list[Fault]]]:
    """Return the lane with the output of `walk` appended, and the faults that the check found in this output."""
    segments, check_state = lane._segments, lane._check_state
    faults: list[Fault] = []
    for number, fragment in enumerate(walk.write_fragments()):
        if number:
            yield
        check_state, found = check_fragment(check_state, *fragment, strict=strict)
        faults += found
        segments = segments.append(fragment)
    return Lane(walk.end_state(), segments, check_state), faults


def refusal_report(rendered: Rendered, why: str, rule: str | None) -> Report:
    """Return the report of a request that its provider refused, with the message `why` as the only fault.

    The fault contains the canonical ids of the calls whose wire ids occur in the message. It has the fault class of
    `rule`, or is a plain `Fault` if the rule is unknown.
    """
    from actors.core.rulebook import FAULTS, RULES  # imported here, because refusals are rare

    used = rendered.lane._state.used
    named = [used.get(word) or used.get(word.rstrip(".:")) for word in _NAMES.findall(why)]
    known = RULES.get(rule or "")
    kind = FAULTS.get(known.fault_class, Fault) if known else Fault
    fault = kind(why, call_ids=tuple(dict.fromkeys(filter(None, named))), rule=rule)
    return replace(rendered.report, faults=(fault,))


_NAMES = re.compile(r"[\w.:-]+")  # matches call ids on the wire


def results_to_seal(rendered: Rendered, ledger: Ledger) -> tuple[tuple[CallId, Reason], ...]:
    """Return (call id, reason) for each synthetic result that this request is the first to send."""
    return tuple(
        (call_id, "outcome_unknown" if reason == "running" else reason)
        for call_id, reason in rendered.report.synthetic
        if (known := ledger.get(call_id)) is None or known.sealed is None
    )


class Preview(Struct, frozen=True):
    """The request that a target would receive now.

    Args:
        binding: The binding of the request.
        body: The complete request body.
        report: The decisions of the render.
        losses: Counts of omitted content by kind (`thinking`, `media`, `code`, `native`, `empty`), and of unsupported
            settings by name (`temperature`, `tool_choice`, `schema:NAME`, ...).
        kept: Number of bytes of the transcript that were sent before and stay unchanged.
        assumed: Settings that the target requires and the caller did not set, such as `max_tokens 8192`. Fillers are in
            `report`.
        compacts: True if an ask would first compact the history, because the history nearly fills the target's window.
        exhausted_budget: The exhausted budget that would prevent the request; empty if no budget is exhausted.
        skipped: Members of the target's pool that would be skipped, because they support none of the session's tools.
        window: Maximum number of tokens of the request and its answer together; None if unknown.
    """

    binding: Binding
    body: bytes
    report: Report
    losses: dict[str, int]
    kept: int
    assumed: tuple[str, ...] = ()
    compacts: bool = False
    exhausted_budget: str = ""
    skipped: tuple[SkippedMember, ...] = ()
    window: int | None = None

    @property
    def size(self) -> int:
        """The size of the body in bytes."""
        return len(self.body)
