"""Apply switches and configuration changes between asks. Changes that are requested during an ask wait for its end.

A change that is requested during an ask gets the reply `queued` immediately. `apply_waiting` applies the latest switch
and the latest configuration change after the ask has ended and before the caller gets the result. A turn that waits for
its caller has not ended.
"""

from typing import Any

from actors.core.log.events import (
    Configured,
    SwitchApplied,
    SwitchFailed,
    SwitchQueued,
    SwitchSuperseded,
)
from actors.core.policy.routing import resolve_switch
from actors.core.stream_events.results import SwitchOutcome
from actors.errors import ActorsError
from actors.journal.log import LogWriter
from actors.kernel import Context, Ref
from actors.provider.resolver import check_prices
from actors.renderer.renderer_actor import MarkStale, RendererCommand
from actors.session.commands import Configure, Switch
from actors.session.configuration import ActiveConfig


class HeldChanges:
    """The changes of one session that wait for the end of the ask in flight.

    Args:
        log: Writes the session's own events.
        renderer: The session's renderer.
        active_config: The session's system prompt, tools and resolver.
    """

    def __init__(self, log: LogWriter, renderer: Ref[RendererCommand], active_config: ActiveConfig) -> None:
        self._log, self._renderer, self._active_config = log, renderer, active_config

    @property
    def is_empty(self) -> bool:
        """True if no switch or configuration change waits."""
        return self._log.state.held is None and not self._active_config.is_changing

    @property
    def _turn_number(self) -> int:
        """Number of the turn in flight, or of the next turn if no turn is in flight."""
        state = self._log.state
        return state.turns if state.bound is not None else state.turns + 1

    def switch(
        self, command: Switch, context: Context[Any], *, at_once: bool
    ) -> None:  # Any: any actor may call this
        """Log a switch, and reply to the command once the switch is durable. A later switch replaces a queued switch.

        Args:
            command: The command to switch.
            context: The context of the actor whose handler calls this method.
            at_once: True to apply the switch now, False to queue it until the ask in flight ends.
        """
        target, reply, log = command.target, command.reply, self._log
        try:
            check_prices(self._active_config.resolver, target, log.state.tenant, log.state.budget)
        except ActorsError as error:
            reply.fail(error)
            return
        if (held := log.state.held) is not None:
            log.send(SwitchSuperseded(held, target), None, context)
        if at_once:
            log.send(SwitchApplied(target), lambda _: reply.send(SwitchOutcome(target, "applied")), context)
            return
        turn = self._turn_number
        log.send(
            SwitchQueued(turn, target), lambda _: reply.send(SwitchOutcome(target, "queued", turn)), context
        )

    def configure(
        self, command: Configure, context: Context[Any], *, at_once: bool
    ) -> None:  # Any: any actor may call this
        """Apply a change of the tools or the system prompt, or keep the change until the ask in flight ends.

        Args:
            command: The command to change the configuration.
            context: The context of the actor whose handler calls this method.
            at_once: True to apply the change now, False to keep it.
        """
        reply, target = command.reply, self._log.state.target
        self._active_config.hold(command.change)
        if at_once:
            event = self._apply_change(context, drop_on_failure=True)
            self._log.send(event, lambda _: reply.send(SwitchOutcome(target, "applied")), context)
        else:
            reply.send(SwitchOutcome(target, "queued", self._turn_number))

    def log_config_change(self, context: Context[Any]) -> None:  # Any: any actor may call this
        """Log the system prompt and the tools if they differ from the log."""
        if self._active_config.resolver.config_digest != self._log.state.config_digest:
            self._log.hold(self._configured_event(context))

    async def apply_waiting(self, context: Context[Any]) -> None:  # Any: any actor may call this
        """Apply and log the waiting changes. Do nothing while the turn waits for its caller."""
        while self._log.state.pause is None and (event := self._next_event(context)) is not None:
            await self._log.write(event)

    def _next_event(
        self, context: Context[Any]
    ) -> Configured | SwitchApplied | SwitchFailed | None:  # Any: any actor may call this
        """Return the event that applies the next waiting change, or None.

        Configuration changes precede switches.
        """
        if self._active_config.is_changing:
            return self._apply_change(context)
        held = self._log.state.held
        return None if held is None else resolve_switch(held, self._active_config.resolver.pool)

    def _apply_change(
        self, context: Context[Any], *, drop_on_failure: bool = False
    ) -> Configured:  # Any: any actor may call this
        """Apply the waiting configuration change, and return its log event.

        If the event cannot be logged, the change is dropped if `drop_on_failure` is True, and otherwise waits again.
        """
        self._active_config.apply_change(drop_on_failure=drop_on_failure)
        return self._configured_event(context)

    def _configured_event(self, context: Context[Any]) -> Configured:  # Any: any actor may call this
        """Return the log event for the current configuration.

        If the digest of the configuration changed, mark the lanes that depend on it as stale.
        """
        event = self._active_config.configured_event
        if event.preamble != self._log.state.config_digest:
            context.send(self._renderer, MarkStale())
        return event
