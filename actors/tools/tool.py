"""Define `Tool`: a function with its name, its argument schema and its options.

Sessions declare tools to the model; the scheduler runs their functions. MCP servers accept the same options. After a
call of a handoff tool has returned, the session applies its `Handover`: the target, system prompt and tools with which
the conversation continues.
"""

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from types import EllipsisType
from typing import (
    Any,
    Generic,
    Literal,
    Never,
    ParamSpec,
    TypeAlias,
    TypedDict,
    TypeGuard,
    TypeVar,
    Unpack,
    get_args,
    overload,
)

from msgspec import Struct

from actors.core.data.jsonio import Json, JsonValue, dump, parse
from actors.core.log.call_events import Effects
from actors.core.schemas.arguments import ArgumentCheck, ArgumentError, compile_schema
from actors.core.schemas.readings import FittingValue, only_repair
from actors.core.turn.batch import BoundArguments
from actors.errors import ConfigError, KernelError, ToolDefinitionError
from actors.tools.signature import Parameters, context_parameter, is_async, parse_docstring, unwrap_partial

Approval: TypeAlias = Literal["allow", "ask", "deny"]
"""With `allow`, a call runs at once. With `ask`, it waits for a decision. With `deny`, it never runs."""
ApprovalRule: TypeAlias = Approval | Callable[[dict[str, JsonValue]], Approval]
"""One approval for all calls, or a function that returns the approval for the arguments of a call."""
ResourceRule: TypeAlias = str | tuple[str, ...] | Callable[[dict[str, JsonValue]], str | Iterable[str]]
"""Names of the resources that calls write to, or a function that returns them for the arguments of a call."""
P = ParamSpec("P")
R = TypeVar("R")
MAX_DESCRIPTION = 64 * 1024
"""Maximum number of characters of a description, which an untrusted server may have sent. Every request contains it."""
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
"""Matches the tool names that every provider accepts (docs/reference/rulebook.md, tool names)."""


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


@dataclass(frozen=True, eq=False)
class Tool(Generic[P, R]):
    """A function that a model may call, with its name, its argument schema and its options.

    Calling a tool calls its function, so a decorated function stays usable.

    Args:
        name: The name for the model: letters, digits, `_` and `-`, at most 64 characters.
        description: The description for the model.
        parameters: JSON Schema of the arguments, an object.
        function: Called with the fields of the call's arguments as keyword arguments.
        approval: `allow` runs a call without asking, `ask` waits for a decision, and `deny` never runs a call. A
            function may return one of these values for the arguments of each call.
        timeout: Seconds that one call may take; None means no limit.
        effects: The effects of a call on the outside world. `pure` means none, so a call may run again, or receive the
            result of an identical call. `idempotent` means that repeated runs with the same idempotency key have the
            effect of one run. With `once`, a call never runs again.
        resources: Names of the resources that a call writes to, or a function that returns these names for the
            arguments of a call. Calls of a session that write to the same resource run one after another, in call
            order.

    Raises:
        ToolDefinitionError: The name, the function or an option is invalid.
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
    _handover: Handover | None = None  # only for tools that `actors.handoff` returns
    _model: Parameters | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for problem in _definition_errors(self):
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
        """Return a tool with an explicit JSON Schema.

        The function receives the arguments as parsed JSON, one keyword argument for each field. The arguments are
        validated against the schema first, except for patterns with a lookaround or a backreference, which the function
        must check.

        Raises:
            ToolDefinitionError: The schema is invalid, or refers to another document.
        """
        check = compile_schema(schema, tool=name)
        new = cls(
            name,
            description,
            dump(dict(schema)),
            function,
            **options,
        )
        new.__dict__["_check"] = check
        if (taken := new.context_parameter) in _property_names(new.schema):
            raise ToolDefinitionError(
                f"Tool {name!r} has a schema with a field {taken!r}, "
                "but the function receives its context in the parameter of that name; rename one of them"
            )
        return new

    @staticmethod
    def external(
        name: str,
        description: str,
        parameters: Mapping[str, JsonValue],
        *,
        read_only: bool = False,
        **options: Unpack[ToolOptions],
    ) -> "Tool[..., Any]":  # Any: an external tool has no function
        """Return a tool without a function: the caller of the ask provides the results of its calls.

        Args:
            name: The name for the model, as in `Tool`.
            description: The description for the model.
            parameters: JSON Schema of the arguments. Arguments are validated as for every tool.
            read_only: True if calls change nothing. Then `effects` is `pure` by default. By default, only calls of pure
                tools run without approval.
            options: Fields of `Tool`.

        Raises:
            ToolDefinitionError: As for `from_schema`.
        """
        if read_only:
            options.setdefault("effects", "pure")
        options.setdefault("approval", default_approval(options.get("effects", "once")))
        return Tool[..., Any].from_schema(name, description, parameters, _raise_external, **options)

    @property
    def is_external(self) -> bool:
        """True if the tool has no function, so that the caller of the ask provides its results."""
        return self.function is _raise_external

    @property
    def is_read_only(self) -> bool:
        """True if a call changes nothing."""
        return self.effects == "pure"

    def approval_of(self, arguments: dict[str, JsonValue]) -> Approval:
        """Return the approval for a call with these arguments.

        If the approval is a function, an unknown return value means `deny`, and the function's exceptions propagate.
        """
        approval = self.approval if isinstance(self.approval, str) else self.approval(arguments)
        return approval if approval in ("allow", "ask", "deny") else "deny"

    def resource_keys(self, arguments: dict[str, JsonValue]) -> tuple[str, ...]:
        """Return the names of the resources that a call with these arguments writes to.

        If `resources` is a function, its exceptions propagate.
        """
        named = self.resources(arguments) if callable(self.resources) else self.resources
        return (named,) if isinstance(named, str) else tuple(map(str, named))

    @cached_property
    def _check(self) -> ArgumentCheck:
        """The validator of arguments, compiled on first use."""
        return compile_schema(self.schema, tool=self.name)

    @property
    def schema(self) -> dict[str, JsonValue]:
        """The JSON Schema of the parameters, as parsed JSON.

        Each read returns a new value, which the caller may change.
        """
        value = parse(self.parameters)
        assert isinstance(value, dict)
        return value

    @cached_property
    def context_parameter(self) -> str | None:
        """The name of the function's parameter that receives the call's `ToolContext`; None if there is none."""
        return context_parameter(self.function, self.name)

    @cached_property
    def is_async(self) -> bool:
        """True if the function returns an awaitable. Other functions run in a thread."""
        return is_async(self.function)

    def bind(self, arguments: Mapping[str, JsonValue]) -> BoundArguments | tuple[ArgumentError, ...]:
        """Convert a call's arguments to the function's arguments, or return the errors in them.

        Arguments are first validated against the schema, so a string is not accepted as a number, and then converted to
        the function's types. This method corrects no mistakes. A session corrects a small mistake if only one
        correction is possible, and then calls this method again.
        """
        given = dict(arguments)
        if errors := self._check.errors(given):
            return errors
        return BoundArguments(given) if self._model is None else self._model.convert(given)

    def _single_interpretation(self, arguments: Mapping[str, JsonValue]) -> FittingValue | None:
        """Return the arguments with the one correction that makes them fit the schema.

        If no correction or more than one is possible, return None.
        """
        return only_repair(dict(arguments), self._check)


def _property_names(schema: Mapping[str, JsonValue]) -> Collection[object]:
    """Return the names of the properties in a JSON Schema of an object."""
    named = schema.get("properties")
    return named if isinstance(named, dict) else ()


def _raise_external(**arguments: object) -> Never:
    """Raise `KernelError`. This is the function of external tools, which are never called."""
    raise KernelError(
        "An external tool cannot be called, because it has no function; pass its result to `Session.ask`"
    )


def _definition_errors(tool: Tool[..., Any]) -> Iterator[str]:  # Any: tool signatures differ
    """Yield the errors in a tool's definition, each as one line."""
    name: object = tool.name  # `object`, because an untrusted server may send any value
    about: object = tool.description
    if not (isinstance(name, str) and NAME.fullmatch(name)):
        yield (
            f"Tool name {str(name)[:80]!r} is invalid; with name=, pass 1 to 64 letters, digits, '_' or '-', "
            "the first of them a letter"
        )
    if not isinstance(about, str) or len(about) > MAX_DESCRIPTION:
        yield f"Tool {name!r} needs a description of at most {MAX_DESCRIPTION} characters"
    if inspect.isgeneratorfunction(tool.function) or inspect.isasyncgenfunction(tool.function):
        yield f"Tool {name!r} is a generator; return one value instead of yielding"
    if tool.timeout is not None and not 0 < tool.timeout < float("inf"):
        yield f"Tool {name!r} has timeout={tool.timeout!r}; use a number of seconds above 0, or None"
    yield from (
        f"Tool {name!r} has {problem}"
        for problem in option_errors(tool.approval, tool.effects, tool.resources)
    )


def is_tool(value: object) -> TypeGuard[Tool[..., Any]]:  # Any: tool signatures differ
    """Return True for a `Tool`. Unlike `isinstance`, this also tells type checkers the type parameters."""
    return isinstance(value, Tool)


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
    """Convert a function to a tool. Use it as a decorator, with or without arguments.

    Args:
        function: A sync or async function with named parameters. The types of the parameters become the schema; a
            parameter without a type accepts any JSON. Arguments that `functools.partial` bound by name are not
            parameters.
        name: Defaults to the function's name.
        description: Defaults to the docstring up to its first section; its `Args:` section describes the parameters.
        options: Fields of `Tool`: `approval`, `timeout`, `effects`, `resources`.

    Raises:
        ToolDefinitionError: A parameter cannot be passed by name, or its type has no JSON Schema.
    """

    def build_tool(function: Callable[P, R]) -> Tool[P, R]:
        tool_name = name or str(getattr(unwrap_partial(function), "__name__", ""))
        about, notes = parse_docstring(unwrap_partial(function))
        model = Parameters.from_function(function, tool_name, notes)
        return Tool(
            tool_name,
            about if description is None else description,
            model.schema,
            function,
            **options,
            _model=model,
        )

    return build_tool if function is None else build_tool(function)


def with_function(
    tool: Tool[..., Any], *, name: str, function: Callable[..., Any]
) -> Tool[..., Any]:  # Any: tool signatures differ
    """Return a copy of a tool with another name and function, without compiling the schema again."""
    new = replace(tool, name=name, function=function)
    new.__dict__["_check"] = tool._check
    return new
