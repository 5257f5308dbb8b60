"""The form of an answer as a caller asks for it: a type, or a JSON Schema.

pydantic makes the schema of a type and its values, and is imported when the first one is asked for. On the wire the
form is always an object; what is none stands in one, as its `value`.
"""

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, Generic, TypeVar

from actors import telemetry
from actors.core.arguments import ArgumentError, compile_schema
from actors.core.jsonio import Json, JsonValue, dump, parse
from actors.core.output import value_of
from actors.errors import ConfigError, ToolDefinitionError
from actors.execution.calls import for_model
from actors.kernel.host_code import call_host
from actors.tools.signature import reader_of

T = TypeVar("T")

_SHARED = ("$defs", "definitions", "$schema")
"""What stays at the root when a form is put in an object: references lead there."""


class Output(Generic[T]):
    """A form of answers. Frozen, and shared by the asks that have it.

    Args:
        given: JSON Schema of the value.
        read: Makes the value of JSON that conforms; returns it alone in a tuple, or what is wrong with it.
    """

    def __init__(
        self, given: Mapping[str, Any], read: Any = None
    ) -> None:  # Any: JSON; what `reader_of` returns
        made, self._is_wrapped = _as_object(given)
        try:
            self._check = compile_schema(made, tool="output", every_pattern=read is None)
        except ToolDefinitionError as error:
            why = str(error).removeprefix("Tool 'output' has an unusable schema: ")
            raise ConfigError(f"output= has an unusable schema: {why}") from None
        self._read = read
        self.schema: Json = dump(made)
        """JSON Schema of the answer, an object."""

    def read(self, text: str) -> tuple[T] | list[ArgumentError] | str:
        """Return the value of an answer, or what is missing and wrong; an empty list if it is not JSON.

        A text says why nobody can tell: the type's own code raised something else than what is wrong with the value.
        """
        try:
            value = value_of(text)
        except ValueError:
            return []
        if self._is_wrapped and not (isinstance(value, dict) and value.keys() == {"value"}):
            value = {"value": value}
        if errors := self._check.errors(value):
            return list(errors)
        if self._is_wrapped:
            assert isinstance(value, dict)
            value = value["value"]
        if self._read is None:
            return (value,)  # type: ignore[return-value]  # a schema alone says nothing of a type
        made: tuple[T] | list[ArgumentError] | str = call_host(partial(self._read, value), _unreadable)
        return made


def _unreadable(error: BaseException) -> str:
    telemetry.host_code_failed("the type of output=", error, "failed the ask")
    return f"the answer could not be read, because the type of output= raised {' '.join(for_model(error).split())}"


def _as_object(schema: Mapping[str, Any]) -> tuple[dict[str, JsonValue], bool]:  # Any: JSON
    """Return a schema of an object, and whether the given one is that of its `value`."""
    given = dict(schema)
    if given.get("type") == "object" or ("type" not in given and "properties" in given):
        return {"type": "object"} | given, False
    shared = {key: given.pop(key) for key in _SHARED if key in given}
    around = {"type": "object", "properties": {"value": given}, "required": ["value"]}
    return {**around, "additionalProperties": False, **shared}, True


def output_of(asked: Any) -> Output[Any]:  # Any: a type, an annotation or JSON
    """Return the form that a caller asked for: a type (any annotation) or a JSON Schema.

    Raises:
        ConfigError: It is neither, or has no JSON Schema that can be used.
    """
    if isinstance(asked, Mapping):
        try:
            return of_schema(dump(dict(asked)))
        except (ValueError, TypeError) as error:
            raise ConfigError(f"output= is no JSON Schema: {error}") from None
    try:
        hash(asked)
    except TypeError:
        raise ConfigError(f"output= takes a type or a JSON Schema, not {type(asked).__name__}") from None
    return _of_type(asked)


@lru_cache(maxsize=256)
def of_schema(schema: Json) -> Output[Any]:  # Any: JSON
    """Return the form that a schema says."""
    given = parse(schema)
    assert isinstance(given, dict)
    return Output(given)


@lru_cache(maxsize=256)
def _of_type(asked: Any) -> Output[Any]:  # Any: as in `output_of`
    return Output(*reader_of(asked))
