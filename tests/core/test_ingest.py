"""Check that any tool result becomes bounded, deterministic JSON with markers for omissions."""

import asyncio
import os
import subprocess
import sys
import textwrap
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, UserString, deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from ipaddress import ip_address
from math import inf, nan
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple, get_args
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from pydantic import BaseModel, RootModel, SecretStr

from actors.core.data.ingest import Mark, ingest
from actors.core.data.jsonio import JsonValue, dump, parse, unquote
from actors.core.data.truncate import SizeLimits
from tests.core.session_log import examples
from tests.core.test_jsonio import LONE, json_values

SMALL = SizeLimits(max_bytes=2048, max_depth=4, max_items=8, max_string=256)


class Colour(Enum):
    RED = "red"
    PAIR = (1, 2)


class Level(IntEnum):
    HIGH = 3


class Word(StrEnum):
    YES = "yes"


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Box:
    content: object
    tags: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Slotted:
    a: int = 1


class Packet(Struct):
    a: int = 1


class City(BaseModel):
    name: str
    mayor: object = None


class Cities(RootModel[list[City]]):
    pass


class Login(BaseModel):
    token: SecretStr


class Plain:
    pass


class Shown:
    def __repr__(self) -> str:
        return f"Shown(<thing at {hex(id(self))}>)"


class Liar(str):
    def __str__(self) -> str:
        return "lie"

    def __len__(self) -> int:
        return 0


class LyingInt(int):
    def __add__(self, other: object) -> Any:  # Any: it lies about its type
        return object()

    def __str__(self) -> str:
        raise RuntimeError


class LyingDict(dict[str, int]):
    def items(self) -> Any:  # Any: it lies about its type
        raise RuntimeError

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError


def kind_name(value: object) -> str:
    """Name a case without touching its value."""
    return type(value).__name__


class Endless(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        number = 0
        while True:
            yield str(number)
            number += 1

    def __len__(self) -> int:
        return 2


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (7, "7"),
        (-1.5, "-1.5"),
        ("text\0", '"text\\u0000"'),
        ((1, [2, (3,)]), "[1,[2,[3]]]"),
        (Point(1, 2), "[1,2]"),
        ({"b": 1, "a": 2}, '{"b":1,"a":2}'),
        (OrderedDict([("z", 1), ("a", 2)]), '{"z":1,"a":2}'),
        (Counter("aab"), '{"a":2,"b":1}'),
        (ChainMap({"a": 1}), '{"a":1}'),
        (MappingProxyType({"a": 1}), '{"a":1}'),
        (UserDict({"a": 1}), '{"a":1}'),
        (UserList([1]), "[1]"),
        (UserString("x"), '"x"'),
        (deque([1, 2]), "[1,2]"),
        (range(3), "[0,1,2]"),
        ({"b": 1, "a": 2}.keys(), '["b","a"]'),
        ({3, 1, 2}, "[1,2,3]"),
        (frozenset({"b", "a"}), '["a","b"]'),
        ({1, "1", None}, '["1",1,null]'),
        (Colour.RED, '"red"'),
        (Colour.PAIR, "[1,2]"),
        (Level.HIGH, "3"),
        (Word.YES, '"yes"'),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), '"2026-01-02T03:04:05+00:00"'),
        (date(2026, 1, 2), '"2026-01-02"'),
        (time(3, 4), '"03:04:00"'),
        (timedelta(hours=1), '"1:00:00"'),
        (Decimal("1.10"), '"1.10"'),
        (Fraction(1, 3), '"1/3"'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (PurePosixPath("/a/b"), '"/a/b"'),
        (ip_address("::1"), '"::1"'),
        (2j, '"2j"'),
        (Box(Box(1), ["t"]), '{"content":{"content":1,"tags":[]},"tags":["t"]}'),
        (Slotted(), '{"a":1}'),
        (Packet(), '{"a":1}'),
        (City(name="Rome"), '{"name":"Rome","mayor":null}'),
        (Cities([City(name="Rome")]), '[{"name":"Rome","mayor":null}]'),
        (Liar("truth"), '"truth"'),
        (LyingInt(5), "5"),
        (LyingDict(a=1), '{"a":1}'),
        (2**63 - 1, "9223372036854775807"),
    ],
    ids=kind_name,
)
def test_a_value_with_a_json_form_is_ingested_without_a_marker(value: object, text: str) -> None:
    ingested = ingest(value)
    assert ingested.json.decode() == text
    assert ingested.marks == ()


class Broken:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __repr__(self) -> str:
        raise self.error


class BrokenMapping(Endless):
    def __getitem__(self, key: str) -> int:
        raise KeyError(key)


def numbers() -> Iterator[int]:
    yield 1


async def anumbers() -> AsyncIterator[int]:
    yield 1


def self_containing() -> list[object]:
    cycle: list[object] = [1]
    cycle.append({"again": cycle})
    return cycle


def model_cycle() -> City:
    city = City(name="Rome")
    city.mayor = [city]
    return city


@pytest.mark.parametrize(
    ("value", "text", "marks"),
    [
        (nan, '"[not finite: nan]"', "not_finite"),
        ({"x": -inf}, '{"x":"[not finite: -inf]"}', "not_finite"),
        (2**63, '"9223372036854775808"', "wide_int"),
        (10**5000, '"[integer of 16610 bits]"', "wide_int"),
        (b"caf\xc3\xa9", '"café"', "bytes"),
        (b"\xff\x00", '"[2 bytes, base64] /wA="', "bytes"),
        (bytearray(b"a"), '"a"', "bytes"),
        (memoryview(b"abcd")[::2], '"ac"', "bytes"),
        (LONE, '"\ufffd"', "surrogate"),
        ({LONE: 1}, '{"\ufffd":1}', "surrogate"),
        (PurePosixPath("/\udcff"), '"/\ufffd"', "surrogate"),
        ({1: "a", "1": "b", None: "c", 1.5: "d"}, '{"1":"a","1#2":"b","null":"c","1.5":"d"}', "key"),
        ({(1, 2): 3, b"k": 4}, '{"[1,2]":3,"k":4}', "bytes,key"),
        ({"a\0": 1}, '{"a\ufffd":1}', "key"),
        (self_containing(), '[1,{"again":"[cycle]"}]', "cycle"),
        (model_cycle(), None, "cycle"),
        (Plain(), '"[object: Plain]"', "object"),
        (Shown(), '"[object: Shown] Shown(<thing>)"', "object"),
        (ValueError("no such city"), '"ValueError: no such city"', "object"),
        (numbers(), '"[object: generator] <generator object numbers>"', "object"),
        (anumbers(), '"[object: async_generator] <async_generator object anumbers>"', "object"),
        (Login(token=SecretStr("hush")), None, "object"),
        (dict, "\"[object: type] <class 'dict'>\"", "object"),
        (Broken(RuntimeError()), '"[Broken that could not be read]"', "repr_failed"),
        (Broken(KeyboardInterrupt()), '"[Broken that could not be read]"', "repr_failed"),
        (Broken(SystemExit()), '"[Broken that could not be read]"', "repr_failed"),
        (Broken(asyncio.CancelledError()), '"[Broken that could not be read]"', "repr_failed"),
        ([1, Broken(RecursionError())], '[1,"[Broken that could not be read]"]', "repr_failed"),
        (BrokenMapping(), '"[BrokenMapping that could not be read]"', "repr_failed"),
    ],
    ids=kind_name,
)
def test_a_value_without_a_json_form_is_replaced_by_a_marker(
    value: object, text: str | None, marks: str
) -> None:
    ingested = ingest(value)
    shown = ingested.json.decode()
    assert text is None or shown == text
    assert ",".join(ingested.marks) == marks
    assert "hush" not in shown


def test_ingesting_an_iterator_does_not_consume_its_items() -> None:
    iterator = numbers()
    ingest([iterator, {"it": iterator}])
    assert list(iterator) == [1]


def test_changing_a_value_later_does_not_change_its_ingested_json() -> None:
    value = {"list": [1]}
    ingested = ingest(value)
    value["list"].append(2)
    assert ingested.json == b'{"list":[1]}'


def test_nesting_is_cut_at_the_depth_limit_and_marked() -> None:
    value: object = "core"
    for _ in range(10_000):
        value = [value]
    ingested = ingest(value, SMALL)
    assert ingested.json == b'[[[["[list beyond depth 4]"]]]]'
    assert ingested.marks == ("depth",)


def test_a_shortened_string_keeps_its_head_and_tail_and_states_the_omitted_length() -> None:
    text = "H" * 100_000 + "T" * 100_000
    ingested = ingest(text, SMALL)
    shown = unquote(ingested.json)
    assert len(ingested.json) <= SMALL.max_string
    assert shown.startswith("HHHH")
    assert shown.endswith("TTTT")
    head, tail = shown.count("H"), shown.count("T")
    assert f" [{200_000 - head - tail} characters cut] " in shown
    assert head + tail > 200
    assert ingested.marks == ("truncated",)


def test_a_long_string_does_not_displace_later_small_values() -> None:
    value = {"stdout": "o" * 10_000_000, "stderr": "\0" * 10_000_000, "exit_code": 3}
    ingested = ingest(value)
    shown = parse(ingested.json)
    assert isinstance(shown, dict)
    assert shown["exit_code"] == 3
    assert 250_000 < len(ingested.json) <= 256 * 1024


@pytest.mark.parametrize("size", [9, 100, 1_000_000])
def test_a_shortened_list_keeps_its_first_items_and_states_the_number_of_omitted_items(size: int) -> None:
    shown = parse(ingest(list(range(size)), SMALL).json)
    assert shown == [*range(7), f"[{size - 7} more items cut]"]


def test_a_long_or_endless_object_keeps_its_first_entries() -> None:
    shown = parse(ingest(Endless(), SMALL).json)
    assert isinstance(shown, dict)
    assert list(shown) == ["0", "1", "2", "3", "4", "5", "6", "[cut]"]


def test_counts_of_omitted_items_stay_correct_when_a_container_is_shortened_twice() -> None:
    shown = parse(ingest([["x"] * 8] * 5000, SizeLimits(max_bytes=600, max_items=1000)).json)
    assert isinstance(shown, list)
    assert shown[-1] == f"[{5000 - (len(shown) - 1)} more items cut]"


@pytest.mark.parametrize("value", [[[2**62] * 9_000] * 3, [{"name": "n" * 20, "id": 2**62}] * 9_000])
def test_a_shortened_value_uses_most_of_its_size_limit(value: list[object]) -> None:
    size = len(ingest(value).json)
    assert 128 * 1024 < size <= 256 * 1024


def test_shared_references_do_not_multiply_without_bound() -> None:
    bomb: object = "boom"
    for _ in range(30):
        bomb = [bomb] * 10
    ingested = ingest(bomb)
    assert len(ingested.json) <= 256 * 1024
    assert "truncated" in ingested.marks


def test_keys_that_become_equal_as_json_are_all_kept() -> None:
    shown = parse(ingest({Plain(): number for number in range(2000)}).json)
    assert isinstance(shown, dict)
    assert list(shown.values()) == list(range(2000))


def test_a_set_that_is_too_large_is_omitted_completely() -> None:
    assert ingest({str(n) for n in range(9)}, SMALL).json == b'"[set of 9, cut]"'
    wide = {"x" * 500 + str(n) for n in range(2000)}
    assert (
        ingest([wide, inf], SizeLimits(max_bytes=4096)).json == b'["[set of 2000, cut]","[1 more items cut]"]'
    )


def test_ingest_returns_json_with_almost_no_stack_left() -> None:
    def room(frames: int) -> int:
        return room(frames - 1) if frames else 0

    answers: set[bytes] = set()
    tried: list[int] = []

    def down(levels: int) -> None:
        if levels:
            return down(levels - 1)
        room(2)  # so that it can at least be called
        tried.append(0)
        answers.add(ingest({"a": [1, Shown()]}).json)
        answers.add(ingest("text").json)
        tried.pop()
        return None

    depth = sys.getrecursionlimit() - len_of_stack()
    for spare in range(80):
        with suppress(RecursionError):
            down(depth - spare)
        assert not tried
    assert b'{"a":[1,"[object: Shown] Shown(<thing>)"]}' in answers
    assert b'"[a value that could not be read]"' in answers
    assert all(parse(answer) is not None for answer in answers)


def len_of_stack() -> int:
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    return depth


@pytest.mark.parametrize(
    "limits", [{"max_bytes": 100}, {"max_items": 1}, {"max_string": 10}, {"max_depth": 0}, {"max_depth": 65}]
)
def test_size_limits_too_small_for_a_marker_are_rejected(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"max_depth|limits"):
        SizeLimits(**limits)


ODD = (Plain(), Broken(ValueError()), Colour.PAIR, Liar("x"), Shown(), City(name="a"), Endless())

python_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.text(st.characters(), min_size=250)
    | st.binary(max_size=400)
    | st.decimals()
    | st.dates()
    | st.integers(0, len(ODD) - 1).map(ODD.__getitem__),
    lambda inner: (
        st.lists(inner, max_size=12)
        | st.dictionaries(
            st.one_of(st.text(), st.integers(), st.floats(), st.binary(), st.none()), inner, max_size=12
        )
        | st.tuples(inner, inner)
        | st.builds(Box, inner)
    ),
    max_leaves=40,
)


@pytest.mark.requirement("REQ-915-038")
@examples(300)
@given(
    python_values,
    st.sampled_from([SMALL, SizeLimits(), SizeLimits(max_bytes=512, max_depth=2, max_string=128)]),
)
def test_ingesting_any_value_gives_bounded_strict_json_and_is_idempotent(
    value: object, limits: SizeLimits
) -> None:
    ingested = ingest(value, limits)
    assert len(ingested.json) <= limits.max_bytes
    assert set(ingested.marks) <= {*get_args(Mark)}
    read = parse(ingested.json, max_depth=limits.max_depth)
    assert ingest(value, limits) == ingested
    assert ingest(read, limits).json == ingested.json


@pytest.mark.requirement("REQ-915-038")
@pytest.mark.parametrize("letter", ["a", "\x0b", "é", "\U00100800"])
@pytest.mark.parametrize("length", [255, 431, 4000])
def test_long_keys_do_not_make_an_ingested_value_larger_than_its_limit(letter: str, length: int) -> None:
    first, second = letter * length, letter * length + "2"
    for value in ({first: None, second: 1}, [{first: None}, {second: None}], {first: {second: {first: 2}}}):
        ingested = ingest(value, SMALL)
        assert len(ingested.json) <= SMALL.max_bytes
        assert ingest(parse(ingested.json, max_depth=SMALL.max_depth), SMALL).json == ingested.json


@given(json_values)
def test_json_values_are_ingested_unchanged(value: JsonValue) -> None:
    ingested = ingest(value)
    assert ingested.json == dump(value)
    assert ingested.marks == ()


@pytest.mark.requirement("REQ-915-038", "PROMISE-3")
def test_the_same_value_gives_the_same_bytes_under_any_hash_seed() -> None:
    program = textwrap.dedent(
        """
        import hashlib
        from actors.core.data.truncate import SizeLimits
        from actors.core.data.ingest import ingest

        class Thing: pass
        words = {f"word{n}" for n in range(500)}
        sets = {frozenset({f"{n}", n, None}) for n in range(50)}
        mixed = {Thing(), 1.5, b"x", ("a", frozenset("xyz"))}
        wide = {"x" * 300 + str(n) for n in range(400)} | {float("inf"), 2**70, Thing()}
        value = [words, sets, {"inner": mixed}, Thing, Thing(), len, words, wide]
        small = [SizeLimits(max_bytes=most, max_items=400) for most in (2048, 6000, 32768)]
        taken = [(value, SizeLimits()), (wide, SizeLimits(max_bytes=32768)), *((value, it) for it in small)]
        for value, limits in taken:
            ingested = ingest(value, limits)
            print(hashlib.sha256(ingested.json).hexdigest(), ingested.marks)
        """
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=300,
        ).stdout
        for seed in ("0", "1", "2", "77")
    }
    assert len(outputs) == 1
