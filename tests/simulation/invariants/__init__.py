"""Check the invariants of single features against the logs and the request bodies.

Each feature has a module with a class that receives the events and bodies that it needs. The uses of each feature are
counted, so that a run without a feature is visible.
"""

from collections.abc import Collection, Mapping
from typing import Protocol

from actors.core.stream_events.ask_events import AskResult
from actors.testing.simulation.plan import FeatureLookup
from tests.simulation.invariants.answers import AnswerForms
from tests.simulation.invariants.arguments import ToolArguments
from tests.simulation.invariants.below import EndedSubagents
from tests.simulation.invariants.budgets import SessionBudgets
from tests.simulation.invariants.configured import ConfiguredRequests
from tests.simulation.invariants.content import AnswerContent
from tests.simulation.invariants.handing_over import HandoverTurns
from tests.simulation.invariants.order import ResourceWriters
from tests.simulation.invariants.parts import OrderedParts
from tests.simulation.invariants.program import ProgramCalls
from tests.simulation.invariants.result_media import ResultMedia
from tests.simulation.invariants.settings import AskLimits
from tests.simulation.invariants.shared import TenantBudget
from tests.simulation.invariants.too_long import TooLongRequests
from tests.simulation.witness import Witness


class Invariant(Protocol):
    """The invariants of one feature."""

    def request(self, session: str, ask: str, body: bytes) -> None:
        """Check a request body before a server receives it."""


class FeatureInvariants:
    """The invariants of all features, which subscribe to the witness of a run.

    Args:
        witness: The witness of the run.
        members: The backends of each target.
        own: Names of the user's tools.
        wish_of: Returns the requirements of an ask besides an answer.
    """

    def __init__(
        self,
        witness: Witness,
        members: Mapping[str, frozenset[str]],
        own: Collection[str],
        feature_of: FeatureLookup,
    ) -> None:
        self.handing = HandoverTurns(witness, members)
        witness.is_handing = self.handing.is_handing
        self.configured = ConfiguredRequests(witness, own, self.handing.is_handing)
        self.below = EndedSubagents(witness)
        self.arguments = ToolArguments(witness)
        self.answers, self.content = AnswerForms(witness, feature_of), AnswerContent(witness)
        self.parts = OrderedParts(witness, feature_of)
        self.order = ResourceWriters(witness)
        self.program = ProgramCalls(witness)
        self.limits = AskLimits(witness, feature_of)
        self.budgets, self.shared = SessionBudgets(witness), TenantBudget(witness)
        self.media, self.too_long = ResultMedia(witness), TooLongRequests(witness)
        self._of_bodies: tuple[Invariant, ...] = (self.configured, self.parts, self.limits, self.media)

    @property
    def counts(self) -> dict[str, int]:
        """The number of uses of each feature."""
        of_asks = self.answers, self.content, self.parts, self.limits, self.budgets, self.shared
        of_calls = self.arguments, self.order, self.program, self.below, self.handing
        of_requests = self.configured, self.media, self.too_long
        every = (*of_requests, *of_asks, *of_calls)
        return {name: count for each in every for name, count in each.counts.items()}

    def check_result(self, session: str, ask: str, result: AskResult) -> None:
        """Check the result of an ask against each feature."""
        self.answers.check_result(session, ask, result)
        self.content.check_result(session, ask, result)

    def request(self, session: str, ask: str, body: bytes) -> None:
        """Check a request body against each feature."""
        for each in self._of_bodies:
            each.request(session, ask, body)
