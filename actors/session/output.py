"""Parse answers as the type or JSON Schema that a caller passes as `output=`.

pydantic, which is imported when the first type is used, derives the schema of a type and validates values. Providers
accept only schemas of objects, so any other schema is wrapped in the schema of an object with the property `value`.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, Generic, TypeVar

from actors.core.data.jsonio import Json, JsonValue, dump, parse
from actors.core.data.record import replace
from actors.core.schemas.arguments import ArgumentError, compile_schema
from actors.core.schemas.readings import FittingValue, only_repair
from actors.core.schemas.repair import Repair, RepairMode, read_json
from actors.core.turn.output import MAX_ANSWER, Candidate, candidates
from actors.errors import ConfigError, ToolDefinitionError
from actors.kernel.host_code import call_host
from actors.scheduler.failures import describe_for_model
from actors.telemetry import logger
from actors.tools.signature import schema_and_converter

T = TypeVar("T")

_WRAPPED = re.compile(r"^value\b\.?")
"""The start of an error's or a repair's path that exists only because the value is wrapped."""

_SHARED = ("$defs", "definitions", "$schema")
"""Keys that stay at the root of a wrapped schema, because references (`#/$defs/...`) point there."""


class Output(Generic[T]):
    """The type of an answer. Instances are immutable, and asks with the same type share an instance.

    Args:
        schema: JSON Schema of the value.
        convert: Converts valid JSON to a tuple that contains only the value, or returns validation errors. `None` means
            that the caller passed a plain schema, and that the value is the JSON itself.
    """

    def __init__(
        self, schema: Mapping[str, Any], convert: Any = None
    ) -> None:  # Any: `JsonValue` would need casts, and `convert` returns any type
        wrapped, self._is_wrapped = _wrap_schema(schema)
        try:
            self._check = compile_schema(wrapped, tool="output", every_pattern=convert is None)
        except ToolDefinitionError as error:
            why = str(error).removeprefix("Tool 'output' has an unusable schema: ")
            raise ConfigError(f"output= has an invalid schema: {why}") from None
        self._convert = convert
        self.schema: Json = dump(wrapped)
        """JSON Schema of the answer, an object."""

    def parse(
        self, text: str, repair: RepairMode
    ) -> tuple[T, tuple[Repair, ...]] | list[ArgumentError] | str:
        """Return the value of an answer and the repairs that it needed, or the errors of an invalid answer as a list.

        The list is empty if the text does not contain exactly one possible JSON value. If the type's own code, such as
        a validator, raises an unexpected exception, the result is an error message, and the answer can be neither
        accepted nor corrected.
        """
        fitting: dict[Json, FittingValue] = {}
        found = candidates(text, repair)
        for candidate in found:
            fitting |= {dump(each.value): each for each in self._fitting_values(candidate, repair)}
        if len(found) == 1 and not fitting:
            return list(self._check.errors(self._wrap(found[0].value)))
        if len(fitting) != 1:
            return []
        return self._build_value(*fitting.values())

    def _build_value(
        self, fitting_value: FittingValue
    ) -> tuple[T, tuple[Repair, ...]] | list[ArgumentError] | str:
        """Convert JSON that fits the schema to a value of the output type. The return value is as in `parse`."""
        value, repairs = fitting_value.value, fitting_value.repairs
        if self._is_wrapped:
            assert isinstance(value, dict)
            value = value["value"]
            repairs = tuple([replace(each, path=_WRAPPED.sub("", each.path)) for each in repairs])
        if self._convert is None:
            return (value, repairs)  # type: ignore[return-value]  # with a plain schema, the value is JSON
        made: tuple[T] | list[ArgumentError] | str = call_host(
            partial(self._convert, value), _output_type_error
        )
        return (made[0], repairs) if isinstance(made, tuple) else made

    def _fitting_values(self, candidate: Candidate, repair: RepairMode) -> Iterator[FittingValue]:
        """Yield the interpretations of a JSON value that fit the schema.

        If the value itself fits, it is the only interpretation. Otherwise, repaired values are tried.
        """
        earlier_repairs = tuple([Repair(kind) for kind in candidate.kinds])
        value = self._wrap(candidate.value)
        if self._check.is_valid(value):
            yield FittingValue(value, earlier_repairs)
        elif repair != "strict":
            if (fitting_value := only_repair(value, self._check)) is not None:
                yield FittingValue(fitting_value.value, (*earlier_repairs, *fitting_value.repairs))
            yield from self._parse_nested(candidate.value, earlier_repairs)

    def _parse_nested(self, value: JsonValue, earlier_repairs: tuple[Repair, ...]) -> Iterator[FittingValue]:
        """If `value` is a string that contains JSON, wrap this JSON in an object, and yield the object if it fits the
        schema.
        """
        inner = read_json(value, MAX_ANSWER) if isinstance(value, str) and self._is_wrapped else None
        if inner is not None and self._check.is_valid(formed := self._wrap(inner[0])):
            yield FittingValue(formed, (*earlier_repairs, Repair("text")))

    def _wrap(self, value: JsonValue) -> JsonValue:
        """Wrap a value in an object with the property `value`, if the schema was wrapped.

        A value that is already wrapped is returned unchanged.
        """
        is_formed = not self._is_wrapped or (isinstance(value, dict) and value.keys() == {"value"})
        return value if is_formed else {"value": value}


def _output_type_error(error: BaseException) -> str:
    """Log an exception that the output type raised, and return the error message for the ask."""
    logger.host_code_failed("the type of output=", error, "failed the ask")
    message = " ".join(describe_for_model(error).split())
    return f"the answer could not be parsed, because the type in output= raised {message}"


def _wrap_schema(
    schema: Mapping[str, Any],
) -> tuple[dict[str, JsonValue], bool]:  # Any: `JsonValue` would need casts
    """Return a schema whose type is an object, and True if it wraps the given schema.

    A wrapped schema describes the property `value` of the object.
    """
    given = dict(schema)
    if given.get("type") == "object" or ("type" not in given and "properties" in given):
        return {"type": "object"} | given, False
    shared = {key: given.pop(key) for key in _SHARED if key in given}
    around: dict[str, JsonValue] = {"type": "object", "properties": {"value": given}, "required": ["value"]}
    return around | {"additionalProperties": False} | shared, True


def output_of(requested: Any) -> Output[Any]:  # Any: no type covers all annotations
    """Return the `Output` for the argument `output=` of an ask: a type (any annotation) or a JSON Schema.

    Raises:
        ConfigError: `requested` is neither a type nor a JSON Schema that can be used.
    """
    if isinstance(requested, Mapping):
        try:
            return output_of_schema(dump({**requested}))
        except (ValueError, TypeError) as error:
            raise ConfigError(f"output= is a mapping but not a JSON Schema: {error}") from None
    try:
        hash(requested)
    except TypeError:
        raise ConfigError(
            f"output= must be a type or a JSON Schema, not {type(requested).__name__}"
        ) from None
    return _output_of_type(requested)


@lru_cache(maxsize=256)
def output_of_schema(schema: Json) -> Output[Any]:  # Any: the answer may have any type
    """Return the `Output` for a JSON Schema. Equal schemas share one `Output`."""
    given = parse(schema)
    assert isinstance(given, dict)
    return Output(given)


@lru_cache(maxsize=256)
def _output_of_type(requested: Any) -> Output[Any]:  # Any: no type covers all annotations
    """Return the `Output` for a type. Asks with the same type share one `Output`."""
    return Output(*schema_and_converter(requested))
