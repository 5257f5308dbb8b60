"""Hand an ask over to another target after the model called a `handoff` tool.

The turn driver calls this module between two turns. A handoff may also change the system prompt and the tools, through
`actors.session.configuration`. The new toolsets are opened before the turn with the handoff ends. If a toolset cannot
be opened, the turn fails. If the handover does not take place, the toolsets are released.
"""

import anyio

from actors.core.log.events import SwitchApplied
from actors.core.policy.routing import resolve_switch
from actors.core.turn import steps
from actors.errors import ActorsError
from actors.provider.resolver import check_prices
from actors.renderer.renderer_actor import MarkStale
from actors.session.configuration import ConfigChange
from actors.session.inflight import AskInFlight
from actors.tools.tool import Handover

HANDOVERS = 16
"""Maximum number of handovers per ask, so that two models cannot hand an ask back and forth forever."""


class HandoverSteps:
    """The handovers of one ask, as a context manager.

    On exit, toolsets that were opened but not used are released.
    """

    __slots__ = ("_ask", "_change")

    def __init__(self, ask: AskInFlight) -> None:
        self._ask = ask
        self._change: ConfigChange | None = None

    async def requested_handover(self) -> steps.HandedOver | None:
        """Return the handover that the last batch requested, or None. The first successful `handoff` call counts.

        The toolsets of the handover are opened.
        """
        ask, handovers = self._ask, self._ask.resolver.handovers
        if not handovers:
            return None
        ledger = ask.ledger.latest
        for call in ask.log.state.history[-1].calls:
            known, handover = ledger.get(call.id), handovers.get(call.name)
            if handover is not None and known is not None and known.completion and not known.completion.error:
                return steps.HandedOver(handover.target, await self._prepare_or_explain(handover))
        return None

    async def _prepare_or_explain(self, handover: Handover) -> str:
        """Prepare a handover.

        If the ask cannot be handed over, return the reason. Otherwise, return the empty string.
        """
        target, ask = handover.target, self._ask
        if sum(each.status == "handed_over" for each in ask.tally.attempts) >= HANDOVERS:
            return f"the ask cannot be handed over to {target}, because it was already handed over {HANDOVERS} times"
        try:
            await self._prepare(handover)
        except ActorsError as error:
            return f"the ask cannot be handed over: {error}"
        return ""

    async def _prepare(self, handover: Handover) -> None:
        """Open the toolsets of the handover. If the ask is cancelled meanwhile, no toolset stays open."""
        ask = self._ask
        if handover.tools is ...:
            check_prices(ask.resolver, handover.target, ask.log.state.tenant, ask.log.state.budget)
        if ask.cancelled or not handover.has_changes:
            return
        with anyio.CancelScope() as scope:
            ask.set_stop(lambda _: scope.cancel())
            try:
                self._change = await ask.active_config.prepare(handover)
            finally:
                ask.clear_stop()

    async def apply_handover(self, target: str) -> None:
        """Apply the new configuration, then switch to `target`.

        A switch that the program has queued takes precedence.
        """
        if self._change is not None:
            await self._apply_configuration(self._change)
        for wanted in (self._ask.log.state.held, target):
            if wanted is not None:
                event = resolve_switch(wanted, self._ask.resolver.pool)
                await self._ask.log.write(event)
                if isinstance(event, SwitchApplied):
                    return

    async def _apply_configuration(self, change: ConfigChange) -> None:
        """Apply a change of the system prompt and the tools, and log it."""
        ask, active_config = self._ask, self._ask.active_config
        active_config.hold(change, as_older=True)
        self._change = None
        active_config.apply_change(drop_on_failure=True)
        if active_config.resolver.config_digest != ask.log.state.config_digest:
            await ask.refs.renderer.send(MarkStale())
        await ask.log.write(active_config.configured_event)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if self._change is not None:
            self._ask.active_config.drop(self._change)
            self._change = None
