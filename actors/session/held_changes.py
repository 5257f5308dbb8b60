"""Apply switches, configuration changes and rewinds between asks. A change that is requested during an ask waits until
the ask has ended.

A change that must wait gets the reply `queued` immediately. `apply_waiting` applies the latest switch and the latest
configuration change after the ask has ended and before the caller gets the result. While the turn waits for results or
decisions from its caller, the ask has not ended.

A rewind is queued like an ask, but sends no request and begins no turn. `actors.core.history.history` finds the turns
to which a history can be rewound. The log and the ledger keep the removed messages and calls, so the numbers of removed
turns and calls are not reused.
"""

from typing import Any

from actors.core.history.history import end_of, unreachable_reason
from actors.core.log.events import (
    Configured,
    Rewound,
    SwitchApplied,
    SwitchFailed,
    SwitchQueued,
    SwitchSuperseded,
)
from actors.core.policy.routing import resolve_switch
from actors.core.session.publishing import NO_BINDING
from actors.core.session.state import SessionState
from actors.core.stream_events.ask_events import AskResult, SwitchOutcome
from actors.core.values.stream import Usage
from actors.errors import ActorsError, SessionError
from actors.journal.log import LogWriter
from actors.kernel import Context, Ref
from actors.provider.resolver import check_prices
from actors.renderer.renderer_actor import MarkStale, RendererCommand, Rewind
from actors.session.commands import Configure, Switch
from actors.session.configuration import ActiveConfig
from actors.session.inflight import AskInFlight
from actors.session.pending import HostRewind, PendingAsks


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
        """Apply and log the waiting changes. Do nothing while the turn is paused."""
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


async def rewind(ask: AskInFlight, request: HostRewind, pending: PendingAsks) -> None:
    """Log a rewind to the end of the requested turn.

    If the history already ends there, or cannot be rewound to that turn, nothing is logged.
    """
    state, to = ask.log.state, request.to_turn
    result = AskResult("", "complete", NO_BINDING, (), 0, Usage(), turn=to)
    if (end := end_of(state.ends, to)) is None:
        why = unreachable_reason(state.ends, to, state.turns)
        request.refusal = f"Session {state.session!r} cannot be rewound to turn {to}: {why}"
        pending.store_result(result, 0)
    elif end.length == state.history.length:
        request.removed = 0
        pending.store_result(result, 0)
    else:
        removed = state.history.length - end.length

        def on_durable(seq: int) -> None:
            request.removed = removed
            pending.store_result(result, seq)

        await ask.refs.renderer.send(Rewind(end.length))
        await ask.log.write(Rewound(to), on_durable)


def open_turn_error(state: SessionState) -> SessionError:
    """Return the error for a rewind that is requested while a turn is paused."""
    return SessionError(
        f"Session {state.session!r} cannot be rewound while turn {state.turns} is paused; call cancel() first"
    )
