"""One tool: a function, its name, the schema of its arguments, and what the runtime must know of it."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Generic, Literal, ParamSpec, TypeAlias, TypedDict, TypeVar, Unpack, overload

from actors.core.arguments import ArgumentCheck, ArgumentError, compile_schema
from actors.core.batch import BoundArguments
from actors.core.jsonio import Json, JsonValue, dump, parse
from actors.errors import ToolDefinitionError
from actors.tools.docstring import documented
from actors.tools.signature import Parameters

P = ParamSpec("P")
R = TypeVar("R")

Approval: TypeAlias = Literal["allow", "ask", "deny"]

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
"""The names every provider takes (docs/reference/rulebook.md, tool names)."""


class ToolOptions(TypedDict, total=False):
    """What may be said of a tool beside its schema. The fields are those of `Tool`, with its defaults."""

    approval: Approval
    timeout: float | None


@dataclass(frozen=True, eq=False)
class Tool(Generic[P, R]):
    """One tool. Calling it calls the function, so a decorated function stays usable.

    Args:
        name: What the model calls it by: letters, digits, `_` and `-`, at most 64.
        description: For the model.
        parameters: JSON Schema of the arguments, an object.
        function: Called with one keyword argument for each field of the arguments.
        approval: What happens before a call runs: `allow` runs it, `ask` waits for someone's word, `deny` never
            runs it.
        timeout: Seconds one call may take from its beginning; None sets no end but a cancellation.

    Raises:
        ToolDefinitionError: A name no provider takes, or a function that cannot be a tool.
    """

    name: str
    description: str
    parameters: Json
    function: Callable[P, R]
    _: KW_ONLY
    approval: Approval = "allow"
    timeout: float | None = None
    _model: Parameters | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ToolDefinitionError(
                f"Tool name {self.name[:80]!r} is not usable: it takes 1 to 64 letters, digits, '_' or '-', "
                "and starts with a letter; give another with name="
            )
        if inspect.isgeneratorfunction(self.function) or inspect.isasyncgenfunction(self.function):
            raise ToolDefinitionError(
                f"Tool {self.name!r} is a generator; return one value instead of yielding"
            )
        if self.timeout is not None and not 0 < self.timeout < float("inf"):
            raise ToolDefinitionError(
                f"Tool {self.name!r} has timeout={self.timeout!r}; it takes seconds above 0"
            )

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

        The function gets the arguments as they are, one keyword argument for each field.

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
        return made

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
    def is_async(self) -> bool:
        """Whether a call gives something to await. The others need a thread."""
        call = getattr(self.function, "__call__", None)  # noqa: B004  # an object may have an async __call__
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(call)

    def bind(self, arguments: Mapping[str, JsonValue]) -> BoundArguments | tuple[ArgumentError, ...]:
        """Return the function's arguments, or what is missing and wrong in those given.

        The schema judges first, so a text is not taken for a number; then the function's own types are made.
        """
        given = dict(arguments)
        if errors := self.check.errors(given):
            return errors
        return BoundArguments(given) if self._model is None else self._model.read(given)


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
        function: Sync or async, with named parameters. Types become the schema; without one, anything goes.
        name: Defaults to the function's name.
        description: Defaults to the docstring up to its sections; `Args:` describes the parameters.
        options: Fields of `Tool`: `approval`, `timeout`.

    Raises:
        ToolDefinitionError: The signature or a type cannot be put in a JSON Schema.
    """

    def made(function: Callable[P, R]) -> Tool[P, R]:
        called = name or str(getattr(function, "__name__", ""))
        about, notes = documented(function)
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
