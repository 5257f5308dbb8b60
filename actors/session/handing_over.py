"""Handing over: an ask whose model called a `handoff` tool goes on with another target, and with what that is to have.

The system prompt and the tools change by the one way there is, `actors.session.configuration`. What they need is opened
while the turn that hands over still could fail; what nobody takes up then is given back.
"""

import anyio

from actors.core.log.events import SwitchApplied
from actors.core.policy.routing import resolve_switch
from actors.core.turn import steps
from actors.errors import ActorsError
from actors.provider.resolver import check_priced
from actors.renderer.renderer_actor import MarkStale
from actors.session.configuration import Change
from actors.session.inflight import AskInFlight
from actors.tools.handover import Handover

HANDOVERS = 16
"""Times that an ask goes on with another turn before its model may hand it over no more."""


class HandoverSteps:
    """What hands one ask over. A context: at its end what was opened and is not taken up is given back."""

    __slots__ = ("_ask", "_change")

    def __init__(self, ask: AskInFlight) -> None:
        self._ask = ask
        self._change: Change | None = None

    async def requested_handover(self) -> steps.HandedOver | None:
        """Return the first handover that a call of the last batch requested; None if there is none."""
        ask, handovers = self._ask, self._ask.resolver.handovers
        if not handovers:
            return None
        ledger = ask.ledger.latest
        for call in ask.log.state.history[-1].calls:
            known, handover = ledger.get(call.id), handovers.get(call.name)
            if handover is not None and known is not None and known.completion and not known.completion.error:
                return steps.HandedOver(handover.target, await self._why_not(handover))
        return None

    async def _why_not(self, handover: Handover) -> str:
        """Return why the ask cannot be handed over; empty if it can, and then what the target needs is open."""
        target, ask = handover.target, self._ask
        if sum(each.status == "handed_over" for each in ask.tally.attempts) >= HANDOVERS:
            return f"the ask was handed on {HANDOVERS} times, and is not handed over to {target} too"
        try:
            await self._prepare(handover)
        except ActorsError as error:
            return f"the conversation cannot be handed over: {error}"
        return ""

    async def _prepare(self, handover: Handover) -> None:
        """Open what the target needs. A cancel of the ask leaves nothing open."""
        ask = self._ask
        if handover.tools is ...:
            check_priced(ask.resolver, handover.target, ask.log.state.tenant, ask.log.state.budget)
        if ask.cancelled or not handover.changes:
            return
        with anyio.CancelScope() as scope:
            ask.stoppable(lambda _: scope.cancel())
            try:
                self._change = await ask.equipment.prepare(handover)
            finally:
                ask.clear_stop()

    async def take_over(self, target: str) -> None:
        """Have the session's target changed, and what else was handed over. What the host holds comes first."""
        if self._change is not None:
            await self._configure(self._change)
        for wanted in (self._ask.log.state.held, target):
            if wanted is not None:
                event = resolve_switch(wanted, self._ask.resolver.pool)
                await self._ask.log.write(event)
                if isinstance(event, SwitchApplied):
                    return

    async def _configure(self, change: Change) -> None:
        ask, equipment = self._ask, self._ask.equipment
        equipment.hold(change, behind=True)
        self._change = None
        equipment.take_up(or_drop=True)
        if equipment.resolver.config_digest != ask.log.state.config_digest:
            await ask.refs.renderer.send(MarkStale())
        await ask.log.write(equipment.configured_event)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if self._change is not None:
            self._ask.equipment.drop(self._change)
            self._change = None
