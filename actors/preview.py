"""A preview: what would be sent to a target now."""

from msgspec import Struct

from actors.backends.backend import ResolvedBackend, too_full
from actors.core.asking import Asked
from actors.core.diagnostics import Report
from actors.core.identity import Binding
from actors.core.lane import Rendered
from actors.core.ledger import Ledger
from actors.core.routing import SkippedMember
from actors.core.state import SessionState
from actors.turns.configuration import Equipment


class Preview(Struct, frozen=True):
    """What would be sent to a target now.

    Args:
        binding: Whom it would go to.
        body: The whole request body.
        report: What the render did, and why.
        losses: What the target would not be shown, by kind (`thinking`, `media`, `code`, `native`, `empty`), and each
            setting it does not take, by name (`temperature`, `tool_choice`, `schema:NAME`, ...).
        kept: Bytes of the lane that are there already and stay as they are; 0 where it has none.
        compacts: Whether an ask would make the history shorter first, since it nearly fills the window of the target.
        over: Why no request would be sent: the budget that is used up. Empty while there is some of each left.
        assumed: Settings that the target demands and nobody gave, such as `max_tokens 8192`. Fillers are in `report`.
        window: Tokens that the request and its answer may have together; None if that is not known.
        skipped: Members of the target's pool that take none of the session's tools, and so would not be asked.
    """

    binding: Binding
    body: bytes
    report: Report
    losses: dict[str, int]
    kept: int
    assumed: tuple[str, ...] = ()
    compacts: bool = False
    over: str = ""
    skipped: tuple[SkippedMember, ...] = ()
    window: int | None = None

    @property
    def size(self) -> int:
        """Bytes of the body."""
        return len(self.body)


def preview_of(
    rendered: Rendered,
    backend: ResolvedBackend,
    target: str,
    session: tuple[SessionState, Ledger, Equipment],
    settings: Asked | None,
) -> Preview:
    """Return the preview of an ask with these settings, of which the transcript has been rendered."""
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
        rendered.before,
        request.assumed,
        too_full(resolver, state, ledger, backend.binding, state.history.length) is not None,
        equipment.why_over(state, target) or "",
        resolver.pool(target).skipped,
        resolver.known_window(backend.binding),
    )
