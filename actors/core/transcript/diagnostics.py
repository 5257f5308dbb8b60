"""What a render did and why, and a refusal's evidence. The report of messages that came in is
`actors.core.values.intake`.

`Notes` is filled meanwhile; a `Report` is what is handed out. Every decision that changes what a provider sees leaves a
line here, with canonical ids: what was dropped as a duplicate, what was synthesized, which faults were met.
"""

from collections import defaultdict
from functools import partial
from typing import Literal, TypeAlias

from msgspec import Struct, field

from actors.core.log.events import Gap
from actors.core.values.identity import Binding, CallId
from actors.core.values.intake import Dedupe
from actors.errors import Fault

Filler: TypeAlias = Literal["first", "last", "between", "thinking"]
"""A message before all others, behind the model's or between two users', or reasoning in front of a call."""


class Report(Struct, frozen=True):
    """What one render did.

    Args:
        calls: Canonical ids of the calls rendered, in order.
        emitted_calls, emitted_results: Ids as the provider sees them, in order.
        dedupe: Result blocks not emitted as results, as (canonical id, reason).
        synthetic: Synthetic results, as (canonical id, reason code).
        losses: What the target was not shown, as (kind, count): `thinking`, `media`, `code`, `native`, `empty`,
            `shortened`.
        fillers: What nobody said and the protocol demands, as (kind, count).
        faults: What the judge refused, or in a `Refusal` the provider. Empty, or our bug.
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
    """A transcript that was refused for its structure: our bug, with its evidence.

    Args:
        session, binding: Whose it was, and whom it was for.
        by: `judge`, before it was sent, or `provider`.
        why: In the words of who refused it.
        body: The request body.
        report: What was rendered for that request, and as its `faults` what was refused: the fault class, the rule and
            the canonical ids of the calls that it names. The class is `unclassified` where nobody knew the words.
    """

    session: str
    binding: Binding
    by: Literal["judge", "provider"]
    why: str
    body: bytes
    report: Report


class Notes(Struct):
    """The report while it is being written."""

    calls: list[CallId] = field(default_factory=list)
    emitted_calls: list[str] = field(default_factory=list)
    emitted_results: list[str] = field(default_factory=list)
    dedupe: list[tuple[CallId, Dedupe]] = field(default_factory=list)
    synthetic: list[tuple[CallId, Gap]] = field(default_factory=list)
    losses: defaultdict[str, int] = field(default_factory=partial(defaultdict, int))
    fillers: defaultdict[Filler, int] = field(default_factory=partial(defaultdict, int))

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
