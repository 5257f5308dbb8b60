"""Render the requests of a turn, log them, and send them.

The rounds of a turn and the requests for summaries (`actors.session.compactor`) use this module. A request is rendered
from the newest ledger snapshot that the session has received. If the ledger has changed before the request is logged,
the request is rendered again.

If a provider rejects optional parameters or attachments, the next request omits them. Rejected parameters are omitted
by all sessions on the same binding.

This module also builds the preview of an ask: the request that the ask would send, and its losses.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Struct

from actors.adapters.failure import Failure
from actors.adapters.request import Request, Settings
from actors.core.history.history import History
from actors.core.lanes.lane import Preview, Rendered, results_to_seal
from actors.core.ledger import Ledger
from actors.core.log.events import EpochBegan, OmittedParameter, RequestSent
from actors.core.render import attachment_names_since
from actors.core.session.state import SessionState
from actors.core.settings.asking import StoredAskSettings
from actors.core.settings.values import ToolChoiceSetting
from actors.core.stream_events.events import Sink
from actors.core.stream_events.round_events import RequestRenderedEvent
from actors.core.turn.steps import MediaRefused
from actors.core.turn.turn import PARAMETER_REFUSALS
from actors.core.values.progress import Cause, RefusalKind, RefusedRequest
from actors.errors import KernelError
from actors.kernel import Context, Ref
from actors.ledger.ledger_actor import LedgerSnapshot
from actors.provider.attempts import Generated
from actors.provider.backend import ResolvedBackend
from actors.provider.provider_actor import Abort, ProviderCommand
from actors.provider.resolver import compaction_limit
from actors.provider.rounds import Generate
from actors.renderer.renderer_actor import Invalidate, Render
from actors.session.configuration import ActiveConfig
from actors.session.inflight import AskInFlight
from actors.telemetry import logger


class RequestPlan(Struct, frozen=True):
    """The properties of a request that do not depend on the history.

    Args:
        round: Number of the round; 0 for the request for a summary.
        choice: The tool choice.
        asked: The settings of the ask.
        omitted: The parameters that the request omits.
        tools_off: True if the round limit has turned the tools off.
        is_side_request: True if no later request continues this one. The lane then does not advance.
    """

    round: int
    choice: ToolChoiceSetting | None = None
    asked: StoredAskSettings | None = None
    omitted: tuple[OmittedParameter, ...] = ()
    tools_off: bool = False
    is_side_request: bool = False


class TurnRequests:
    """Renders, logs and sends the requests of one turn.

    Args:
        ask: The values that the turns of the ask share.
        backend: The backend that receives the requests. A change of tools within the turn replaces the backend.
        provider: The provider actor of that backend.
        turn: Number of the turn.
    """

    ask: AskInFlight
    backend: ResolvedBackend
    turn: int

    def __init__(
        self, ask: AskInFlight, backend: ResolvedBackend, provider: Ref[ProviderCommand], turn: int
    ) -> None:
        self.ask, self.backend, self.turn = ask, backend, turn
        self._provider, self._key = provider, ""
        self.rendered_ledger: Ledger = ask.ledger.latest
        """The ledger from which the last request was rendered."""

    def build(self, plan: RequestPlan, rendered: Rendered) -> Request:
        """Encode the request for a rendered transcript."""
        return self._build(plan, rendered, plan.omitted)

    def _build(self, plan: RequestPlan, rendered: Rendered, omitted: tuple[OmittedParameter, ...]) -> Request:
        """Encode a request with the omissions in `omitted` instead of those of the plan."""
        session = self.ask.log.state.session
        return self.backend.request(rendered, session, plan.choice, plan.asked, omitted)

    async def prepare(
        self, plan: RequestPlan, history: Callable[[], History], is_declined: Callable[[Rendered], bool]
    ) -> Rendered:
        """Render a request and log it. If the ledger changes before the request is logged, render the request again.

        A rendered request with faults, or for which `is_declined` returns True, is returned but not logged.

        Args:
            plan: The properties of the request that do not depend on the history.
            history: Returns the history to render.
            is_declined: Returns True for a transcript that must not be sent.
        """
        ask, binding = self.ask, self.backend.binding
        while True:
            snapshot = ask.ledger.snapshot
            self.rendered_ledger = snapshot.ledger
            render = Render(binding, history(), snapshot.ledger, is_side_request=plan.is_side_request)
            rendered = await ask.refs.renderer.ask(render)
            if rendered.new_epoch is not None:
                await self.begin_epoch(rendered.new_epoch)
            if rendered.report.faults or is_declined(rendered):
                return rendered
            if await self._log_request(plan, rendered, snapshot):
                return rendered

    async def begin_epoch(self, event: EpochBegan) -> None:
        """Begin an epoch of a lane. The event is logged together with the next request."""
        self.ask.log.hold(event)
        await self.ask.refs.renderer.send(Invalidate(event, self.ask.log.state.history.length))

    async def _log_request(self, plan: RequestPlan, rendered: Rendered, snapshot: LedgerSnapshot) -> bool:
        """Log a request before it is sent. Return False and log nothing if the ledger has changed since `snapshot`."""
        ask, binding, state = self.ask, self.backend.binding, rendered.lane._state
        place = self.turn, plan.round, binding, state.epoch, state.cursor
        sealed = results_to_seal(rendered, snapshot.ledger)
        omitted = self._effective_omissions(plan, rendered) if plan.omitted else ()
        sent = RequestSent(*place, sealed, plan.tools_off, plan.is_side_request, omitted)
        if not await ask.ledger.seal(sent, snapshot):
            return False
        ask.tally.record_request(self.turn, plan.round)
        if not plan.is_side_request:
            ask.generation.store_sent_lane(binding, rendered)
            if ask.sink.is_watched:
                self._publish_rendered(sent, rendered)
        return True

    def _effective_omissions(self, plan: RequestPlan, rendered: Rendered) -> tuple[OmittedParameter, ...]:
        """Return the omissions of the plan that change the encoded request."""
        names = self.build(plan, rendered).omitted
        return tuple([omission for omission in plan.omitted if omission.name in names])

    def _publish_rendered(self, event: RequestSent, rendered: Rendered) -> None:
        """Send a `RequestRenderedEvent` to the reader of the ask's stream."""
        place, lane = (event.turn, event.round, event.binding), rendered.lane
        sizes = rendered._before, lane.size
        self.ask.sink.put(RequestRenderedEvent(*place, lane._state.epoch, *sizes, rendered.report))

    async def send(self, plan: RequestPlan, request: Request, sink: Sink | None = None) -> Generated:
        """Send a request and return its outcome.

        Raises:
            KernelError: The provider's actor did not reply.
        """
        ask, provider, state = self.ask, self._provider, self.ask.log.state
        key, binding = f"{state.session}/{self.turn}/{plan.round}", self.backend.binding
        self._key = key
        place = state.calls + 1, self.turn, plan.round
        generate = Generate(
            key, request, binding, *place, sink, state.session, state.tenant, asked=plan.asked
        )
        ask.set_stop(self._abort)
        try:
            generated = await provider.ask(generate)
        except KernelError:
            raise
        except BaseException:  # the ask is being cancelled, so the answer is not needed
            with suppress(KernelError):
                provider.send_nowait(Abort(key))
            raise
        finally:
            ask.clear_stop()
        ask.tally.record_round(generated, binding)
        return generated

    def _abort(self, context: Context[Any]) -> None:  # Any: any actor may call this
        """Stop the request that is being sent."""
        context.send(self._provider, Abort(self._key))

    def parameters_to_omit(
        self, plan: RequestPlan, rendered: Rendered, failure: Failure, earlier_refusals: int
    ) -> tuple[OmittedParameter, ...]:
        """Return the rejected parameters that the next request omits.

        The tuple is empty if the request cannot omit them. `earlier_refusals` is the number of earlier rejections of
        this request.
        """
        omitted = refused_parameters(
            failure, plan.omitted, earlier_refusals, partial(self._build, plan, rendered)
        )
        if omitted:
            settings = self.backend.asked_settings(plan.choice, plan.asked)
            refusal = record_omissions(self.backend, settings, omitted, failure.message)
            self.ask.tally.refusals += (refusal,)
        return omitted

    def media_to_omit(
        self, plan: RequestPlan, rendered: Rendered, failure: Failure, start: int
    ) -> MediaRefused | None:
        """Return the rejected attachments that the next request omits.

        `None` means that the request contains no attachments. `start` is the index of the first message that was not
        part of an answered request.
        """
        state, binding = self.ask.log.state, self.backend.binding
        cause, body = Cause(failure.kind, failure.status), self.build(plan, rendered).body
        media = refused_media(failure, cause, body, state.history, self.rendered_ledger, start)
        if media is not None:
            logger.media_refused(state.session, binding, cause)
            refusal = RefusedRequest(binding, "media", failure.message, ("media",))
            self.ask.tally.refusals += (refusal,)
        return media


def refused_parameters(
    failure: Failure,
    omitted: Sequence[OmittedParameter],
    refusals: int,
    build: Callable[[tuple[OmittedParameter, ...]], Request],
) -> tuple[OmittedParameter, ...]:
    """Return the rejected parameters to omit from the next request; none if the omission would not change the request.

    Args:
        failure: The failure of the request.
        omitted: The parameters that the request already omits.
        refusals: Number of earlier rejections of this request.
        build: Returns the request with the given omissions.
    """
    parameter = failure.parameter
    if parameter is None or refusals >= PARAMETER_REFUSALS:
        return ()
    known = {omission.name for omission in omitted}
    new = [OmittedParameter(name, parameter.is_value) for name in parameter.settings if name not in known]
    before, after = build(tuple(omitted)), build((*omitted, *new))
    if (before.path, before.body) == (after.path, after.body):
        return ()
    return tuple([omission for omission in new if omission.name in after.omitted])


def record_omissions(
    backend: ResolvedBackend, settings: Settings, omissions: Sequence[OmittedParameter], why: str
) -> RefusedRequest:
    """Record rejected parameters, so that later requests to the backend's binding omit them.

    Return the description of the rejected request for the ask's result.
    """
    backend.facts.learn(omissions, settings, why)
    for omission in omissions:
        logger.parameter_refused(backend.binding, omission.name, is_value=omission.only_value)
    names = tuple([omission.name for omission in omissions])
    kind: RefusalKind = "schema" if all(name.startswith("schema_") for name in names) else "parameter"
    return RefusedRequest(backend.binding, kind, why, names)


def refused_media(
    failure: Failure, cause: Cause, body: bytes, history: History, ledger: Ledger, start: int
) -> MediaRefused | None:
    """Return the attachments that the provider rejected; None if the request contains no attachments.

    Args:
        failure, cause: The failure of the request.
        body: The request's body.
        history, ledger: The inputs from which the request was rendered.
        start: Index of the first message that no answered request contained. If the failure names no attachment, the
            attachments of this message and of later messages may be the cause.
    """
    # Imported lazily, because few requests are rejected.
    from actors.adapters.refusals import media_parts, named_media

    parts = media_parts(body)
    if not parts:
        return None
    fresh = attachment_names_since(history, ledger, start)
    named = named_media(f"{failure.place or ''} {failure.message}", parts)
    names = dict.fromkeys(part.name for part in parts)
    others = [name for name in names if name in fresh] or list(names)
    return MediaRefused(failure.message, named, tuple([name for name in others if name not in named]), cause)


def preview_of(
    rendered: Rendered,
    backend: ResolvedBackend,
    target: str,
    session: tuple[SessionState, Ledger, ActiveConfig],
    settings: StoredAskSettings | None,
) -> Preview:
    """Return the preview of an ask with these settings, from a rendered transcript.

    Args:
        rendered: The transcript, rendered for the binding of `backend`.
        backend: The backend that would receive the request.
        target: The target of the ask.
        session: The state, the ledger and the configuration of the session.
        settings: The settings of the ask; None for the defaults.
    """
    state, ledger, active_config = session
    resolver = active_config.resolver
    choice = settings.tool_choice if settings else None
    omitted = backend.omissions(choice, settings)
    request = backend.request(rendered, state.session, choice, settings, omitted)
    return Preview(
        backend.binding,
        request.body,
        rendered.report,
        dict(rendered.report.losses) | dict.fromkeys(request.losses, 1),
        rendered._before,
        request.assumed,
        compaction_limit(resolver, state, ledger, backend.binding, state.history.length) is not None,
        active_config.exhausted_budget(state, target) or "",
        resolver.pool(target).skipped,
        resolver.known_window(backend.binding),
    )
