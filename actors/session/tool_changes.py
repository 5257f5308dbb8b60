"""Declare changed tools within a turn, for toolsets that request it.

Normally a turn keeps its tools until it ends, because a new list invalidates the provider's prompt cache, and reasoning
that is bound to the prefix would have to be left out. If the turn has such reasoning, or its backend does not accept
the new tools, the change waits for the next ask, and an event reports that.
"""

from functools import partial

import anyio

from actors.core.settings.values import ToolChoice
from actors.core.stream_events.events import ToolChangeDeferredEvent
from actors.core.values.content import Thinking
from actors.provider.backend import ResolvedBackend
from actors.renderer.renderer_actor import MarkStale
from actors.session.configuration import Equipment
from actors.session.inflight import AskInFlight
from actors.session.steps import TurnSteps
from actors.telemetry import logger


class ToolChanges:
    """Declares changed tools within the turns of one ask."""

    __slots__ = ("_ask", "_backend", "_reported")

    def __init__(self, ask: AskInFlight) -> None:
        self._ask = ask
        self._reported = ""
        self._backend: ResolvedBackend | None = None  # with the tools of a change

    async def declare(self, served: TurnSteps, number: int) -> bool:
        """Declare the current tools of the toolsets in the next requests; return True if the tools changed.

        A cancel of the ask ends the wait for a list of tools. `number` is the round that follows.
        """
        ask = self._ask
        if not ask.equipment.may_change:
            return False
        has_changed = False
        with anyio.CancelScope() as scope:
            ask.stoppable(lambda _: scope.cancel())
            try:
                has_changed = await ask.equipment.catch_up()
            finally:
                ask.clear_stop()
        if scope.cancelled_caught or ask.cancelled or not has_changed:
            return False
        if why := ask.equipment.refresh_if(partial(self._why_not, served)):
            self._report(why, number)
            return False
        assert self._backend is not None
        served.equip(self._backend)
        await self._configure()
        return True

    def _why_not(self, served: TurnSteps, equipment: Equipment) -> str:
        """Return the reason why the turn keeps its tools; empty if it may change them.

        Raises:
            ConfigError: The backend does not accept the new tools.
        """
        resolver, binding = equipment.resolver, served.binding
        self._backend = resolver.backend(resolver.member(binding), binding.dialect)
        if self._backend.binding != binding:
            return "the configuration of the backend has changed since the turn began"
        if equipment.resolver.config_digest == self._ask.log.state.config_digest:
            return ""
        if self._has_bound_reasoning(served):
            return f"{served.binding.model} reasoned in this turn, and its reasoning is bound to the tools"
        asked = self._ask.log.state.asked
        forced = None if asked is None else asked.tool_choice
        if isinstance(forced, ToolChoice) and forced.tool not in equipment.tools:
            return f"the ask forces the tool {forced.tool!r}, which is not offered any more"
        return ""

    def _has_bound_reasoning(self, served: TurnSteps) -> bool:
        """Return True if the ask has reasoning that its backend accepts only with exactly the same tools."""
        if served.backend.adapter.dialect.reasoning.binding != "prefix":
            return False
        state = self._ask.log.state
        messages = (state.history[place] for place in range(state.asked_at, state.history.length))
        return any(
            isinstance(block, Thinking)
            for message in messages
            if message.origin == served.binding
            for block in message.blocks
        )

    async def _configure(self) -> None:
        """Log the new tools with the next request. Lanes with reasoning bound to the tools begin a new epoch."""
        ask = self._ask
        event = ask.equipment.configured_event
        if event.preamble == ask.log.state.config_digest:
            return
        await ask.refs.renderer.send(MarkStale())
        ask.log.hold(event)

    def _report(self, why: str, number: int) -> None:
        """Report that a change waits for the next ask, once per reason and ask."""
        if why == self._reported:
            return
        self._reported, state = why, self._ask.log.state
        logger.tools_held(state.session, why)
        if self._ask.sink.is_watched:
            self._ask.sink.put(ToolChangeDeferredEvent(state.turns, number, why))
