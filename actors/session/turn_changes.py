"""Hand an ask over to another target between two turns, and declare changed tools within a turn.

After the model called a `handoff` tool, the ask continues with another target. A handoff may also change the system
prompt and the tools, through `actors.session.configuration`. The new toolsets are opened before the turn with the
handoff ends. If a toolset cannot be opened, the turn fails. If the handover does not take place, the toolsets are
released.

Normally, a turn keeps its tools until it ends. A changed list of tools would invalidate the provider's prompt cache,
and reasoning that is bound to the prefix would have to be omitted. Toolsets that are declared `within_turn` may change
their tools within a turn. If the turn contains such reasoning, or its backend does not accept the new tools, the change
waits for the next ask, and an event reports the reason.
"""

from functools import partial

import anyio

from actors.core.log.events import SwitchApplied
from actors.core.policy.routing import resolve_switch
from actors.core.settings.values import ToolChoice
from actors.core.stream_events.events import ToolChangeDeferredEvent
from actors.core.turn import steps
from actors.core.values.content import Thinking
from actors.errors import ActorsError
from actors.provider.backend import ResolvedBackend
from actors.provider.resolver import check_prices
from actors.renderer.renderer_actor import MarkStale
from actors.session.configuration import ActiveConfig, ConfigChange
from actors.session.inflight import AskInFlight
from actors.session.steps import TurnSteps
from actors.telemetry import logger
from actors.tools.tool import Handover

MAX_HANDOVERS = 16
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
        """Return the handover that the last batch requested, with its toolsets opened, or None.

        If several `handoff` calls succeeded, the first one counts. If the ask cannot be handed over, the returned value
        contains the reason.
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
        if sum(each.status == "handed_over" for each in ask.tally.attempts) >= MAX_HANDOVERS:
            return (
                f"the ask cannot be handed over to {target}, "
                f"because it was already handed over {MAX_HANDOVERS} times"
            )
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


class ToolChanges:
    """The changes of tools within the turns of one ask."""

    __slots__ = ("_ask", "_backend", "_reported")

    def __init__(self, ask: AskInFlight) -> None:
        self._ask = ask
        self._reported = ""
        self._backend: ResolvedBackend | None = None  # the backend with the changed tools

    async def declare_changes(self, turn_steps: TurnSteps, round_number: int) -> bool:
        """Declare the current tools of the toolsets in the next requests. Return True if the tools changed.

        A cancellation of the ask ends the wait for a toolset's list of tools.

        Args:
            turn_steps: The steps of the current turn.
            round_number: Number of the next round.
        """
        ask = self._ask
        if not ask.active_config.may_change:
            return False
        has_changed = False
        with anyio.CancelScope() as scope:
            ask.set_stop(lambda _: scope.cancel())
            try:
                has_changed = await ask.active_config.check_for_changes()
            finally:
                ask.clear_stop()
        if scope.cancelled_caught or ask.cancelled or not has_changed:
            return False
        if why := ask.active_config.refresh_unless(partial(self._reason_to_keep_tools, turn_steps)):
            self._report_deferral(why, round_number)
            return False
        assert self._backend is not None
        turn_steps.replace_backend(self._backend)
        await self._log_tools()
        return True

    def _reason_to_keep_tools(self, turn_steps: TurnSteps, active_config: ActiveConfig) -> str:
        """Return the reason why the turn must keep its tools. The string is empty if the tools may change.

        Raises:
            ConfigError: The backend does not accept the new tools.
        """
        resolver, binding = active_config.resolver, turn_steps.binding
        self._backend = resolver.backend(resolver.member(binding), binding.dialect)
        if self._backend.binding != binding:
            return "the configuration of the backend has changed since the start of the turn"
        if active_config.resolver.config_digest == self._ask.log.state.config_digest:
            return ""
        if self._has_bound_reasoning(turn_steps):
            return f"{binding.model} reasoned in this turn, and its reasoning is bound to the tools"
        asked = self._ask.log.state.asked
        forced = None if asked is None else asked.tool_choice
        if isinstance(forced, ToolChoice) and forced.tool not in active_config.tools:
            return f"the ask forces the tool {forced.tool!r}, which the toolset no longer contains"
        return ""

    def _has_bound_reasoning(self, turn_steps: TurnSteps) -> bool:
        """Return True if the ask contains reasoning that its backend accepts only with exactly the same tools."""
        if turn_steps.backend.adapter.dialect.reasoning.binding != "prefix":
            return False
        state = self._ask.log.state
        messages = (state.history[place] for place in range(state.asked_at, state.history.length))
        return any(
            isinstance(block, Thinking)
            for message in messages
            if message.origin == turn_steps.binding
            for block in message.blocks
        )

    async def _log_tools(self) -> None:
        """Log the new tools together with the next request.

        A lane whose reasoning is bound to the tools begins a new epoch.
        """
        ask = self._ask
        event = ask.active_config.configured_event
        if event.preamble == ask.log.state.config_digest:
            return
        await ask.refs.renderer.send(MarkStale())
        ask.log.hold(event)

    def _report_deferral(self, reason: str, round_number: int) -> None:
        """Report that a change of tools waits for the next ask, with the reason.

        The same reason is not reported twice in a row.
        """
        if reason == self._reported:
            return
        self._reported, state = reason, self._ask.log.state
        logger.tools_held(state.session, reason)
        if self._ask.sink.is_watched:
            self._ask.sink.put(ToolChangeDeferredEvent(state.turns, round_number, reason))
