"""Parse answers as the type or JSON Schema that a caller passes as `output=`.

pydantic derives the schema of a type and validates its values; it is imported when the first type is used. Providers
require a schema of an object, so the schema of any other value is wrapped in an object with the one property `value`.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, Generic, TypeVar

from actors.core.data.jsonio import Json, JsonValue, dump, parse
from actors.core.data.record import replace
from actors.core.schemas.arguments import ArgumentError, compile_schema
from actors.core.schemas.readings import FittingValue, only_reading
from actors.core.schemas.repair import Repair, RepairMode, read_json
from actors.core.turn.output import MAX_ANSWER, Candidate, candidates
from actors.errors import ConfigError, ToolDefinitionError
from actors.kernel.host_code import call_host
from actors.scheduler.calls import for_model
from actors.telemetry import logger
from actors.tools.signature import reader_of

T = TypeVar("T")

_WRAPPED = re.compile(r"^value\b\.?")
"""The prefix that wrapping adds to the path of an error or a repair."""

_SHARED = ("$defs", "definitions", "$schema")
"""Keys that stay at the root of a wrapped schema, because references (`#/$defs/...`) point there."""


class Output(Generic[T]):
    """The type of an answer. It is immutable, and asks with the same type share it.

    Args:
        given: JSON Schema of the value.
        read: Converts valid JSON to the value, and returns the value in a tuple of one, or its errors. None for a
            plain schema, whose values are JSON.
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

    def parse(
        self, text: str, repair: RepairMode
    ) -> tuple[T, tuple[Repair, ...]] | list[ArgumentError] | str:
        """Return the value of an answer with the repairs it needed, or the errors that make it invalid.

        An empty list of errors means that the text is not exactly one JSON value. A string is returned if the type's
        own code (a validator, for example) raised an unexpected exception, so the answer can be neither accepted nor
        corrected.
        """
        fitting: dict[Json, FittingValue] = {}
        found = candidates(text, repair)
        for candidate in found:
            fitting |= {dump(each.value): each for each in self._readings(candidate, repair)}
        if len(found) == 1 and not fitting:
            return list(self._check.errors(self._wrap(found[0].value)))
        if len(fitting) != 1:
            return []
        return self._build_value(*fitting.values())

    def _build_value(self, reading: FittingValue) -> tuple[T, tuple[Repair, ...]] | list[ArgumentError] | str:
        """Return the value of the output type for JSON that conforms to its schema."""
        value, repairs = reading.value, reading.repairs
        if self._is_wrapped:
            assert isinstance(value, dict)
            value = value["value"]
            repairs = tuple([replace(each, path=_WRAPPED.sub("", each.path)) for each in repairs])
        if self._read is None:
            return (value, repairs)  # type: ignore[return-value]  # without a type, the value is JSON
        made: tuple[T] | list[ArgumentError] | str = call_host(partial(self._read, value), _unreadable)
        return (made[0], repairs) if isinstance(made, tuple) else made

    def _readings(self, candidate: Candidate, repair: RepairMode) -> Iterator[FittingValue]:
        """Yield the interpretations of a JSON value that fit the schema: the value itself, else repaired values."""
        slips = tuple([Repair(kind) for kind in candidate.kinds])
        value = self._wrap(candidate.value)
        if self._check.is_valid(value):
            yield FittingValue(value, slips)
        elif repair != "strict":
            if (reading := only_reading(value, self._check)) is not None:
                yield FittingValue(reading.value, (*slips, *reading.repairs))
            yield from self._inside(candidate.value, slips)

    def _inside(self, value: JsonValue, slips: tuple[Repair, ...]) -> Iterator[FittingValue]:
        """If `value` is a string of JSON that fits the schema once wrapped in an object, yield the wrapped value."""
        inner = read_json(value, MAX_ANSWER) if isinstance(value, str) and self._is_wrapped else None
        if inner is not None and self._check.is_valid(formed := self._wrap(inner[0])):
            yield FittingValue(formed, (*slips, Repair("text")))

    def _wrap(self, value: JsonValue) -> JsonValue:
        """Return a value as the schema requires: wrapped in an object, unless it already is one."""
        is_formed = not self._is_wrapped or (isinstance(value, dict) and value.keys() == {"value"})
        return value if is_formed else {"value": value}


def _unreadable(error: BaseException) -> str:
    logger.host_code_failed("the type of output=", error, "failed the ask")
    return f"the answer could not be read, because the type of output= raised {' '.join(for_model(error).split())}"


def _as_object(schema: Mapping[str, Any]) -> tuple[dict[str, JsonValue], bool]:  # Any: JSON
    """Return the schema of an object, and whether it wraps the given schema as `value`."""
    given = dict(schema)
    if given.get("type") == "object" or ("type" not in given and "properties" in given):
        return {"type": "object"} | given, False
    shared = {key: given.pop(key) for key in _SHARED if key in given}
    around: dict[str, JsonValue] = {"type": "object", "properties": {"value": given}, "required": ["value"]}
    return around | {"additionalProperties": False} | shared, True


def output_of(asked: Any) -> Output[Any]:  # Any: a type, an annotation or JSON
    """Return the output for a caller's `output=`: a type (any annotation) or a JSON Schema.

    Raises:
        ConfigError: `asked` is neither, or its JSON Schema cannot be used.
    """
    if isinstance(asked, Mapping):
        try:
            return of_schema(dump({**asked}))
        except (ValueError, TypeError) as error:
            raise ConfigError(f"output= is not a JSON Schema: {error}") from None
    try:
        hash(asked)
    except TypeError:
        raise ConfigError(f"output= takes a type or a JSON Schema, not {type(asked).__name__}") from None
    return _of_type(asked)


@lru_cache(maxsize=256)
def of_schema(schema: Json) -> Output[Any]:  # Any: JSON
    """Return the output for a JSON Schema."""
    given = parse(schema)
    assert isinstance(given, dict)
    return Output(given)


@lru_cache(maxsize=256)
def _of_type(asked: Any) -> Output[Any]:  # Any: as in `output_of`
    return Output(*reader_of(asked))
