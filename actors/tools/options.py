"""Define the options of a tool in addition to its schema: approval, timeout, effects and resources.

`Tool`, `@tool` and MCP servers accept these options.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeAlias, TypedDict, get_args

from actors.core.data.jsonio import JsonValue
from actors.core.log.call_events import Effects
from actors.tools.signature import is_async

Approval: TypeAlias = Literal["allow", "ask", "deny"]
"""With `allow`, a call runs at once. With `ask`, it waits for a decision. With `deny`, it never runs."""

ApprovalRule: TypeAlias = Approval | Callable[[dict[str, JsonValue]], Approval]
"""One approval for all calls, or a function that returns the approval for the arguments of a call."""

ResourceRule: TypeAlias = str | tuple[str, ...] | Callable[[dict[str, JsonValue]], str | Iterable[str]]
"""Names of the resources that calls write to, or a function that returns them for the arguments of a call."""


class ToolOptions(TypedDict, total=False):
    """Options of a tool in addition to its schema. Names and defaults are the same as in `Tool`.

    Args:
        approval: `allow`, the default, runs a call without asking. `ask` waits for a decision, and `deny` never runs a
            call. A function may return one of these values for the arguments of each call.
        timeout: Seconds that one call may take. None, the default, means no limit.
        effects: The effects of a call on the outside world: `pure` means none, and `idempotent` means that a call may
            run again. With `once`, the default, a call never runs again.
        resources: Names of the resources that a call writes to, or a function that returns these names for the
            arguments of a call; none by default. Calls of a session that write to the same resource run one after
            another, in call order.
    """

    approval: ApprovalRule
    timeout: float | None
    effects: Effects
    resources: ResourceRule


def default_approval(effects: Effects) -> Approval:
    """Return the default approval of external tools and tools of MCP servers: only pure tools run without approval."""
    return "allow" if effects == "pure" else "ask"


def option_errors(
    approval: object,
    effects: object,
    resources: Any,  # Any: callers may pass any value
) -> Iterator[str]:
    """Yield the errors in a tool's options. Each error completes a sentence that begins "Tool 'x' has"."""
    for name, rule in (("approval", approval), ("resources", resources)):
        if is_async(rule):
            yield f"an async function as {name}=; use a function that is not async, because its result is not awaited"
    if not callable(approval) and approval not in get_args(Approval):
        yield f"approval={approval!r}; use 'allow', 'ask', 'deny' or a function"
    if effects not in get_args(Effects):
        yield f"effects={effects!r}; use 'pure', 'idempotent' or 'once'"
    several: tuple[object, ...] = resources
    names = several if isinstance(resources, tuple) else (several,)
    if not callable(several) and not all(isinstance(name, str) for name in names):
        yield f"resources={resources!r}; use a name, a tuple of names or a function"
    if effects == "pure" and resources:
        yield "resources and effects='pure', but a pure tool writes to no resource; remove one of the two options"
