"""Lanes: one session's rendered transcript for one binding, append-only within an epoch.

A lane is where its rendering stands, the encoded text so far, and what the judge knows of it. A request
renders, encodes and judges only the messages past the cursor, so it costs what is new. The text is kept in
immutable pieces (`actors.core.data.segments`).

A lane is a cache of a fold over the log: dropped, it is rebuilt to the same bytes (`actors.core.session.state`).
"""

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from actors.core.check import CheckState, canonical, extend, finish, start
from actors.core.data.segments import Segments
from actors.core.data.slices import Slices, finished
from actors.core.dialects.dialect import Dialect
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.log.events import EpochBegan, Reason
from actors.core.render import RenderTarget, RenderWalk
from actors.core.transcript.diagnostics import Notes, Report
from actors.core.transcript.transcript import Encoder, RenderState, TranscriptFacts
from actors.core.values.identity import CallId
from actors.errors import CanonicalFault, Fault


class Lane(Struct, frozen=True, gc=False):
    """A lane at one point of its life: where its rendering has got to, and what the judge knows.

    `segments` are the encoded messages, without what closes the last one.
    """

    state: RenderState
    segments: Segments
    judge: CheckState

    @property
    def size(self) -> int:
        """How many bytes its text has."""
        return self.segments.size


class Rendered(Struct, frozen=True, gc=False):
    """What a render gives: the lane's next version, to be adopted only when the request is sent, and what was done.

    `closing` closes the last message. `before` counts the lane's bytes that had been sent before, which stay as they
    are. `system` is the system prompt that came with the history. `begins` is the epoch that begins with this request,
    if one does: to be written ahead of it.
    """

    lane: Lane
    report: Report
    dialect: Dialect
    closing: bytes
    before: int
    system: str | None = None
    begins: EpochBegan | None = None

    @property
    def segments(self) -> Segments:
        """The whole lane's text with its last message closed: what a request carries."""
        return self.lane.segments.ended(self.closing) if self.closing else self.lane.segments

    @property
    def transcript(self) -> bytes:
        """The messages the provider is shown, as the JSON array of a request."""
        return b"[%b]" % b"".join(self.segments)

    @property
    def facts(self) -> TranscriptFacts:
        """What the request around the transcript must know of it."""
        return TranscriptFacts(self.lane.state.tools, self.before)


def empty(dialect: Dialect, epoch_start: int = 0) -> Lane:
    """Return a lane in which nothing has been sent.

    The first `epoch_start` messages were imported: provider state in them was bound to a prefix never sent here.
    """
    return Lane(RenderState(epoch_start=epoch_start), Segments(), start(dialect))


def begun(lane: Lane, event: EpochBegan, dialect: Dialect, epoch_start: int) -> Lane:
    """Return the lane at the beginning of an epoch: nothing sent, every id kept.

    Provider state in the first `epoch_start` messages, which is all there are, was bound to the old prefix. Reasoning
    in the clear is bound to none, and a provider that remembers it wants it back (DSK-05, KIM-03). A note in place
    of an attachment changes the prefix alone.
    """
    old = lane.state
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


def advanced(
    lane: Lane, history: History, ledger: Ledger, dialect: Dialect, encoder: Encoder, target: RenderTarget
) -> Rendered:
    """Render, encode and judge what `lane` has not seen of `history`.

    The outcome depends on the arguments alone. Faults the judge finds are in the report, not raised.

    Raises:
        CanonicalFault: The lane is of another dialect, or has rendered more than the history holds: a history
            that was shortened needs a new epoch (`begun`).
    """
    return finished(advancing(lane, history, ledger, dialect, encoder, target))


def advancing(
    lane: Lane, history: History, ledger: Ledger, dialect: Dialect, encoder: Encoder, target: RenderTarget
) -> Slices[Rendered]:
    """Do what `advanced` does, slice by slice; raise what it raises."""
    other, sent = lane.judge.dialect, lane.state.cursor
    if other.family != dialect.family:
        raise CanonicalFault(f"This lane is of dialect {other.name!r}, not {dialect.name!r}; begin one")
    if sent > history.length:
        held = f"{sent} messages of a history of {history.length}"
        raise CanonicalFault(f"This lane has rendered {held}; begin an epoch")
    notes = Notes()
    walk = RenderWalk(lane.state, history, ledger, dialect, encoder, target, notes)
    anew = lane.state.epoch > 0 and not lane.size  # what opens an epoch again is read by every rule
    after, faults = yield from _writing(lane, walk, whole=anew)
    faults += finish(after.judge, manual_thinking=target.budgeted)
    faults = canonical(
        faults,
        after.state.used.get,
        lambda: [call.id for message in history.since(0) for call in message.calls],
    )
    report = notes.report(dialect.name, tuple(faults))
    return Rendered(after, report, dialect, encoder.closing, lane.size, history.system)


def replaying(
    lane: Lane,
    history: History,
    ledger: Ledger,
    dialect: Dialect,
    encoder: Encoder,
    target: RenderTarget,
    lengths: Sequence[int],
) -> Slices[Lane]:
    """Return the lane as requests that were sent have left it, the last with all of `history`, slice by slice.

    It is the same, byte for byte, as if each had been rendered when the history had its length, provided that the
    ledger answers calls as it did then.
    """
    walk = RenderWalk(lane.state, history, ledger, dialect, encoder, target, Notes(), lengths)
    return (yield from _writing(lane, walk, whole=False))[0]


def _writing(lane: Lane, walk: RenderWalk, *, whole: bool) -> Slices[tuple[Lane, list[Fault]]]:
    """Return the lane with what a walk writes behind it, and what the judge says of that."""
    segments, judge = lane.segments, lane.judge
    faults: list[Fault] = []
    for number, fragment in enumerate(walk.fragments()):
        if number:
            yield
        judge, found = extend(judge, *fragment, whole=whole)
        faults += found
        segments = segments.plus(fragment)
    return Lane(walk.state(), segments, judge), faults


def blamed(rendered: Rendered, why: str, rule: str | None) -> Report:
    """Return the report of a request that its provider refused, with what it said as the one fault.

    The calls that its words name have their canonical ids; the class is that of the rule, if the words are known.
    """
    from actors.core.rulebook import FAULTS, RULES  # few requests are refused

    used = rendered.lane.state.used
    named = [used.get(word) or used.get(word.rstrip(".:")) for word in _NAMES.findall(why)]
    known = RULES.get(rule or "")
    kind = FAULTS.get(known.fault_class, Fault) if known else Fault
    fault = kind(why, call_ids=tuple(dict.fromkeys(filter(None, named))), rule=rule)
    return replace(rendered.report, faults=(fault,))


_NAMES = re.compile(r"[\w.:-]+")  # what an id on the wire may be made of


def seals(rendered: Rendered, ledger: Ledger) -> tuple[tuple[CallId, Reason], ...]:
    """Return the synthetic results that this request sends for the first time."""
    return tuple(
        (call_id, "outcome_unknown" if reason == "running" else reason)
        for call_id, reason in rendered.report.synthetic
        if (known := ledger.get(call_id)) is None or known.sealed is None
    )
