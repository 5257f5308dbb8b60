"""Apply switches and configuration changes between asks, and hold the latest of each during one.

A change during an ask is answered `Deferred` at once. When the ask has ended, `settle` applies it before the caller
gets the result, so the caller finds the new target in force. A turn that waits for its caller has not ended.
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
from actors.session.configuration import Equipment


class HeldChanges:
    """The changes of one session that wait for the end of its ask.

    Args:
        log: Writes the session's own events.
        renderer: The session's renderer.
        equipment: The tools, and the resolver for them.
    """

    def __init__(self, log: LogWriter, renderer: Ref[RendererCommand], equipment: Equipment) -> None:
        self._log, self._renderer, self._equipment = log, renderer, equipment

    @property
    def is_empty(self) -> bool:
        """True if no change waits."""
        return self._log.state.held is None and not self._equipment.is_changing

    @property
    def _turn(self) -> int:
        """The turn in flight, or the next."""
        state = self._log.state
        return state.turns if state.bound is not None else state.turns + 1

    def switch(self, command: Switch, context: Context[Any], *, at_once: bool) -> None:  # Any: the session's
        """Log a switch, from a handler of `context`. A later switch replaces a held one."""
        target, reply, log = command.target, command.reply, self._log
        try:
            check_prices(self._equipment.resolver, target, log.state.tenant, log.state.budget)
        except ActorsError as error:
            reply.fail(error)
            return
        if (held := log.state.held) is not None:
            log.send(SwitchSuperseded(held, target), None, context)
        if at_once:
            log.send(SwitchApplied(target), lambda _: reply.send(SwitchOutcome(target, "applied")), context)
            return
        turn = self._turn
        log.send(
            SwitchQueued(turn, target), lambda _: reply.send(SwitchOutcome(target, "queued", turn)), context
        )

    def configure(self, command: Configure, context: Context[Any], *, at_once: bool) -> None:  # Any: as above
        """Apply or hold a change of the tools or the system prompt, from a handler of `context`."""
        reply, target = command.reply, self._log.state.target
        self._equipment.hold(command.change)
        if at_once:
            event = self._take_up(context, or_drop=True)
            self._log.send(event, lambda _: reply.send(SwitchOutcome(target, "applied")), context)
        else:
            reply.send(SwitchOutcome(target, "queued", self._turn))

    def compare(self, context: Context[Any]) -> None:  # Any: as above
        """Log a configuration change if the system prompt or the tools differ from the log."""
        if self._equipment.resolver.config_digest != self._log.state.config_digest:
            self._log.hold(self._configured_event(context))

    async def settle(self, context: Context[Any]) -> None:  # Any: as above
        """Apply the changes that wait, from a child of `context`; none while the turn waits for its caller."""
        while self._log.state.pause is None and (event := self._next(context)) is not None:
            await self._log.write(event)

    def _next(
        self, context: Context[Any]
    ) -> Configured | SwitchApplied | SwitchFailed | None:  # Any: as above
        if self._equipment.is_changing:
            return self._take_up(context)
        held = self._log.state.held
        return None if held is None else resolve_switch(held, self._equipment.resolver.pool)

    def _take_up(self, context: Context[Any], *, or_drop: bool = False) -> Configured:  # Any: as above
        """Apply the configuration change that waits; return the event that logs it."""
        self._equipment.take_up(or_drop=or_drop)
        return self._configured_event(context)

    def _configured_event(self, context: Context[Any]) -> Configured:  # Any: as above
        """Return the log event of the present configuration. If its digest changed, mark dependent lanes as stale."""
        event = self._equipment.configured_event
        if event.preamble != self._log.state.config_digest:
            context.send(self._renderer, MarkStale())
        return event
