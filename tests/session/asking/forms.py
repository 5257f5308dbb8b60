"""Generated types and JSON Schemas of answers, with values that conform to them."""

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
_OrNone: Any = Optional  # these are of types that are values here
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
class Form:
    """A type, and one value of it as JSON."""

    type: Any  # any annotation
    value: Any  # JSON


LEAVES: tuple[Form, ...] = (
    Form(int, 3),
    Form(str, "a"),
    Form(bool, True),
    Form(float, 1.5),
    Form(None, None),
    Form(Any, [1, "a"]),
    Form(Color, "red"),
    Form(Level, 1),
    Form(Literal["a", "b"], "b"),
    Form(Literal["a", 1, None], 1),
    Form(date, "2026-01-02"),
    Form(datetime, "2026-01-02T03:04:05Z"),
    Form(UUID, "12345678-1234-5678-1234-567812345678"),
    Form(Decimal, "1.5"),
    Form(pydantic.AnyUrl, "https://x.example/"),
    Form(Annotated[int, Field(ge=1, le=9, multiple_of=3)], 6),
    Form(Annotated[str, Field(min_length=1, max_length=9, pattern="[a-z]+")], "abc"),
    Form(Annotated[str, Field(pattern="^[a-z]+$", description="A word.")], "abc"),
    Form(Annotated[list[int], Field(min_length=2, max_length=3)], [1, 2]),
    Form(dict[str, int], {"a": 1}),
    Form(dict, {"a": [1]}),
    Form(tuple[int, str], [1, "a"]),
    Form(Place, ["a", 1]),
    Form(Tree, {"value": 1, "leaves": [{"value": 2, "leaves": [], "twin": None}], "twin": None}),
    Form(Point, {"x": 1.0, "y": 2.0, "tags": []}),
)


def _listed(inner: Form) -> Form:
    return Form(_List[inner.type], [inner.value])


def _optional(inner: Form) -> Form:
    return Form(_OrNone[inner.type], inner.value)


def _keyed(inner: Form) -> Form:
    return Form(_Keyed[str, inner.type], {"k": inner.value})


def _either(arms: tuple[Form, Form]) -> Form:
    return Form(arms[0].type | arms[1].type if _may_be_joined(arms) else arms[0].type, arms[0].value)


def _may_be_joined(arms: tuple[Form, Form]) -> bool:
    return all(isinstance(arm.type, type) for arm in arms)


def _kinds(inner: Form) -> Form:
    """Return a choice of two objects that a word in them tells apart."""
    one, two = (_kind(word, inner) for word in ("a", "b"))
    return Form(Annotated[one | two, Field(discriminator="kind")], {"kind": "b", "held": inner.value})


def _kind(word: str, inner: Form) -> Any:  # Any: a type that is a value here
    fields: dict[str, Any] = {
        "kind": (_Word[word], ...),
        "held": (inner.type, ...),
    }  # Any: as pydantic takes them
    return create_model(f"Kind{next(_NUMBERS)}", **fields)


@st.composite
def _models(draw: st.DrawFn, inner: st.SearchStrategy[Form]) -> Form:
    """Return a model: some members may be left out, or are described, or are open to more."""
    members = draw(st.lists(st.tuples(inner, st.integers(0, 3)), min_size=0, max_size=4))
    fields: dict[str, Any] = {}  # Any: as pydantic takes them
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
    config = pydantic.ConfigDict(extra=extra)  # type: ignore[typeddict-item]  # one of the literals
    made = create_model(f"Model{next(_NUMBERS)}", __config__=config, **fields)
    return Form(made, value)


def _records(inner: Form) -> Form:
    made = make_dataclass(f"Record{next(_NUMBERS)}", [("held", inner.type)])
    return Form(made, {"held": inner.value})


def _extend(inner: st.SearchStrategy[Form]) -> st.SearchStrategy[Form]:
    return st.one_of(
        inner.map(_listed),
        inner.map(_optional),
        inner.map(_keyed),
        inner.map(_records),
        inner.map(_kinds),
        st.tuples(inner, inner).map(_either),
        _models(inner),
    )


FORMS = st.recursive(st.sampled_from(LEAVES), _extend, max_leaves=6)

# ---- schemas that nobody's type made

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
"""JSON Schemas of answers; some cannot be used, and none of those gets as far as a provider."""
