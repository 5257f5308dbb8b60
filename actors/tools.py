"""Tools: functions a model may call, described once and frozen.

`@tool` reads a function's signature and docstring and makes the JSON Schema the provider is shown; the same
schema judges the model's arguments before the function runs, and pydantic then turns them into the types the
function asks for. `Tool.from_schema` takes a schema as it is. A `Toolset` is what a session offers.

Nothing is run here: the scheduler awaits async functions and gives the others a worker thread. pydantic and
the validator are imported when the first tool is defined.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    ParamSpec,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    get_type_hints,
    overload,
)

from actors.core.arguments import ArgumentCheck, ArgumentError, compile_schema, unknown_tool_error
from actors.core.batch import BoundArguments
from actors.core.ingest import ingest
from actors.core.jsonio import Json, JsonValue, dump, parse
from actors.errors import ConfigError, ToolDefinitionError

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

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
    _model: "_Arguments | None" = field(default=None, repr=False)

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
        about, notes = _documented(function)
        model = _Arguments.of(function, called, notes)
        return Tool(
            called,
            about if description is None else description,
            model.schema,
            function,
            **options,
            _model=model,
        )

    return made if function is None else made(function)


class Toolset:
    """The tools of a session, in order, by name. Frozen.

    Args:
        tools: Tools, or functions to make tools of.

    Raises:
        ToolDefinitionError: Two tools of one name, or an impossible schema.
    """

    def __init__(
        self, tools: Iterable[Tool[..., Any] | Callable[..., Any]] = ()
    ) -> None:  # Any: any function
        self._tools: dict[str, Tool[..., Any]] = {}  # Any: any function
        for item in tools:
            added = item if isinstance(item, Tool) else tool(item)
            if added.name in self._tools:
                raise ToolDefinitionError(
                    f"Two tools are named {added.name!r}; give one another name with name="
                )
            _ = added.check  # an impossible schema is found now, not in the middle of a turn
            self._tools[added.name] = added

    def __iter__(self) -> Iterator[Tool[..., Any]]:  # Any: any function
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __getitem__(self, name: str) -> Tool[..., Any]:  # Any: any function
        if found := self._tools.get(name):
            return found
        close = get_close_matches(name, self._tools, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(self._tools) or 'none'}"
        raise ConfigError(f"No tool {name!r} in this set; {hint}")

    def __repr__(self) -> str:
        return f"Toolset({', '.join(self._tools)})"

    @property
    def names(self) -> tuple[str, ...]:
        """Names in order."""
        return tuple(self._tools)

    def find(self, name: str) -> Tool[..., Any] | None:  # Any: any function
        """Return the tool of that name, if there is one."""
        return self._tools.get(name)

    def unknown(self, name: str) -> dict[str, JsonValue]:
        """Return the `tool_error` that answers a model's call of a tool that is not here."""
        return unknown_tool_error(name, self._tools)


# --- from a signature to a schema --------------------------------------------------------------------


@dataclass(frozen=True)
class _Arguments:
    """A function's parameters as a pydantic model. Fields are numbered, so any parameter name will do."""

    model: type["BaseModel"]
    names: tuple[str, ...]
    schema: Json

    @classmethod
    def of(
        cls, function: Callable[..., Any], name: str, notes: Mapping[str, str]
    ) -> "_Arguments":  # Any: any function
        from pydantic import ConfigDict, Field, create_model

        parameters = _parameters(function, name)
        hints = _hints(function, name)
        fields: dict[str, Any] = {}  # Any: pydantic takes (type, FieldInfo) pairs
        for number, (key, parameter) in enumerate(parameters.items()):
            info: dict[str, Any] = {"alias": key}  # Any: arguments of Field
            if note := notes.get(key):
                info["description"] = note
            fields[f"p{number}"] = (hints.get(key, Any), Field(**info, **_default(parameter)))
        try:
            config = ConfigDict(extra="forbid", protected_namespaces=())
            model: type[BaseModel] = create_model("Arguments", __config__=config, **fields)
            schema = dump(_trimmed(model.model_json_schema()))
        except Exception as error:  # pydantic raises many kinds, and so do the types' own hooks
            raise ToolDefinitionError(_blamed(name, parameters, hints, error)) from None
        return cls(model, tuple(parameters), schema)

    def read(self, given: dict[str, JsonValue]) -> BoundArguments | tuple[ArgumentError, ...]:
        """Make the function's types. Parameters that were not given are left to the function's defaults."""
        from pydantic import ValidationError

        try:
            value = self.model.model_validate(given)
        except ValidationError as error:
            return _from_pydantic(error)
        fields = {f"p{number}": name for number, name in enumerate(self.names)}
        return BoundArguments(
            {name: getattr(value, key) for key, name in fields.items() if key in value.model_fields_set}
        )


def _parameters(
    function: Callable[..., Any], name: str
) -> Mapping[str, inspect.Parameter]:  # Any: any function
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise ToolDefinitionError(f"Tool {name!r} has no signature to read; use Tool.from_schema") from None
    for key, parameter in parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ToolDefinitionError(
                f"Tool {name!r}: parameter {str(parameter)!r} is {parameter.kind.description}; "
                "models give named arguments only, so name each parameter or use Tool.from_schema"
            )
        if key in ("self", "cls") and parameter.annotation is parameter.empty:
            raise ToolDefinitionError(
                f"Tool {name!r} is an unbound method; use tool(instance.{name}) instead"
            )
        if type(parameter.default).__name__ == "FieldInfo":
            raise ToolDefinitionError(
                f"Tool {name!r}: parameter {key!r} has Field() as its default; use Annotated[T, Field(...)]"
            )
    return parameters


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:  # Any: types
    target = function if hasattr(function, "__annotations__") else getattr(function, "__call__", function)  # noqa: B004
    try:
        return get_type_hints(inspect.unwrap(target), include_extras=True)
    except Exception as error:  # annotations are code: they may raise anything
        reason = f"{type(error).__name__}: {error}".replace("\n", " ")[:200]
        raise ToolDefinitionError(
            f"Tool {name!r}: its annotations cannot be read ({reason}); define the types before the tool"
        ) from None


def _default(parameter: inspect.Parameter) -> dict[str, Any]:  # Any: arguments of Field
    """Show a default in the schema if JSON can say it. The function's own default is used in any case."""
    value = parameter.default
    if value is parameter.empty:
        return {}
    if value is None or isinstance(value, bool | int | float | str):
        return {"default": value}
    return {"default_factory": lambda: value}


_DATA = frozenset({"default", "const", "enum", "examples"})


def _trimmed(schema: Any) -> Any:  # Any: JSON
    """Return a generated schema without titles, and without patterns the linear engine cannot run.

    pydantic checks what such a pattern says (it makes one for Decimal) when it reads the value.
    """
    if isinstance(schema, list):
        return [_trimmed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value if key in _DATA else _trimmed(value)
        for key, value in schema.items()
        if not (isinstance(value, str) and (key == "title" or (key == "pattern" and "(?!" in value)))
    }


def _blamed(
    name: str, parameters: Iterable[str], hints: Mapping[str, Any], error: Exception
) -> str:  # Any: types
    """Return the message for a schema that could not be made, with the parameter it failed on."""
    from pydantic import TypeAdapter

    for key in parameters:
        try:
            TypeAdapter(hints.get(key, Any)).json_schema()
        except Exception:  # the one that failed before
            hint = inspect.formatannotation(hints[key])
            return f"Tool {name!r}: parameter {key!r} of type {hint} has no JSON Schema; use JSON types"
    reason = " ".join(str(error).split())[:200]
    return f"Tool {name!r}: its parameters have no JSON Schema ({reason})"


def _from_pydantic(error: "ValidationError") -> tuple[ArgumentError, ...]:
    found = []
    for fault in error.errors(include_url=False, include_context=False)[:16]:
        path = ""
        for part in fault["loc"]:
            path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
        got = ingest(fault["input"]).json.decode()
        found.append(ArgumentError(path[:200], fault["msg"][:200], got if len(got) <= 80 else got[:79] + "…"))
    return tuple(found)


# --- docstrings --------------------------------------------------------------------------------------

_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Returns|Return|Raises|Yields):\s*$|:(param|returns?|raises)\b"
)
_PARAMETER_SECTION = re.compile(r"(Args|Arguments|Parameters):\s*$")
_GOOGLE = re.compile(r"(\s+)\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
_REST = re.compile(r":param\s+(?:[^:]*\s)?(\w+):\s*(.*)$")


def _documented(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:  # Any: any function
    """Return the description and the parameters' notes of a docstring, Google or reST style."""
    lines = (inspect.getdoc(function) or "").splitlines()
    start = next((number for number, line in enumerate(lines) if _SECTION.match(line)), len(lines))
    return "\n".join(lines[:start]).strip(), _notes(lines[start:])


def _notes(lines: Iterable[str]) -> dict[str, str]:
    notes: dict[str, str] = {}
    current, indent, is_open = "", 0, False
    for line in lines:
        if found := _REST.match(line):
            current, indent, is_open = found[1], 0, False
            notes[current] = found[2]
        elif line and not line[0].isspace():
            current, is_open = "", bool(_PARAMETER_SECTION.match(line))
            indent = 0
        elif is_open and (found := _GOOGLE.match(line)) and (not indent or len(found[1]) <= indent):
            current, indent = found[2], len(found[1])
            notes[current] = found[3]
        elif current and line.strip():
            notes[current] = f"{notes[current]} {line.strip()}".strip()
    return notes
