"""A handover: whom a conversation goes on with when the model hands it over, and with what."""

from collections.abc import Sequence
from types import EllipsisType
from typing import Any

from msgspec import Struct

from actors.errors import ConfigError


class Handover(Struct, frozen=True, eq=False, kw_only=True):
    """What a call of a tool does to its session when it has returned: see `actors.handoff`.

    Args:
        target: A backend or a pool.
        system: The system prompt from then on, None for none; what is not given stays.
        tools: Likewise all that the model may call, as for `Runtime.open`. Read at the hand-over.

    Raises:
        ConfigError: `target` or `system` is no text, or `tools` can be read only once.
    """

    target: str
    system: str | EllipsisType | None = ...
    tools: Sequence[Any] | EllipsisType = ...  # Any: entries of `tools=`, which stand above this package

    def __post_init__(self) -> None:
        if not isinstance(self.target, str):
            raise ConfigError(f"target= takes the name of a target, not {type(self.target).__name__}")
        if not isinstance(self.system, str | EllipsisType | None):
            raise ConfigError(f"system= takes a text, not {type(self.system).__name__}")
        if isinstance(self.tools, str) or not isinstance(self.tools, Sequence | EllipsisType):
            raise ConfigError(
                f"tools= of a handoff takes a list, not {type(self.tools).__name__}: it is read each time"
            )

    @property
    def changes(self) -> bool:
        """Whether more than the target changes."""
        return self.system is not ... or self.tools is not ...
