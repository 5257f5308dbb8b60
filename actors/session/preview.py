"""Build the preview of an ask from a rendered transcript."""

from actors.core.lanes.lane import Rendered
from actors.core.lanes.preview import Preview
from actors.core.ledger import Ledger
from actors.core.session.state import SessionState
from actors.core.settings.asking import Asked
from actors.provider.backend import ResolvedBackend
from actors.provider.resolver import compaction_limit
from actors.session.configuration import Equipment


def preview_of(
    rendered: Rendered,
    backend: ResolvedBackend,
    target: str,
    session: tuple[SessionState, Ledger, Equipment],
    settings: Asked | None,
) -> Preview:
    """Return the preview of an ask with these settings. `session`: its state, ledger and configuration."""
    state, ledger, equipment = session
    resolver = equipment.resolver
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
        equipment.why_over(state, target) or "",
        resolver.pool(target).skipped,
        resolver.known_window(backend.binding),
    )
