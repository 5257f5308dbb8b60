"""Convert a function's signature and docstring to a JSON Schema, and validated arguments to the function's types.

`tool` and structured outputs use this module. A docstring in Google or reST style describes the tool and its
parameters. pydantic, which does the conversions, is imported when the first tool is defined.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Never, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from actors.core.data.ingest import ingest
from actors.core.data.jsonio import Json, JsonValue, dump, is_array, is_object
from actors.core.schemas.arguments import ArgumentError
from actors.core.turn.batch import BoundArguments
from actors.errors import ConfigError, ToolDefinitionError
from actors.interrupts import is_from_signal
from actors.kernel.host_code import call_host
from actors.tools.context import ToolContext

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Returns|Return|Raises|Yields):\s*$|:(param|returns?|raises)\b"
)
_PARAMETER_SECTION = re.compile(r"(Args|Arguments|Parameters):\s*$")
_GOOGLE = re.compile(r"(\s+)\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
_REST = re.compile(r":param\s+(?:[^:]*\s)?(\w+):\s*(.*)$")


class Parameters(Struct, frozen=True):
    """A function's parameters as a pydantic model.

    The fields of the model are numbered (`p0`, `p1`, ...), because pydantic does not accept every parameter name as a
    field name. `fields` contains pairs of a field name and the name of its parameter; `schema` is the JSON Schema for
    the model.
    """

    model: type["BaseModel"]
    fields: tuple[tuple[str, str], ...]
    schema: Json

    @classmethod
    def from_function(
        cls, function: Callable[..., Any], name: str, notes: Mapping[str, str]
    ) -> "Parameters":  # Any: tool signatures differ
        """Return a function's parameters. `name` is the tool's name, and `notes` contains descriptions by parameter
        name.

        Raises:
            ToolDefinitionError: A parameter cannot be passed by name, or its type has no JSON Schema.
        """
        from pydantic import ConfigDict, Field, create_model

        hints = _type_hints(function, name)
        context = context_parameter(function, name)
        parameters = {key: each for key, each in _named_parameters(function, name).items() if key != context}
        fields: dict[str, Any] = {}  # Any: `create_model` expects pairs of a type and a FieldInfo
        for number, (key, parameter) in enumerate(parameters.items()):
            info: dict[str, Any] = {"alias": key}  # Any: `Field` arguments differ in type
            if note := notes.get(key):
                info["description"] = note
            fields[f"p{number}"] = (hints.get(key, Any), Field(**info, **_default_arguments(parameter)))

        def build_model() -> "tuple[type[BaseModel], Json]":
            config = ConfigDict(extra="forbid", protected_namespaces=())
            model: type[BaseModel] = create_model("Arguments", __config__=config, **fields)
            return model, dump(_clean_generated_schema(model.model_json_schema()))

        # Pydantic and the types' own hooks may raise any exception.
        def raise_definition_error(error: BaseException) -> Never:
            raise ToolDefinitionError(_schema_error(name, parameters, hints, error)) from None

        model, schema = call_host(build_model, raise_definition_error)
        return cls(model, tuple(zip(fields, parameters, strict=True)), schema)

    def convert(self, arguments: dict[str, JsonValue]) -> BoundArguments | tuple[ArgumentError, ...]:
        """Convert JSON arguments to the function's types, or return the errors in them.

        Omitted parameters stay omitted, so that the function's own defaults apply.
        """
        try:
            value = self.model.model_validate(arguments)
        except ValueError as error:
            from pydantic import ValidationError  # slow, so imported only after an error

            if not isinstance(error, ValidationError):
                raise
            return _argument_errors(error)
        given_fields = value.model_fields_set
        return BoundArguments({name: getattr(value, key) for key, name in self.fields if key in given_fields})


def is_async(function: object) -> bool:
    """Return True if calling the object returns an awaitable."""
    call = getattr(function, "__call__", None)  # noqa: B004  # an object may have an async __call__
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def unwrap_partial(function: Callable[..., Any]) -> Callable[..., Any]:  # Any: tool signatures differ
    """Return the function that a `functools.partial` wraps, or any other function unchanged."""
    return unwrap_partial(function.func) if isinstance(function, partial) else function


def context_parameter(function: Callable[..., Any], name: str) -> str | None:  # Any: tool signatures differ
    """Return the name of the parameter that is annotated with `ToolContext`; None if there is none.

    Raises:
        ToolDefinitionError: Several parameters have this annotation, or an annotation that mentions `ToolContext`
            cannot be resolved.
    """
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # a built-in function without a signature
        return None
    written = {key: each.annotation for key, each in parameters.items() if each.annotation is not each.empty}
    try:
        hints = {**written, **_type_hints(function, name)}
    except ToolDefinitionError:
        if not any(isinstance(each, str) and "ToolContext" in each for each in written.values()):
            return None  # an annotation cannot be resolved, but no annotation mentions a context
        raise
    found = [key for key in written if _is_context(hints[key])]
    if len(found) > 1:
        raise ToolDefinitionError(
            f"Tool {name!r} has {len(found)} parameters for a ToolContext, {', '.join(found)}; keep only one"
        )
    return found[0] if found else None


def _is_context(annotation: Any) -> bool:  # Any: an annotation may be any object
    """Return True if an annotation is `ToolContext`, with or without type arguments, or a union that contains it."""
    if get_origin(annotation) in (Union, UnionType):
        return any(map(_is_context, get_args(annotation)))
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    kind = get_origin(annotation) or annotation
    return isinstance(kind, type) and issubclass(kind, ToolContext)


def schema_and_converter(
    annotation: Any,
) -> tuple[
    dict[str, Any], Callable[[JsonValue], tuple[Any] | list[ArgumentError]]
]:  # Any: the type is known only at run time
    """Return the JSON Schema of a type, and a function that converts JSON to a value of the type.

    The function returns a tuple with the value, or a list of errors.

    Raises:
        ConfigError: The value is not a type, or the type has no JSON Schema.
    """
    from pydantic import TypeAdapter, ValidationError

    def build_adapter() -> tuple[TypeAdapter[Any], dict[str, Any]]:
        adapter: TypeAdapter[Any] = TypeAdapter(annotation)
        return adapter, _clean_generated_schema(adapter.json_schema())

    # Pydantic and the type's own hooks may raise any exception.
    def raise_definition_error(error: BaseException) -> Never:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ConfigError(
            f"output= of type {inspect.formatannotation(annotation)} has no JSON Schema: {reason}"
        ) from None

    adapter, schema = call_host(build_adapter, raise_definition_error)

    def convert_value(value: JsonValue) -> tuple[Any] | list[ArgumentError]:
        try:
            return (adapter.validate_python(value),)
        except ValidationError as error:
            return list(_argument_errors(error))

    return schema, convert_value


def _named_parameters(
    function: Callable[..., Any], name: str
) -> Mapping[str, inspect.Parameter]:  # Any: tool signatures differ
    """Return the parameters that a model can pass to a tool's function, and the context parameter.

    Raises:
        ToolDefinitionError: A parameter cannot be passed by name, or the signature cannot be read.
    """
    parameters: Mapping[str, inspect.Parameter]
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise ToolDefinitionError(
            f"Tool {name!r}: Python cannot read the signature of this function; use Tool.from_schema"
        ) from None
    if isinstance(function, partial):  # the model does not pass arguments that a partial has already bound
        parameters = {key: each for key, each in parameters.items() if key not in function.keywords}
    for key, parameter in parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ToolDefinitionError(
                f"Tool {name!r}: parameter {str(parameter)!r} is {parameter.kind.description}; "
                "models pass arguments by name only, so name each parameter or use Tool.from_schema"
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


def _type_hints(
    function: Callable[..., Any], name: str
) -> dict[str, Any]:  # Any: an annotation may be any object
    """Return the annotations of a tool's function as types, by parameter name.

    Raises:
        ToolDefinitionError: An annotation cannot be resolved.
    """
    function = unwrap_partial(function)
    target = function if hasattr(function, "__annotations__") else getattr(function, "__call__", function)  # noqa: B004

    # Annotations are code and may raise any exception.
    def raise_definition_error(error: BaseException) -> Never:
        reason = f"{type(error).__name__}: {error}".replace("\n", " ")[:200]
        raise ToolDefinitionError(
            f"Tool {name!r}: the annotations cannot be read ({reason}); define the types before the tool"
        ) from None

    return call_host(
        partial(get_type_hints, inspect.unwrap(target), include_extras=True), raise_definition_error
    )


def _default_arguments(parameter: inspect.Parameter) -> dict[str, Any]:  # Any: `Field` takes many types
    """Return the default of a parameter as keyword arguments for pydantic's `Field`.

    The schema contains the default only if JSON can express it. A call always uses the function's own default.
    """
    value = parameter.default
    if value is parameter.empty:
        return {}
    if value is None or isinstance(value, bool | int | float | str):
        return {"default": value}
    return {"default_factory": lambda: value}


_DATA = frozenset({"default", "const", "enum", "examples"})
"""Keywords whose values are data of the user, not schemas."""


def _clean_generated_schema(schema: Any) -> Any:  # Any: JSON values have many types
    """Return a generated schema without titles, and without patterns that our regular-expression engine rejects.

    pydantic generates such patterns (for Decimal, for example). When pydantic converts a value, it enforces these
    patterns itself.
    """
    if is_array(schema):
        return [_clean_generated_schema(item) for item in schema]
    if not is_object(schema):
        return schema
    return {
        key: value if key in _DATA else _clean_generated_schema(value)
        for key, value in schema.items()
        if not (isinstance(value, str) and (key == "title" or (key == "pattern" and "(?!" in value)))
    }


def _schema_error(
    name: str, parameters: Iterable[str], hints: Mapping[str, Any], error: BaseException
) -> str:  # Any: an annotation may be any object
    """Return an error message for a schema that cannot be generated. It names the parameter that causes the error."""
    from pydantic import TypeAdapter

    for key in parameters:
        try:
            TypeAdapter(hints.get(key, Any)).json_schema()
        except BaseException as failure:  # this parameter causes the error
            if is_from_signal(failure):
                raise
            hint = inspect.formatannotation(hints[key])
            return f"Tool {name!r}: parameter {key!r} of type {hint} has no JSON Schema; use JSON types"
    reason = " ".join(str(error).split())[:200]
    return f"Tool {name!r}: no JSON Schema can be generated for its parameters ({reason}); use JSON types"


def _argument_errors(error: "ValidationError") -> tuple[ArgumentError, ...]:
    """Convert a pydantic error to argument errors, at most 16, with paths such as `items[0].name`."""
    found: list[ArgumentError] = []
    for fault in error.errors(include_url=False, include_context=False)[:16]:
        path = ""
        for part in fault["loc"]:
            path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
        got = ingest(fault["input"]).json.decode()
        found.append(ArgumentError(path[:200], fault["msg"][:200], got if len(got) <= 80 else got[:79] + "…"))
    return tuple(found)


def parse_docstring(
    function: Callable[..., Any],
) -> tuple[str, dict[str, str]]:  # Any: tool signatures differ
    """Return the description in a function's docstring, and the descriptions of its parameters by name.

    The description ends at the first section, such as `Args:`.
    """
    lines = (inspect.getdoc(function) or "").splitlines()
    start = next((number for number, line in enumerate(lines) if _SECTION.match(line)), len(lines))
    return "\n".join(lines[:start]).strip(), _parameter_notes(lines[start:])


def _parameter_notes(lines: Iterable[str]) -> dict[str, str]:
    """Return the parameter descriptions in the lines of a docstring, by parameter name."""
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
