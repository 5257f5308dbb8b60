"""Hand an ask over to another target, after its model called a `handoff` tool.

A handoff may also change the system prompt and the tools, through `actors.session.configuration` as every change. The
new toolsets are opened before the turn with the handoff ends, so that a failure to open them fails that turn. If the
handover does not happen, they are released.
"""

import anyio

from actors.core.log.events import SwitchApplied
from actors.core.policy.routing import resolve_switch
from actors.core.turn import steps
from actors.errors import ActorsError
from actors.provider.resolver import check_prices
from actors.renderer.renderer_actor import MarkStale
from actors.session.configuration import Change
from actors.session.inflight import AskInFlight
from actors.tools.handover import Handover

HANDOVERS = 16
"""Handovers that one ask may make. It bounds models that hand over to each other without end."""


class HandoverSteps:
    """The handovers of one ask. As a context manager, it releases toolsets that were opened and not used."""

    __slots__ = ("_ask", "_change")

    def __init__(self, ask: AskInFlight) -> None:
        self._ask = ask
        self._change: Change | None = None

    async def requested_handover(self) -> steps.HandedOver | None:
        """Return the first successful handover among the calls of the last batch, or None."""
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
        """Prepare a handover. Return the reason if the ask cannot be handed over, else the empty string."""
        target, ask = handover.target, self._ask
        if sum(each.status == "handed_over" for each in ask.tally.attempts) >= HANDOVERS:
            return (
                f"the ask was already handed over {HANDOVERS} times, so it cannot be handed over to {target}"
            )
        try:
            await self._prepare(handover)
        except ActorsError as error:
            return f"the conversation cannot be handed over: {error}"
        return ""

    async def _prepare(self, handover: Handover) -> None:
        """Open the toolsets of the handover. A cancel of the ask leaves none of them open."""
        ask = self._ask
        if handover.tools is ...:
            check_prices(ask.resolver, handover.target, ask.log.state.tenant, ask.log.state.budget)
        if ask.cancelled or not handover.changes:
            return
        with anyio.CancelScope() as scope:
            ask.stoppable(lambda _: scope.cancel())
            try:
                self._change = await ask.equipment.prepare(handover)
            finally:
                ask.clear_stop()

    async def take_over(self, target: str) -> None:
        """Apply the handover: its configuration, then its target. A switch that the host queued takes precedence."""
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
