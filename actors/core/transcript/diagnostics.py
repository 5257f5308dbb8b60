"""Report the decisions of a render, and hold the evidence of a refused request.

The renderer fills `Notes`; `Report` is the public result. Every decision that changes the transcript adds an entry
with canonical ids: a dropped duplicate, a synthetic result, a fault. The report of imported messages is
`actors.core.values.intake`.
"""

from collections import defaultdict
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

from actors.core.log.call_events import Gap
from actors.core.values.identity import Binding, CallId
from actors.core.values.intake import Dedupe
from actors.errors import Fault

Filler: TypeAlias = Literal["first", "last", "between", "thinking"]
"""A message at the start, after the last assistant message or between two user messages; or reasoning before a call."""


class Report(Struct, frozen=True):
    """The decisions of one render.

    Args:
        dialect: The dialect's name.
        calls: Canonical ids of the rendered calls, in order.
        emitted_calls, emitted_results: The ids as the provider sees them, in order.
        dedupe: Results not emitted as results, as (canonical id, reason).
        synthetic: Synthetic results, as (canonical id, reason code).
        losses: Content that the transcript omits or replaces, as (kind, count): `thinking`, `media`, `code`, `native`,
            `empty`, `shortened`.
        fillers: Text and messages that the dialect requires and no participant wrote, as (kind, count).
        faults: Faults found by the judge, or in a `Refusal` by the provider. Any fault is our bug.
    """

    dialect: str
    calls: tuple[CallId, ...] = ()
    emitted_calls: tuple[str, ...] = ()
    emitted_results: tuple[str, ...] = ()
    dedupe: tuple[tuple[CallId, Dedupe], ...] = ()
    synthetic: tuple[tuple[CallId, Gap], ...] = ()
    losses: tuple[tuple[str, int], ...] = ()
    fillers: tuple[tuple[Filler, int], ...] = ()
    faults: tuple[Fault, ...] = ()


class Refusal(Struct, frozen=True):
    """A transcript refused for its structure, with its evidence: our bug.

    Args:
        session, binding: The session, and the binding of the request.
        by: `judge` before sending, or `provider`.
        why: The message of the judge or the provider.
        body: The request body.
        report: The render's report, with the refusal as its `faults`: fault class, rule and the canonical ids of the
            calls that the message names. The class is `unclassified` if the message is unknown.
    """

    session: str
    binding: Binding
    by: Literal["judge", "provider"]
    why: str
    body: bytes
    report: Report


def _zeros() -> defaultdict[Any, int]:  # Any: a loss, or a kind of filler
    return defaultdict(int)


class Notes(Struct):
    """A report under construction."""

    calls: list[CallId] = []
    emitted_calls: list[str] = []
    emitted_results: list[str] = []
    dedupe: list[tuple[CallId, Dedupe]] = []
    synthetic: list[tuple[CallId, Gap]] = []
    losses: defaultdict[str, int] = field(default_factory=_zeros)
    fillers: defaultdict[Filler, int] = field(default_factory=_zeros)

    def report(self, dialect: str, faults: tuple[Fault, ...] = ()) -> Report:
        return Report(
            dialect,
            tuple(self.calls),
            tuple(self.emitted_calls),
            tuple(self.emitted_results),
            tuple(self.dedupe),
            tuple(self.synthetic),
            tuple(self.losses.items()),
            tuple(self.fillers.items()),
            faults,
        )
