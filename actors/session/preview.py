"""Build the preview of an ask: the request that the ask would send, and its losses. Nothing is sent."""

from actors.core.lanes.lane import Rendered
from actors.core.lanes.preview import Preview
from actors.core.ledger import Ledger
from actors.core.session.state import SessionState
from actors.core.settings.asking import Asked
from actors.provider.backend import ResolvedBackend
from actors.provider.resolver import compaction_limit
from actors.session.configuration import ActiveConfig


def preview_of(
    rendered: Rendered,
    backend: ResolvedBackend,
    target: str,
    session: tuple[SessionState, Ledger, ActiveConfig],
    settings: Asked | None,
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
