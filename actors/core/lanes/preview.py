"""Define the preview of the request that a target would receive now."""

from msgspec import Struct

from actors.core.policy.routing import SkippedMember
from actors.core.transcript.diagnostics import Report
from actors.core.values.identity import Binding


class Preview(Struct, frozen=True):
    """The request that a target would receive now.

    Args:
        binding: The binding of the request.
        body: The complete request body.
        report: The decisions of the render.
        losses: Counts of omitted content by kind (`thinking`, `media`, `code`, `native`, `empty`), and of unsupported
            settings by name (`temperature`, `tool_choice`, `schema:NAME`, ...).
        kept: Number of bytes of the transcript that were sent before and stay unchanged.
        assumed: Settings that the target requires and the caller did not set, such as `max_tokens 8192`. Fillers are in
            `report`.
        compacts: True if an ask would first compact the history, because the history nearly fills the target's window.
        over: The exhausted budget that would prevent the request; empty if no budget is exhausted.
        skipped: Members of the target's pool that would be skipped, because they support none of the session's tools.
        window: Maximum number of tokens of the request and its answer together; None if unknown.
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
        """The size of the body in bytes."""
        return len(self.body)
