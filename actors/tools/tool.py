"""One tool: a function, its name, the schema of its arguments, and what the runtime must know of it."""

import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, Never, ParamSpec, TypeVar, Unpack, overload

from actors.core.data.jsonio import Json, JsonValue, dump, parse
from actors.core.log.events import Effects
from actors.core.schemas.arguments import ArgumentCheck, ArgumentError, compile_schema
from actors.core.schemas.readings import FittingValue, only_reading
from actors.core.turn.batch import BoundArguments
from actors.errors import KernelError, ToolDefinitionError
from actors.tools.handover import Handover
from actors.tools.options import (
    Approval,
    ApprovalRule,
    ResourceRule,
    ToolOptions,
    default_approval,
    wrong_options,
)
from actors.tools.signature import Parameters, context_parameter, inner, is_async

P = ParamSpec("P")
R = TypeVar("R")

MAX_DESCRIPTION = 64 * 1024
"""Characters of a tool's description: it may come from strangers, and each request carries it."""

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
"""The names every provider takes (docs/reference/rulebook.md, tool names)."""


@dataclass(frozen=True, eq=False)
class Tool(Generic[P, R]):
    """One tool. Calling it calls the function, so a decorated function stays usable.

    Args:
        name: What the model calls it by: letters, digits, `_` and `-`, at most 64.
        description: For the model.
        parameters: JSON Schema of the arguments, an object.
        function: Called with one keyword argument for each field of the arguments.
        approval: What happens before a call runs: `allow` runs it, `ask` waits for someone's word, `deny` never
            runs it. Or a function that says one of these words for the arguments of a call.
        timeout: Seconds one call may take from its beginning; None sets no end but a cancellation.
        effects: What a call does to the world. `pure`: nothing, so it may be run again, or answered with what the same
            call gave before. `idempotent`: the same, however often it runs with one idempotency key. `once`: it is
            never run again.
        handover: Whom the conversation goes on with when a call has returned, and with what; see `actors.handoff`.
        resources: Names of what a call writes to, or a function that names it for the arguments of a call. Calls of a
            session that name the same thing run one after another, in call order.

    Raises:
        ToolDefinitionError: A name no provider takes, or a function that cannot be a tool.
    """

    name: str
    description: str
    parameters: Json
    function: Callable[P, R]
    _: KW_ONLY
    approval: ApprovalRule = "allow"
    timeout: float | None = None
    effects: Effects = "once"
    resources: ResourceRule = ()
    handover: Handover | None = None
    _model: Parameters | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ToolDefinitionError(problem)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    @classmethod
    def from_schema(
        cls,
        name: str,
        description: str,
        schema: Mapping[str, JsonValue],
        function: Callable[P, R],
        **options: Unpack[ToolOptions],
    ) -> "Tool[P, R]":
        """Return a tool with a schema written by hand or by someone else.

        The function gets the arguments as they are, one keyword argument for each field. They are validated against
        the schema first, except for patterns with a lookaround or a backreference, which the function checks itself.

        Raises:
            ToolDefinitionError: The schema is impossible, or refers to something outside itself.
        """
        check = compile_schema(schema, tool=name)
        made = cls(
            name,
            description,
            dump(dict(schema)),
            function,
            **options,
        )
        made.__dict__["check"] = check
        if (taken := made.context_parameter) in _properties(made.schema):
            raise ToolDefinitionError(
                f"Tool {name!r}: its schema has a field {taken!r}, which the function takes its context by; rename one"
            )
        return made

    @staticmethod
    def external(
        name: str,
        description: str,
        parameters: Mapping[str, JsonValue],
        *,
        read_only: bool = False,
        **options: Unpack[ToolOptions],
    ) -> "Tool[..., Any]":  # Any: nobody calls it
        """Return a tool without a body: its calls go out to whoever asked the session, who brings the results.

        Args:
            name: As of any tool.
            description: For the model.
            parameters: JSON Schema of the arguments. They are checked as those of any tool.
            read_only: A call changes nothing. Its effects are `pure` then, and it needs no approval unless
                `approval` says so; else it is asked about.
            options: Fields of `Tool`.

        Raises:
            ToolDefinitionError: As of `from_schema`.
        """
        if read_only:
            options.setdefault("effects", "pure")
        options.setdefault("approval", default_approval(options.get("effects", "once")))
        return Tool.from_schema(name, description, parameters, _bodiless, **options)

    @property
    def is_external(self) -> bool:
        """Whether it has no body: whoever asked the session brings the results of its calls."""
        return self.function is _bodiless

    @property
    def is_read_only(self) -> bool:
        """Whether a call changes nothing."""
        return self.effects == "pure"

    def approval_of(self, arguments: dict[str, JsonValue]) -> Approval:
        """Return what happens before a call with these arguments runs. A rule that says no such word denies it.

        What a rule raises is let through.
        """
        said = self.approval if isinstance(self.approval, str) else self.approval(arguments)
        return said if said in ("allow", "ask", "deny") else "deny"

    def keys_of(self, arguments: dict[str, JsonValue]) -> tuple[str, ...]:
        """Return the keys of what a call with these arguments writes to. What a rule raises is let through."""
        named = self.resources(arguments) if callable(self.resources) else self.resources
        return (named,) if isinstance(named, str) else tuple(map(str, named))

    @cached_property
    def check(self) -> ArgumentCheck:
        """The compiled schema, compiled at the first use."""
        return compile_schema(self.schema, tool=self.name)

    @property
    def schema(self) -> dict[str, JsonValue]:
        """The parameters as a value, a new one at each read."""
        value = parse(self.parameters)
        assert isinstance(value, dict)
        return value

    @cached_property
    def context_parameter(self) -> str | None:
        """Which parameter is given the call's `ToolContext`; None if the function wants none."""
        return context_parameter(self.function, self.name)

    @cached_property
    def is_async(self) -> bool:
        """Whether a call gives something to await. The others need a thread."""
        return is_async(self.function)

    def bind(self, arguments: Mapping[str, JsonValue]) -> BoundArguments | tuple[ArgumentError, ...]:
        """Return the function's arguments, or what is missing and wrong in those given.

        The schema judges first, so a text is not taken for a number; then the function's own types are made. What is
        done about arguments with a slip, such as a text for a number, is the batch's (`actors.core.turn.batch`).
        """
        given = dict(arguments)
        if errors := self.check.errors(given):
            return errors
        return BoundArguments(given) if self._model is None else self._model.read(given)

    def only_reading(self, arguments: Mapping[str, JsonValue]) -> FittingValue | None:
        """Return wrong arguments as they fit the schema, if exactly one reading of them does; else None."""
        return only_reading(dict(arguments), self.check)


def _properties(schema: Mapping[str, JsonValue]) -> Collection[object]:
    named = schema.get("properties")
    return named if isinstance(named, dict) else ()


def _bodiless(**arguments: object) -> Never:
    raise KernelError("An external tool has no body; whoever asked the session brings its result")


def _problems(tool: Tool[..., Any]) -> Iterator[str]:  # Any: any function
    """Yield what keeps a tool from being one, each in one line."""
    name: object = tool.name  # what is written here may be anything: definitions come from strangers too
    about: object = tool.description
    if not (isinstance(name, str) and NAME.fullmatch(name)):
        yield (
            f"Tool name {str(name)[:80]!r} is not usable: it takes 1 to 64 letters, digits, '_' or '-', "
            "and starts with a letter; give another with name="
        )
    if not isinstance(about, str) or len(about) > MAX_DESCRIPTION:
        yield f"Tool {name!r} needs a text of at most {MAX_DESCRIPTION} characters as its description"
    if inspect.isgeneratorfunction(tool.function) or inspect.isasyncgenfunction(tool.function):
        yield f"Tool {name!r} is a generator; return one value instead of yielding"
    if tool.timeout is not None and not 0 < tool.timeout < float("inf"):
        yield f"Tool {name!r} has timeout={tool.timeout!r}; it takes seconds above 0"
    yield from (
        f"Tool {name!r} has {problem}"
        for problem in wrong_options(tool.approval, tool.effects, tool.resources)
    )


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[ToolOptions],
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[ToolOptions],
) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
    """Make a tool of a function. Use it bare or with arguments.

    Args:
        function: Sync or async, with named parameters. Types become the schema; without one, anything goes. What
            `functools.partial` gave it by name is no parameter any more.
        name: Defaults to the function's name.
        description: Defaults to the docstring up to its sections; `Args:` describes the parameters.
        options: Fields of `Tool`: `approval`, `timeout`, `effects`, `resources`.

    Raises:
        ToolDefinitionError: The signature or a type cannot be put in a JSON Schema.
    """

    def made(function: Callable[P, R]) -> Tool[P, R]:
        from actors.tools.docstring import documented  # only where a function is made a tool

        called = name or str(getattr(inner(function), "__name__", ""))
        about, notes = documented(inner(function))
        model = Parameters.of(function, called, notes)
        return Tool(
            called,
            about if description is None else description,
            model.schema,
            function,
            **options,
            _model=model,
        )

    return made if function is None else made(function)


def replaced(
    tool: Tool[..., Any], *, name: str, function: Callable[..., Any]
) -> Tool[..., Any]:  # Any: any function
    """Return a tool that is called otherwise and does something else, and is described as this one is."""
    made = replace(tool, name=name, function=function)
    made.__dict__["check"] = tool.check
    return made
