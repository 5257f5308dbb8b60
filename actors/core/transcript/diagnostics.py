"""Report the decisions of a render, and keep the evidence of a refused request.

The renderer collects its decisions in `Notes`; `Report` is the public result. Every decision that changes the
transcript adds an entry with canonical ids: a dropped duplicate, a synthetic result, a fault. The report of imported
messages is defined in `actors.core.values.intake`.
"""

from collections import defaultdict
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

from actors.core.log.call_events import MissingReason
from actors.core.values.identity import Binding, CallId
from actors.core.values.intake import Dedupe
from actors.errors import Fault

Filler: TypeAlias = Literal["first", "last", "between", "thinking"]
"""The position of added content: a message at the start, after the last assistant message (`last`) or between two
messages of one role, or placeholder reasoning before a tool call (`thinking`)."""


class Report(Struct, frozen=True):
    """The decisions of one render. They explain to users what a transcript shows and why.

    Args:
        dialect: The dialect's name.
        calls: Canonical ids of the rendered calls, in order.
        emitted_calls, emitted_results: The ids that the provider sees for the calls and for the results, in order.
        dedupe: Results that were not emitted as results, as (canonical id, reason).
        synthetic: Synthetic results, as (canonical id, reason code).
        losses: Content that the transcript omits or replaces, as (kind, count): `thinking`, `media`, `code`, `native`,
            `empty`, `shortened`.
        fillers: Text and messages that the dialect requires and no participant wrote, as (kind, count).
        faults: Faults found by the check before sending, or reported by the provider in a `Refusal`. Every fault is a
            bug of this library.
    """

    dialect: str
    calls: tuple[CallId, ...] = ()
    emitted_calls: tuple[str, ...] = ()
    emitted_results: tuple[str, ...] = ()
    dedupe: tuple[tuple[CallId, Dedupe], ...] = ()
    synthetic: tuple[tuple[CallId, MissingReason], ...] = ()
    losses: tuple[tuple[str, int], ...] = ()
    fillers: tuple[tuple[Filler, int], ...] = ()
    faults: tuple[Fault, ...] = ()


class Refusal(Struct, frozen=True):
    """A transcript that was refused for its structure, with the evidence. Every refusal is a bug of this library.

    Args:
        session, binding: The session, and the binding of the request.
        by: `judge` if the check before sending refused the request, or `provider`.
        reason: The error message.
        body: The request body.
        report: The report of the render. Its `faults` describe the refusal by fault class, rule, and canonical ids of
            the calls that the error message names. The class is `unclassified` if no rule explains the error message.
    """

    session: str
    binding: Binding
    by: Literal["judge", "provider"]
    reason: str
    body: bytes
    report: Report


def _zero_counts() -> defaultdict[Any, int]:  # Any: two fields share this factory, and their key types differ
    return defaultdict(int)


class Notes(Struct):
    """The report of a render in progress."""

    calls: list[CallId] = []
    emitted_calls: list[str] = []
    emitted_results: list[str] = []
    dedupe: list[tuple[CallId, Dedupe]] = []
    synthetic: list[tuple[CallId, MissingReason]] = []
    losses: defaultdict[str, int] = field(default_factory=_zero_counts)
    fillers: defaultdict[Filler, int] = field(default_factory=_zero_counts)

    def to_report(self, dialect: str, faults: tuple[Fault, ...] = ()) -> Report:
        """Return the collected decisions as a frozen report."""
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
