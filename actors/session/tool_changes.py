"""Declare changed tools within a turn, for toolsets that are declared `within_turn`.

Normally, a turn keeps its tools until it ends. A changed list of tools would invalidate the provider's prompt cache,
and reasoning that is bound to the prefix would have to be omitted. If the turn contains such reasoning, or its backend
does not accept the new tools, the change waits for the next ask, and an event reports the reason.
"""

from functools import partial

import anyio

from actors.core.settings.values import ToolChoice
from actors.core.stream_events.session_events import ToolChangeDeferredEvent
from actors.core.values.content import Thinking
from actors.provider.backend import ResolvedBackend
from actors.renderer.renderer_actor import MarkStale
from actors.session.configuration import ActiveConfig
from actors.session.inflight import AskInFlight
from actors.session.steps import TurnSteps
from actors.telemetry import logger


class ToolChanges:
    """The changes of tools within the turns of one ask."""

    __slots__ = ("_ask", "_backend", "_reported")

    def __init__(self, ask: AskInFlight) -> None:
        self._ask = ask
        self._reported = ""
        self._backend: ResolvedBackend | None = None  # the backend with the changed tools

    async def declare_changes(self, turn_steps: TurnSteps, round_number: int) -> bool:
        """Declare the current tools of the toolsets in the next requests. Return True if the tools changed.

        If the ask is cancelled, it no longer waits for a toolset's list of tools.

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
                has_changed = await ask.active_config.catch_up()
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
