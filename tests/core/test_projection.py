"""Ids and names as a provider sees them: of its form, never two alike, and always the same."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.content import Seal, ToolCall
from actors.core.dialect import ANTHROPIC, OPENAI_CHAT, PROFILES, Dialect
from actors.core.identity import Binding, CallId
from actors.core.identity import mint as canonical
from actors.core.jsonio import quote
from actors.core.projection import Projection, mint, tool_name
from actors.core.table import Table
from actors.testing.histories import READERS
from tests.core.session_log import examples

CLAUDE = READERS["anthropic"]
every_dialect = pytest.mark.parametrize("dialect", PROFILES.values(), ids=PROFILES)


def projection(dialect: Dialect = ANTHROPIC, reader: Binding | None = CLAUDE) -> Projection:
    return Projection(Table(), Table(), dialect, reader)


def native(call_id: str, data: str, origin: Binding = CLAUDE) -> ToolCall:
    return ToolCall(call_id, "read", native=Seal("call_id", quote(data), origin))


@pytest.mark.requirement("REQ-915-015", "REQ-915-016", "REQ-915-017", "REQ-915-022", "REQ-915-049")
@every_dialect
@examples(200)
@given(ids=st.lists(st.text(max_size=300), unique=True, max_size=20))
def test_any_ids_project_to_different_ones_of_the_form(dialect: Dialect, ids: list[str]) -> None:
    made = projection(dialect, None)
    emitted = [made.id(ToolCall(call_id, "read")) for call_id in ids]
    assert len(set(emitted)) == len(ids)
    assert all(
        re.fullmatch(dialect.id_pattern, given) and len(given) <= dialect.id_max_len for given in emitted
    )
    assert [made.id(ToolCall(call_id, "read")) for call_id in ids] == emitted
    again = projection(dialect, None)
    assert [again.id(ToolCall(call_id, "read")) for call_id in ids] == emitted


@pytest.mark.requirement("REQ-915-018")
def test_openai_style_ids_begin_with_call() -> None:
    assert re.fullmatch(r"call_[A-Za-z0-9]{24}", projection(OPENAI_CHAT).id(ToolCall("", "read")))


@pytest.mark.requirement("REQ-915-019")
def test_anthropic_style_ids_begin_with_toolu() -> None:
    assert re.fullmatch(r"toolu_[A-Za-z0-9]{24}", projection().id(ToolCall("x" * 300, "read")))


def test_a_native_id_goes_back_to_who_made_it() -> None:
    assert projection().id(native("c1", "toolu_own")) == "toolu_own"


@pytest.mark.parametrize(
    "origin",
    [READERS["openai_chat"], Binding("copy", "anthropic", "https://copy.example"), Binding("x", "anthropic")],
)
def test_a_native_id_goes_to_nobody_else(origin: Binding) -> None:
    assert projection().id(native("c1", "toolu_foreign", origin)) == mint("anthropic", CallId("c1"))
    assert projection(reader=None).id(native("c1", "toolu_own")) != "toolu_own"


@pytest.mark.parametrize("data", ["functions.read:0", "", "n" * 65, "a b", "toolu_x\n", "\u00e9"])
def test_a_native_id_that_is_not_of_the_form_is_not_sent(data: str) -> None:
    assert re.fullmatch(r"toolu_[A-Za-z0-9]{24}", projection().id(native("c1", data)))


@pytest.mark.requirement("REQ-915-016")
def test_a_native_id_that_is_taken_gives_way() -> None:
    made = projection()
    first = canonical(1)
    ids = [made.id(native("a", "toolu_same")), made.id(native("b", "toolu_same"))]
    ids += [made.id(native("c", mint("anthropic", first))), made.id(ToolCall(first, "read"))]
    assert len(set(ids)) == 4
    assert ids[0] == "toolu_same"


@pytest.mark.requirement("REQ-915-014")
def test_what_a_lane_has_given_it_gives_again_and_to_nobody_else() -> None:
    earlier = projection()
    first = earlier.id(native("a", "toolu_same"))
    calls, used = earlier.adopted()
    later = Projection(calls, used, ANTHROPIC, None)
    assert later.id(ToolCall("a", "read")) == later.result_id(CallId("a")) == first
    assert Projection(calls, used, ANTHROPIC, CLAUDE).id(native("b", "toolu_same")) != first


@every_dialect
@examples(300)
@given(name=st.text(max_size=200))
def test_any_name_becomes_one_the_dialect_takes(dialect: Dialect, name: str) -> None:
    assert re.fullmatch(dialect.tool_name_pattern, tool_name(name, dialect.tool_name_pattern))


@every_dialect
def test_legal_names_stay_and_illegal_ones_stay_apart(dialect: Dialect) -> None:
    pattern = dialect.tool_name_pattern
    assert tool_name("read_file-2", pattern) == "read_file-2"
    illegal = [
        "",
        " ",
        "functions.read",
        "functions read",
        "read file",
        "r\u00e9ad",
        "x" * 200,
        "x" * 201,
        "\ud800",
    ]
    assert len({tool_name(name, pattern) for name in illegal}) == len(illegal)
