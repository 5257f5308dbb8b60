"""Define the options of a tool besides its schema: approval, timeout, effects and resources.

`Tool`, `@tool` and MCP servers accept these options.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeAlias, TypedDict, get_args

from actors.core.data.jsonio import JsonValue
from actors.core.log.call_events import Effects
from actors.tools.signature import is_async

Approval: TypeAlias = Literal["allow", "ask", "deny"]
"""True if a call runs at once (`allow`), waits for a decision (`ask`) or never runs (`deny`)."""

ApprovalRule: TypeAlias = Approval | Callable[[dict[str, JsonValue]], Approval]
"""One approval for all calls, or a function of the model's arguments."""

ResourceRule: TypeAlias = str | tuple[str, ...] | Callable[[dict[str, JsonValue]], str | Iterable[str]]
"""Names of the resources that a call writes to: the same for all calls, or a function of the model's arguments."""


class ToolOptions(TypedDict, total=False):
    """Options of a tool besides its schema. Names and defaults are the same as in `Tool`."""

    approval: ApprovalRule
    timeout: float | None
    effects: Effects
    resources: ResourceRule


def default_approval(effects: Effects) -> Approval:
    """Return the approval of a tool from outside the host's code that has no `approval` option."""
    return "allow" if effects == "pure" else "ask"


def option_errors(
    approval: object,
    effects: object,
    resources: Any,  # Any: what a caller passes
) -> Iterator[str]:
    """Yield the errors in a tool's options, each in one line without the tool's name."""
    for name, rule in (("approval", approval), ("resources", resources)):
        if is_async(rule):
            yield f"an async function as {name}=; use a function that is not async, because its result is not awaited"
    if not callable(approval) and approval not in get_args(Approval):
        yield f"approval={approval!r}; it is 'allow', 'ask', 'deny' or a function"
    if effects not in get_args(Effects):
        yield f"effects={effects!r}; they are 'pure', 'idempotent' or 'once'"
    several: tuple[object, ...] = resources
    names = several if isinstance(resources, tuple) else (several,)
    if not callable(several) and not all(isinstance(name, str) for name in names):
        yield f"resources={resources!r}; use a name, a tuple of names or a function"
    if effects == "pure" and resources:
        yield "resources and effects='pure', but a pure tool writes to none; remove one of the two options"
