"""Describe the outcome of a turn whose end is not yet logged."""

from msgspec import Struct
from msgspec.structs import replace

from actors.core.turn.steps import AwaitStep, CloseStep
from actors.core.values.identity import Binding


class ServedTurn(Struct, frozen=True):
    """The outcome of a turn: the backend's binding and the last step. `sent`: bytes of the turn's last transcript."""

    binding: Binding
    step: CloseStep | AwaitStep
    sent: int = 0


def with_endpoint_change(step: CloseStep | AwaitStep, began: Binding, now: Binding) -> CloseStep | AwaitStep:
    """Return the last step of a resumed turn. If the turn failed after a change of base URL, its reason names both
    URLs.
    """
    if isinstance(step, CloseStep) and step.status == "failed" and began.endpoint != now.endpoint:
        moved = (
            f"the turn began at {began.endpoint} in dialect {now.dialect!r} and continued at {now.endpoint}"
        )
        return replace(step, why=f"{step.why} ({moved})")
    return step
