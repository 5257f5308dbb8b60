"""Generated output types and JSON Schemas, with values that conform to them."""

from dataclasses import dataclass, field, make_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from itertools import count
from typing import Annotated, Any, Literal, NamedTuple, Optional
from uuid import UUID

import pydantic
from hypothesis import strategies as st
from pydantic import Field, create_model

_NUMBERS = count()
_OrNone: Any = Optional  # aliases for types that are computed at run time
_List: Any = list
_Keyed: Any = dict
_Word: Any = Literal


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Level(Enum):
    LOW = 1
    HIGH = 2


class Place(NamedTuple):
    name: str
    at: int = 0


class Tree(pydantic.BaseModel):
    value: int
    leaves: list["Tree"] = []
    twin: Optional["Tree"] = None


@dataclass
class Point:
    x: float
    y: float = 0.0
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class TypeWithValue:
    """A type, and one value of it as JSON."""

    type: Any  # any annotation
    value: Any  # JSON


LEAVES: tuple[TypeWithValue, ...] = (
    TypeWithValue(int, 3),
    TypeWithValue(str, "a"),
    TypeWithValue(bool, True),
    TypeWithValue(float, 1.5),
    TypeWithValue(None, None),
    TypeWithValue(Any, [1, "a"]),
    TypeWithValue(Color, "red"),
    TypeWithValue(Level, 1),
    TypeWithValue(Literal["a", "b"], "b"),
    TypeWithValue(Literal["a", 1, None], 1),
    TypeWithValue(date, "2026-01-02"),
    TypeWithValue(datetime, "2026-01-02T03:04:05Z"),
    TypeWithValue(UUID, "12345678-1234-5678-1234-567812345678"),
    TypeWithValue(Decimal, "1.5"),
    TypeWithValue(pydantic.AnyUrl, "https://x.example/"),
    TypeWithValue(Annotated[int, Field(ge=1, le=9, multiple_of=3)], 6),
    TypeWithValue(Annotated[str, Field(min_length=1, max_length=9, pattern="[a-z]+")], "abc"),
    TypeWithValue(Annotated[str, Field(pattern="^[a-z]+$", description="A word.")], "abc"),
    TypeWithValue(Annotated[list[int], Field(min_length=2, max_length=3)], [1, 2]),
    TypeWithValue(dict[str, int], {"a": 1}),
    TypeWithValue(dict, {"a": [1]}),
    TypeWithValue(tuple[int, str], [1, "a"]),
    TypeWithValue(Place, ["a", 1]),
    TypeWithValue(Tree, {"value": 1, "leaves": [{"value": 2, "leaves": [], "twin": None}], "twin": None}),
    TypeWithValue(Point, {"x": 1.0, "y": 2.0, "tags": []}),
)


def _list_of(inner: TypeWithValue) -> TypeWithValue:
    return TypeWithValue(_List[inner.type], [inner.value])


def _optional(inner: TypeWithValue) -> TypeWithValue:
    return TypeWithValue(_OrNone[inner.type], inner.value)


def _dict_of(inner: TypeWithValue) -> TypeWithValue:
    return TypeWithValue(_Keyed[str, inner.type], {"k": inner.value})


def _union(arms: tuple[TypeWithValue, TypeWithValue]) -> TypeWithValue:
    return TypeWithValue(arms[0].type | arms[1].type if _can_be_joined(arms) else arms[0].type, arms[0].value)


def _can_be_joined(arms: tuple[TypeWithValue, TypeWithValue]) -> bool:
    return all(isinstance(arm.type, type) for arm in arms)


def _tagged_union(inner: TypeWithValue) -> TypeWithValue:
    """Return a union of two objects that the value of `kind` distinguishes."""
    one, two = (_tagged_model(word, inner) for word in ("a", "b"))
    return TypeWithValue(
        Annotated[one | two, Field(discriminator="kind")], {"kind": "b", "held": inner.value}
    )


def _tagged_model(word: str, inner: TypeWithValue) -> Any:  # Any: a type
    fields: dict[str, Any] = {
        "kind": (_Word[word], ...),
        "held": (inner.type, ...),
    }  # Any: field definitions of pydantic
    return create_model(f"Kind{next(_NUMBERS)}", **fields)


@st.composite
def _models(draw: st.DrawFn, inner: st.SearchStrategy[TypeWithValue]) -> TypeWithValue:
    """Return a model whose members may be optional or have descriptions, and which may allow extra members."""
    members = draw(st.lists(st.tuples(inner, st.integers(0, 3)), min_size=0, max_size=4))
    fields: dict[str, Any] = {}  # Any: field definitions of pydantic
    value: dict[str, Any] = {}
    for number, (form, kind) in enumerate(members):
        name = f"f{number}"
        value[name] = form.value
        fields[name] = (
            (form.type, ...),
            (form.type, Field(description=f"The {name}.")),
            (_OrNone[form.type], None),
            (_OrNone[form.type], Field(default=None, description="Maybe.")),
        )[kind]
    extra = draw(st.sampled_from(["ignore", "forbid", "allow"]))
    config = pydantic.ConfigDict(extra=extra)  # type: ignore[typeddict-item]  # one of the three literals
    made = create_model(f"Model{next(_NUMBERS)}", __config__=config, **fields)
    return TypeWithValue(made, value)


def _dataclass(inner: TypeWithValue) -> TypeWithValue:
    made = make_dataclass(f"Record{next(_NUMBERS)}", [("held", inner.type)])
    return TypeWithValue(made, {"held": inner.value})


def _extend(inner: st.SearchStrategy[TypeWithValue]) -> st.SearchStrategy[TypeWithValue]:
    return st.one_of(
        inner.map(_list_of),
        inner.map(_optional),
        inner.map(_dict_of),
        inner.map(_dataclass),
        inner.map(_tagged_union),
        st.tuples(inner, inner).map(_union),
        _models(inner),
    )


FORMS = st.recursive(st.sampled_from(LEAVES), _extend, max_leaves=6)

# ---- schemas that no type generates

_WORDS = st.sampled_from(["a", "b", "c d", "$x", "é"])
_TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
_BOUNDS = st.fixed_dictionaries(
    {},
    optional={
        "title": st.just("T"),
        "description": st.just("D"),
        "default": st.sampled_from([None, 1, "a", {"pattern": "x"}]),
        "minLength": st.just(1),
        "maximum": st.just(9),
        "pattern": st.sampled_from(["^a$", "a", "[a-z]+"]),
        "format": st.sampled_from(["date", "uri", "color"]),
        "minItems": st.just(2),
        "uniqueItems": st.just(True),
        "enum": st.sampled_from([["a"], ["a", 1], [None], [{"a": 1}], ["", "a"]]),
        "const": st.sampled_from(["a", 1, None]),
        "examples": st.just(["a"]),
    },
)
_PLAIN = st.tuples(st.one_of(st.just({}), _TYPES.map(lambda kind: {"type": kind})), _BOUNDS).map(
    lambda both: {**both[0], **both[1]}
)


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:  # Any: JSON
    return st.tuples(
        st.dictionaries(_WORDS, inner, max_size=4),
        st.lists(_WORDS, max_size=3, unique=True),
        st.sampled_from([{}, {"additionalProperties": False}, {"additionalProperties": True}]),
        st.booleans(),
    ).map(
        lambda made: {
            "type": "object",
            "properties": made[0],
            "required": [name for name in made[1] if made[3] or name in made[0]],
            **made[2],
        }
    )


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:  # Any: JSON
    arms = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        _objects(inner),
        inner.map(lambda items: {"type": "array", "items": items}),
        arms.map(lambda each: {"anyOf": each}),
        arms.map(lambda each: {"oneOf": each, "discriminator": {"propertyName": "a"}}),
        arms.map(lambda each: {"allOf": each}),
        inner.map(lambda each: {"type": ["object", "null"], "properties": {"a": each}}),
        inner.map(lambda each: {"type": "object", "additionalProperties": each}),
        inner.map(lambda each: {"not": each}),
        inner.map(lambda each: {"type": "array", "prefixItems": [each]}),
        inner.map(lambda each: {"type": "object", "patternProperties": {"^a$": each}}),
    )


_INNER = st.recursive(
    st.one_of(_PLAIN, st.just({"$ref": "#/$defs/A"}), st.just({"$ref": "#/$defs/A", "description": "d"})),
    _schemas,
    max_leaves=8,
)
SCHEMAS = st.tuples(st.one_of(_objects(_INNER), _INNER), _INNER).map(
    lambda both: {**both[0], "$defs": {"A": both[1]}}
)
"""JSON Schemas of answers. Some are unusable, and these never reach a provider."""
