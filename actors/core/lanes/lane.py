"""Define lanes: one session's rendered transcript for one binding, append-only within an epoch.

A lane consists of the state of its rendering, the encoded text so far, and the judge's state. A request renders,
encodes and judges only the messages after the cursor, so its cost depends on the new messages. The text is stored as
immutable pieces (`actors.core.data.segments`).

A lane is a cache of a fold over the log: after it is dropped, it is rebuilt to the same bytes
(`actors.core.session.state`).
"""

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from actors.core.check import CheckState, canonical, extend, finish, start
from actors.core.data.segments import Segments
from actors.core.data.slices import Slices, run_slices
from actors.core.dialects.dialect import Dialect
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.log.call_events import Reason
from actors.core.log.events import EpochBegan
from actors.core.render import RenderTarget, RenderWalk
from actors.core.transcript.diagnostics import Notes, Report
from actors.core.transcript.transcript import Encoder, RenderState, TranscriptFacts
from actors.core.values.identity import CallId
from actors.errors import CanonicalFault, Fault


class Lane(Struct, frozen=True, gc=False):
    """One version of a lane: the states of rendering and judge, and the encoded messages.

    `_segments` lacks the bytes that close the last message.
    """

    _state: RenderState
    _segments: Segments
    _judge: CheckState

    @property
    def size(self) -> int:
        """Bytes of the lane's text."""
        return self._segments.size


class Rendered(Struct, frozen=True, gc=False):
    """The result of a render: the lane's next version, to be adopted only when the request is sent, and a report.

    Args:
        lane: The lane's next version.
        report: The decisions of the render.
        dialect: The dialect of the transcript.
        system: The system prompt imported with the history, if any.
        begins: The epoch that begins with this request, if any; logged before the request.
    """

    lane: Lane
    report: Report
    dialect: Dialect
    _closing: bytes  # closes the last message
    _before: int  # bytes of the lane that were sent earlier and stay unchanged
    system: str | None = None
    begins: EpochBegan | None = None

    @property
    def _segments(self) -> Segments:
        """The lane's complete text with its last message closed, as a request contains it."""
        return self.lane._segments.append_unjoined(self._closing) if self._closing else self.lane._segments

    @property
    def transcript(self) -> bytes:
        """The messages as the JSON array of a request."""
        return b"[%b]" % b"".join(self._segments)

    @property
    def _facts(self) -> TranscriptFacts:
        """The properties of the transcript that the rest of the request depends on."""
        return TranscriptFacts(self.lane._state.tools, self._before)


def empty_lane(dialect: Dialect, epoch_start: int = 0) -> Lane:
    """Return a lane in which nothing has been sent.

    The first `epoch_start` messages were imported, so their provider state was bound to a prefix that this lane never
    sent.
    """
    return Lane(RenderState(epoch_start=epoch_start), Segments(), start(dialect))


def begin_epoch(lane: Lane, event: EpochBegan, dialect: Dialect, epoch_start: int) -> Lane:
    """Return the lane at the beginning of an epoch: nothing sent, all ids kept.

    `epoch_start` is the length of the history. Provider state in those messages was bound to the old prefix and is not
    replayed, with two exceptions: plain-text reasoning is not bound, and some providers require it (DSK-05, KIM-03);
    and after a refused attachment, only dialects that bind reasoning to the prefix lose it.
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
    return Lane(state, Segments(), start(dialect))


def advance(
    lane: Lane, history: History, ledger: Ledger, dialect: Dialect, encoder: Encoder, target: RenderTarget
) -> Rendered:
    """Render, encode and judge the messages of `history` that `lane` has not rendered yet.

    The result depends only on the arguments. Faults found by the judge are in the report and are not raised.

    Raises:
        CanonicalFault: The lane belongs to another dialect, or has rendered more messages than the history has: a
            shortened history needs a new epoch (`begin_epoch`).
    """
    return run_slices(advance_in_slices(lane, history, ledger, dialect, encoder, target))


def advance_in_slices(
    lane: Lane, history: History, ledger: Ledger, dialect: Dialect, encoder: Encoder, target: RenderTarget
) -> Slices[Rendered]:
    """Do the same as `advance` in slices."""
    other, sent = lane._judge.dialect, lane._state.cursor
    if other.family != dialect.family:
        raise CanonicalFault(
            f"This lane has dialect {other.name!r}, not {dialect.name!r}; begin an epoch or another lane"
        )
    if sent > history.length:
        held = f"{sent} messages of a history of {history.length}"
        raise CanonicalFault(f"This lane has rendered {held}; begin an epoch")
    notes = Notes()
    walk = RenderWalk(lane._state, history, ledger, dialect, encoder, target, notes)
    anew = lane._state.epoch > 0 and not lane.size  # the start of a later epoch is checked against every rule
    after, faults = yield from _write_in_slices(lane, walk, whole=anew)
    faults += finish(after._judge, manual_thinking=target.budgeted)
    faults = canonical(
        faults,
        after._state.used.get,
        lambda: [call.id for message in history.since(0) for call in message.calls],
    )
    report = notes.report(dialect.name, tuple(faults))
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
    """Return the lane as sent requests have left it, in slices; `lengths` are their history lengths.

    The bytes equal those of separate renders at each length, provided that the ledger answers calls as it did then.
    """
    walk = RenderWalk(lane._state, history, ledger, dialect, encoder, target, Notes(), lengths)
    return (yield from _write_in_slices(lane, walk, whole=False))[0]


def _write_in_slices(lane: Lane, walk: RenderWalk, *, whole: bool) -> Slices[tuple[Lane, list[Fault]]]:
    """Return the lane with the walk's output appended, and the judge's faults in it."""
    segments, judge = lane._segments, lane._judge
    faults: list[Fault] = []
    for number, fragment in enumerate(walk.fragments()):
        if number:
            yield
        judge, found = extend(judge, *fragment, whole=whole)
        faults += found
        segments = segments.append(fragment)
    return Lane(walk.state(), segments, judge), faults


def refusal_report(rendered: Rendered, why: str, rule: str | None) -> Report:
    """Return the report of a request that its provider refused, with `why` as the only fault.

    The fault names the calls whose ids occur in the message, by canonical id. Its class is that of `rule`, if known.
    """
    from actors.core.rulebook import FAULTS, RULES  # a lazy import: refusals are rare

    used = rendered.lane._state.used
    named = [used.get(word) or used.get(word.rstrip(".:")) for word in _NAMES.findall(why)]
    known = RULES.get(rule or "")
    kind = FAULTS.get(known.fault_class, Fault) if known else Fault
    fault = kind(why, call_ids=tuple(dict.fromkeys(filter(None, named))), rule=rule)
    return replace(rendered.report, faults=(fault,))


_NAMES = re.compile(r"[\w.:-]+")  # the characters of wire ids


def seals(rendered: Rendered, ledger: Ledger) -> tuple[tuple[CallId, Reason], ...]:
    """Return the synthetic results that this request carries for the first time."""
    return tuple(
        (call_id, "outcome_unknown" if reason == "running" else reason)
        for call_id, reason in rendered.report.synthetic
        if (known := ledger.get(call_id)) is None or known.sealed is None
    )
