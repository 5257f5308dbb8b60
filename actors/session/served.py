"""The outcome of a turn, before its end is logged."""

from msgspec import Struct
from msgspec.structs import replace

from actors.core.turn.steps import AwaitStep, CloseStep
from actors.core.values.identity import Binding


class ServedTurn(Struct, frozen=True):
    """The last step of a turn. `sent`: the size of its last transcript, in bytes."""

    binding: Binding
    step: CloseStep | AwaitStep
    sent: int = 0


def with_endpoint_change(step: CloseStep | AwaitStep, began: Binding, now: Binding) -> CloseStep | AwaitStep:
    """Return the end of a turn; a failure after a change of base URL names both URLs and the dialect."""
    if isinstance(step, CloseStep) and step.status == "failed" and began.endpoint != now.endpoint:
        moved = f"the turn began at {began.endpoint} in dialect {now.dialect!r} and went on at {now.endpoint}"
        return replace(step, why=f"{step.why} ({moved})")
    return step
