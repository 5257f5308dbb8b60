"""Describe a handover: the target, system prompt and tools with which a conversation continues.

The session applies a `Handover` after a call of a handoff tool has returned.
"""

from collections.abc import Sequence
from types import EllipsisType
from typing import Any

from msgspec import Struct

from actors.errors import ConfigError


class Handover(Struct, frozen=True, eq=False, kw_only=True):
    """The changes to a session after a call of a handoff tool has returned; see `actors.handoff`.

    Args:
        target: The new target: a backend or a pool.
        system: The new system prompt; None removes it. By default, it does not change.
        tools: The new tools, as in `Runtime.open`. By default, they do not change. The list is read again at each
            handoff.

    Raises:
        ConfigError: `target` or `system` is not a string, or `tools` is not a sequence.
    """

    target: str
    system: str | EllipsisType | None = ...
    tools: (
        Sequence[Any] | EllipsisType
    ) = ...  # Any: entries of `tools=`, whose types this package cannot import

    def __post_init__(self) -> None:
        if not isinstance(self.target, str):
            raise ConfigError(f"target= takes the name of a target, not {type(self.target).__name__}")
        if not isinstance(self.system, str | EllipsisType | None):
            raise ConfigError(f"system= takes a string, not {type(self.system).__name__}")
        if isinstance(self.tools, str) or not isinstance(self.tools, Sequence | EllipsisType):
            raise ConfigError(
                f"tools= of a handoff must be a list, not {type(self.tools).__name__}, "
                "because every handoff reads it again"
            )

    @property
    def has_changes(self) -> bool:
        """True if the handover changes the system prompt or the tools, in addition to the target."""
        return self.system is not ... or self.tools is not ...
