"""Tools from functions: the schema matches the signature, and invalid functions are rejected at their definition."""

import datetime
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, WithJsonSchema

from actors.core.data.jsonio import JsonValue, parse
from actors.core.schemas.arguments import ArgumentError
from actors.core.turn.batch import BoundArguments
from actors.errors import ConfigError, ToolDefinitionError
from actors.tools import Tool, Toolset, tool


class Stop(BaseModel):
    title: str
    nights: int = 1


class Class(Enum):
    FIRST = "first"
    SECOND = "second"


@tool
async def weather(city: str, days: Annotated[int, Field(ge=1, le=14)] = 1) -> str:
    """Current weather of a city.

    Works for cities only.

    Args:
        city: Name of the city,
            in English.
        days (int): How many days.

    Returns:
        One line.
    """
    return f"{city}: 21 C for {days}"


@tool(name="book-trip", approval="ask", timeout=2.5)
def book(stops: list[Stop], seat: Class = Class.SECOND, price: Decimal | None = None) -> int:
    """Book a trip.

    :param stops: Where to stay.
    :param Class seat: How to
        travel.
    """
    return len(stops)


@pytest.mark.anyio
async def test_a_decorated_function_can_still_be_called_directly() -> None:
    assert await weather("Oslo", days=2) == "Oslo: 21 C for 2"
    assert book([Stop(title="a")]) == 1


def test_the_schema_comes_from_the_signature_and_the_docstring() -> None:
    assert weather.name == "weather"
    assert weather.description == "Current weather of a city.\n\nWorks for cities only."
    assert weather.schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Name of the city, in English."},
            "days": {
                "type": "integer",
                "description": "How many days.",
                "default": 1,
                "minimum": 1,
                "maximum": 14,
            },
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    assert parse(weather.parameters) == weather.schema


def test_a_schema_has_descriptions_of_rest_docstrings_and_models_but_no_titles() -> None:
    properties = book.schema["properties"]
    assert isinstance(properties, dict)
    assert properties["stops"] == {
        "type": "array",
        "items": {"$ref": "#/$defs/Stop"},
        "description": "Where to stay.",
    }
    assert isinstance(properties["seat"], dict)
    assert properties["seat"]["description"] == "How to travel."
    text = book.parameters.decode()
    assert '"title":{"type":"string"}' in text
    assert '"title":"' not in text


def test_a_tool_has_the_options_passed_to_its_decorator() -> None:
    assert (book.name, book.approval, book.timeout) == ("book-trip", "ask", 2.5)
    assert (weather.approval, weather.timeout) == ("allow", None)
    assert tool(description="")(plain).description == ""


def test_arguments_fixed_by_a_partial_are_not_in_the_schema() -> None:
    rest = tool(partial(weather.function, days=2))
    assert (rest.name, rest.description) == ("weather", weather.description)
    properties = rest.schema["properties"]
    assert isinstance(properties, dict)
    assert properties == {"city": {"type": "string", "description": "Name of the city, in English."}}
    assert isinstance(rest.bind({"city": "Oslo", "days": 3}), tuple)
    assert isinstance(rest.bind({"city": 5}), tuple)
    assert rest.bind({"city": "Oslo"}) == BoundArguments({"city": "Oslo"})


def test_async_and_blocking_functions_are_distinguished() -> None:
    class Caller:
        async def __call__(self, a: int) -> int:
            return a

    assert weather.is_async
    assert not book.is_async
    assert tool(name="caller")(Caller()).is_async
    assert tool(name="later")(partial(weather.function, days=2)).is_async


def test_arguments_are_converted_to_the_functions_types() -> None:
    bound = book.bind({"stops": [{"title": "Rome"}], "seat": "first", "price": "1.50"})
    assert bound == BoundArguments(
        {"stops": [Stop(title="Rome", nights=1)], "seat": Class.FIRST, "price": Decimal("1.50")}
    )
    assert isinstance(bound, BoundArguments)
    assert book(**bound.kwargs) == 1


def test_omitted_arguments_use_the_functions_defaults() -> None:
    assert weather.bind({"city": "Oslo"}) == BoundArguments({"city": "Oslo"})


@pytest.mark.requirement("U-05")
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, ArgumentError("city", "a value", is_missing=True)),
        ({"city": 1}, ArgumentError("city", "string", "1")),
        ({"city": "x", "days": "2"}, ArgumentError("days", "integer", '"2"')),
        ({"city": "x", "days": 15}, ArgumentError("days", "at most 14", "15")),
        ({"city": "x", "town": 1}, ArgumentError("town", "no such field", "1")),
    ],
)
def test_an_error_names_every_invalid_argument_and_binds_none(
    arguments: dict[str, JsonValue], error: ArgumentError
) -> None:
    assert weather.bind(arguments) == (error,)


def test_arguments_rejected_only_by_the_python_type_raise_an_argument_error() -> None:
    @tool
    def on(day: datetime.date) -> None: ...

    assert on.bind({"day": "2026-01-02"}) == BoundArguments({"day": datetime.date(2026, 1, 2)})
    errors = on.bind({"day": "someday"})
    assert isinstance(errors, tuple)
    assert [(error.path, error.value) for error in errors] == [("day", '"someday"')]


def test_binding_arguments_to_a_function_does_not_change_them() -> None:
    @tool
    def spoil(items: list[int]) -> None:
        items.clear()

    arguments: dict[str, JsonValue] = {"items": [1, 2]}
    bound = spoil.bind(arguments)
    assert isinstance(bound, BoundArguments)
    spoil(**bound.kwargs)
    assert arguments == {"items": [1, 2]}


def test_a_tool_parameter_may_have_any_name() -> None:
    @tool
    def odd(schema: int, model_config: int, _private: int, json: int, p0: int, copy: int = 3) -> None: ...

    arguments: dict[str, JsonValue] = {"schema": 1, "model_config": 2, "_private": 3, "json": 4, "p0": 5}
    assert odd.bind(arguments) == BoundArguments(arguments)


def test_a_parameter_without_a_type_accepts_anything() -> None:
    def loose(a, b=None):  # type: ignore[no-untyped-def]  # the case under test
        return a

    assert tool(loose).bind({"a": [1, {"x": None}]}) == BoundArguments({"a": [1, {"x": None}]})


def test_an_explicit_schema_is_used_unchanged() -> None:
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"a-b": {"type": "integer"}},
        "required": ["a-b"],
    }

    def takes(**arguments: object) -> object:
        return arguments

    raw = Tool.from_schema("raw", "Takes a-b.", schema, takes, approval="ask")
    schema["required"] = []
    assert raw.bind({"a-b": 1, "other": 2}) == BoundArguments({"a-b": 1, "other": 2})
    assert raw.bind({}) == (ArgumentError("a-b", "a value", is_missing=True),)
    assert raw.approval == "ask"
    assert raw._check is raw._check


def plain(a: int) -> int:
    return a


def positional(a: int, /) -> int:
    return a


def starred(*a: int) -> None: ...


def keyworded(**a: int) -> None: ...


def yields(a: int) -> Iterator[int]:
    yield a


async def ayields(a: int) -> AsyncIterator[int]:
    yield a


def connected(lock: "Lock") -> None: ...


class Lock:
    pass


def unknown(a: "Nowhere") -> None:  # type: ignore[name-defined]  # noqa: F821  the case under test
    ...


def callback(a: int, then: Callable[[], int]) -> None: ...


def field_default(a: int = Field(3)) -> None: ...


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (positional, "parameter 'a: int' is positional-only"),
        (starred, "parameter '*a: int' is variadic positional"),
        (keyworded, "parameter '**a: int' is variadic keyword"),
        (yields, "Tool 'yields' is a generator"),
        (ayields, "Tool 'ayields' is a generator"),
        (connected, "parameter 'lock' of type"),
        (callback, "parameter 'then' of type"),
        (unknown, "name 'Nowhere' is not defined"),
        (field_default, "parameter 'a' has Field() as its default; use Annotated"),
        (lambda a: a, "Tool name '<lambda>' is invalid"),
        (Tool.bind, "is an unbound method"),
        (dict.fromkeys, "fromkeys"),
        (min, "Python cannot read the signature"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_rejected_with_a_short_error(
    function: Callable[..., Any], message: str
) -> None:  # Any: any function
    with pytest.raises(ToolDefinitionError) as refused:
        tool(function)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("name", ["", "a b", "a.b", "-a", "_a", "1a", "é", "a" * 65, "a\n", "a\ud800"])
def test_a_name_that_a_provider_refuses_is_rejected(name: str) -> None:
    with pytest.raises(ToolDefinitionError, match="is invalid"):
        Tool.from_schema(name, "", {"type": "object"}, plain)


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan")])
def test_an_invalid_timeout_is_rejected(timeout: float) -> None:
    with pytest.raises(ToolDefinitionError, match="seconds above 0"):
        tool(timeout=timeout)(plain)


def test_a_toolset_keeps_its_order_and_converts_functions() -> None:
    tools = Toolset([weather, plain, book])
    assert tools.names == ("weather", "plain", "book-trip")
    assert [item.name for item in tools] == list(tools.names)
    assert len(tools) == 3
    assert "plain" in tools
    assert tools["book-trip"] is book
    assert tools.find("book-trip") is book
    assert tools.find("book") is None
    assert repr(tools) == "Toolset(weather, plain, book-trip)"


def test_two_tools_with_the_same_name_are_rejected() -> None:
    with pytest.raises(ToolDefinitionError, match="Two tools are named 'weather'"):
        Toolset([weather, tool(name="weather")(plain)])


def test_the_error_for_an_unknown_tool_name_suggests_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r"No tool 'wether' in this set; did you mean 'weather'\?"):
        Toolset([weather])["wether"]
    with pytest.raises(ConfigError, match="there are: none"):
        Toolset()["wether"]
    answer = Toolset([weather]).unknown_tool("wether")["tool_error"]
    assert isinstance(answer, dict)
    assert answer["message"] == "There is no tool wether. Did you mean weather?"


def test_an_invalid_schema_is_rejected_when_its_toolset_is_created() -> None:
    impossible = Tool("odd", "", weather.parameters.replace(b"string", b"strung"), plain)  # type: ignore[arg-type]  # bytes
    with pytest.raises(ToolDefinitionError, match="strung"):
        Toolset([impossible])


def test_a_pattern_that_the_schema_validator_cannot_run_is_left_to_the_python_type() -> None:
    fussy = Annotated[str, WithJsonSchema({"type": "string", "pattern": "^(?!x)"})]

    def call(a: str) -> None: ...

    call.__annotations__["a"] = fussy
    assert tool(call).bind({"a": "y"}) == BoundArguments({"a": "y"})


def test_a_tool_object_is_immutable() -> None:
    with pytest.raises(AttributeError):
        weather.name = "x"  # type: ignore[misc]  # the case under test


def test_a_parameter_of_a_literal_type_is_an_enum_in_the_schema() -> None:
    @tool
    def pick(size: Literal["s", "m"]) -> None: ...

    assert pick.bind({"size": "xl"}) == (ArgumentError("size", 'one of "s", "m"', '"xl"'),)


def test_importing_tools_imports_neither_pydantic_nor_the_validator() -> None:
    program = (
        "import actors.tools, sys; sys.exit('pydantic' in sys.modules or 'jsonschema_rs' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
