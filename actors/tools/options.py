"""What may be said of a tool beside its schema: who must agree, how long it may take, what it does to the world."""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeAlias, TypedDict, get_args

from actors.core.data.jsonio import JsonValue
from actors.core.log.events import Effects
from actors.tools.signature import is_async

Approval: TypeAlias = Literal["allow", "ask", "deny"]
"""What happens before a call runs: it just runs, somebody is asked, it never runs."""

ApprovalRule: TypeAlias = Approval | Callable[[dict[str, JsonValue]], Approval]
"""The same for every call, or decided from the arguments as the model gave them."""

ResourceRule: TypeAlias = str | tuple[str, ...] | Callable[[dict[str, JsonValue]], str | Iterable[str]]
"""Keys of what a call writes to: the same for every call, or named from the arguments as the model gave them."""


class ToolOptions(TypedDict, total=False):
    """What may be said of a tool beside its schema. The fields are those of `Tool`, with its defaults."""

    approval: ApprovalRule
    timeout: float | None
    effects: Effects
    resources: ResourceRule


def default_approval(effects: Effects) -> Approval:
    """Return what happens before a call of a tool that the host did not write, unless it says so itself."""
    return "allow" if effects == "pure" else "ask"


def wrong_options(approval: object, effects: object, resources: object) -> Iterator[str]:
    """Yield the errors in the options of a tool, each in one line without the tool's name."""
    for name, rule in (("approval", approval), ("resources", resources)):
        if is_async(rule):
            yield f"an async function as {name}=; give a plain one, since nothing waits for it"
    if not callable(approval) and approval not in get_args(Approval):
        yield f"approval={approval!r}; it is 'allow', 'ask', 'deny' or a function"
    if effects not in get_args(Effects):
        yield f"effects={effects!r}; they are 'pure', 'idempotent' or 'once'"
    names = resources if isinstance(resources, tuple) else (resources,)
    if not callable(resources) and not all(isinstance(name, str) for name in names):
        yield f"resources={resources!r}; name one, or a tuple of them, or give a function"
    if effects == "pure" and resources:
        yield "resources and is pure, so it writes to none of them; leave out one of the two"
