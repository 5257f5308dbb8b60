"""Messages about missing or misspelt fields in arguments, answers and configuration files."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from actors.config import load
from actors.core.data.jsonio import JsonValue
from actors.core.schemas import arguments
from actors.core.schemas.arguments import MAX_ERRORS
from actors.errors import AskFailed, ConfigError
from actors.testing import Say, Turn
from actors.tools import tool
from tests.runtime_support import bodies, openai
from tests.scripted import scripted


class Address(BaseModel):
    model_config = ConfigDict(extra="forbid")
    street: str
    city: str = "Oslo"


class Open(BaseModel):
    street: str


@tool
async def order(item: str, address: Address, quantity: int = 1) -> str:
    """Order something."""
    return f"{quantity} x {item} to {address.city}"


def argument_errors(arguments: dict[str, JsonValue]) -> list[tuple[str, str]]:
    found = order.bind(arguments)
    assert isinstance(found, tuple)
    return [(error.path, "missing" if error.is_missing else error.expected) for error in found]


def test_a_misspelt_argument_is_reported_with_the_nearest_field() -> None:
    assert argument_errors(
        {"itm": "x", "quantty": 3, "address": {"stret": "y", "cty": "z"}, "other_thing": 1}
    ) == [
        ("address.cty", "no such field; did you mean 'city'?"),
        ("address.street", "missing"),
        ("address.stret", "no such field; did you mean 'street'?"),
        ("item", "missing"),
        ("itm", "no such field; did you mean 'item'?"),
        ("other_thing", "no such field"),
        ("quantty", "no such field; did you mean 'quantity'?"),
    ]


def test_a_field_that_is_already_set_is_never_suggested_for_a_misspelt_name() -> None:
    assert argument_errors({"item": "x", "itm": "y", "address": {"street": "s"}}) == [
        ("itm", "no such field")
    ]


@tool
async def visit(address: Open) -> str:
    """Visit an address."""
    return address.street


def test_a_misspelt_field_is_reported_even_where_extra_fields_are_allowed() -> None:
    found = visit.bind({"address": {"stret": "y", "more": 1}})
    assert isinstance(found, tuple)
    assert [(error.path, error.is_missing, error.expected) for error in found] == [
        ("address.street", True, "a value"),
        ("address.stret", False, "no such field; did you mean 'street'?"),
    ]


def test_comparisons_of_unknown_fields_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = list[str]()

    def compare(name: str, known: Iterable[str]) -> str | None:
        compared.extend([name, *known])
        return None

    monkeypatch.setattr(arguments, "nearest", compare)
    long: dict[str, JsonValue] = {f"i{number}" + "t" * 10_000: 1 for number in range(1_000)}
    found = order.bind({"item": "x", "address": {"street": "s"}, **long})
    assert isinstance(found, tuple)
    assert len(found) == MAX_ERRORS
    assert {error.expected for error in found} == {"no such field"}
    assert compared == []
    short: dict[str, JsonValue] = {f"i{number}": 1 for number in range(1_000)}
    assert isinstance(visit.bind({"address": {**long, **short}}), tuple)
    assert 1 < len(compared) < 300
    assert max(map(len, compared)) < 100


@dataclass
class City:
    name: str
    people: int


@pytest.mark.anyio
async def test_a_misspelt_field_of_an_answer_is_reported_to_model_and_caller() -> None:
    server = openai(Turn(Say('{"nme": "Oslo", "people": 3}')), Turn(Say('{"nme": "Oslo", "people": 3}')))
    async with scripted(server) as (_, _, session):
        with pytest.raises(AskFailed) as raised:
            await session.ask("Which city?", output=City, max_corrections=1)
    hint = "nme: expected no such field; did you mean 'name'?"
    assert "name: missing" in str(raised.value)
    assert hint in str(raised.value)
    assert "- nme: expected no such field; did you mean" in str(bodies(server)[-1])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            '[backends.a]\nkind = "openai"\nmodle = "m"\n',
            "[backends.a] lacks the key 'model'; rename 'modle', if it is a misspelling",
        ),
        (
            '[pools.p]\nmember = ["a"]\n',
            "[pools.p] lacks the key 'members'; rename 'member', if it is a misspelling",
        ),
        ('[backends.a]\nkind = "openai"\nstream = true\n', "[backends.a] lacks the key 'model'"),
    ],
)
def test_a_missing_key_in_a_file_is_reported_together_with_a_misspelt_key(
    text: str, told: str, tmp_path: Path
) -> None:
    path = tmp_path / "actors.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load(path, {})
    assert str(raised.value).endswith(told)
