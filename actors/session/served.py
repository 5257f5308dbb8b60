"""Define the outcome of a turn whose end is not logged yet."""

from msgspec import Struct
from msgspec.structs import replace

from actors.core.turn.steps import AwaitStep, CloseStep
from actors.core.values.identity import Binding


class ServedTurn(Struct, frozen=True):
    """The outcome of a turn.

    Args:
        binding: The binding that served the turn.
        step: The last step of the turn.
        sent_bytes: Size of the turn's last transcript, in bytes.
    """

    binding: Binding
    step: CloseStep | AwaitStep
    sent_bytes: int = 0


def with_endpoint_change(step: CloseStep | AwaitStep, old: Binding, new: Binding) -> CloseStep | AwaitStep:
    """Return the last step of a resumed turn, with a note if the base URL has changed.

    If the URL changed during the pause and the turn failed, the step's reason names both URLs.
    """
    if isinstance(step, CloseStep) and step.status == "failed" and old.endpoint != new.endpoint:
        moved = f"the turn began at {old.endpoint} in dialect {new.dialect!r} and continued at {new.endpoint}"
        return replace(step, why=f"{step.why} ({moved})")
    return step
