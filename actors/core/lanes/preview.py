"""A preview: the request that a target would get now, as a value."""

from msgspec import Struct

from actors.core.policy.routing import SkippedMember
from actors.core.transcript.diagnostics import Report
from actors.core.values.identity import Binding


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
