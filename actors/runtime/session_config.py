"""Define the values with which a session is opened or resumed, and check them."""

from collections.abc import Iterable, Mapping
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from actors.core.settings.labels import Metadata, Scalar, checked_metadata, checked_title
from actors.core.settings.spending import Budget, checked_budget, checked_tenant
from actors.core.turn.guards import Repeats
from actors.errors import ConfigError
from actors.runtime.validation import check_wait

if TYPE_CHECKING:  # the class of the runtime imports this module
    from actors.core.turn.batch import Approve
    from actors.tools.toolsets import ToolItem


class SessionConfig(Struct, frozen=True):
    """The configuration with which `open` or `resume` starts a session. The log does not contain it.

    Args:
        tools: The tools that the model may call.
        approve: Decides whether a call that needs approval may run; None to wait for a decision of the caller.
        deps: Any object for the tools, which read it from `ToolContext.deps`.
        on_repeat: How to treat calls that the model repeats; None for the setting of the runtime.
        output: The answer type of an ask that waits for its caller; only for `resume`, like all that follow.
        system: A new system prompt; `...` to keep that of the log.
        target: A new target; None to keep that of the log.
        wait: Maximum number of seconds to wait for another host to release the session.

    Raises:
        ConfigError: `approve` is not callable, or `system` or `wait` has a wrong type.
    """

    tools: "Iterable[ToolItem]" = ()
    approve: "Approve | None" = None
    deps: object = None
    on_repeat: Repeats | None = None
    output: Any = None  # Any: any type, or a JSON Schema
    system: str | EllipsisType | None = ...
    target: str | None = None
    wait: float = 0.0

    def __post_init__(self) -> None:
        if self.approve is not None and not callable(self.approve):
            raise ConfigError(
                f"approve= must be a function that takes a tool call, not {self.approve!r}; "
                "to approve every call, pass `lambda call: True`"
            )
        if not isinstance(self.system, str | EllipsisType | None):
            raise ConfigError(f"system= takes a string, not {type(self.system).__name__}")
        check_wait(self.wait)


class SessionFields(Struct, frozen=True):
    """The part of a session's first event that the caller of `open` sets. On resume, the fields come from the log."""

    tenant: str
    budget: Budget | None
    title: str
    metadata: Metadata


def session_fields(
    tenant: str, budget: Budget | None, title: str, metadata: Mapping[str, Scalar] | None
) -> SessionFields:
    """Check these fields of a session's first event, and return them. Raise `ConfigError` if a field is invalid."""
    budget = None if budget is None else checked_budget(budget)
    return SessionFields(checked_tenant(tenant), budget, checked_title(title), checked_metadata(metadata))
