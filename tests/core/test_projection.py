"""Check projected ids and names: valid for the provider, distinct and stable."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.data.jsonio import quote
from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import ANTHROPIC, OPENAI_CHAT, PROFILES
from actors.core.transcript.transcript import MAX_INTERNED, Projection, RenderState, mint, tool_name
from actors.core.values.content import ProviderState, ToolCall
from actors.core.values.identity import Binding, CallId
from actors.core.values.identity import mint as canonical
from tests.core.session_log import examples
from tests.generated.histories import READERS

CLAUDE = READERS["anthropic"]
every_dialect = pytest.mark.parametrize("dialect", PROFILES.values(), ids=PROFILES)


def projection(dialect: Dialect = ANTHROPIC, reader: Binding | None = CLAUDE) -> Projection:
    return Projection(RenderState(), dialect, reader)


def native(call_id: str, data: str, origin: Binding = CLAUDE) -> ToolCall:
    return ToolCall(call_id, "read", native=ProviderState("call_id", quote(data), origin))


MINTING = {name: profile for name, profile in PROFILES.items() if profile.ids.style != "none"}


@pytest.mark.requirement("REQ-915-015", "REQ-915-016", "REQ-915-017", "REQ-915-022", "REQ-915-049")
@pytest.mark.parametrize("dialect", MINTING.values(), ids=MINTING)
@examples(200)
@given(ids=st.lists(st.text(max_size=300), unique=True, max_size=20))
def test_distinct_ids_are_projected_to_distinct_valid_ids(dialect: Dialect, ids: list[str]) -> None:
    made = projection(dialect, None)
    emitted = [made.id_and_name(ToolCall(call_id, "read"))[0] for call_id in ids]
    assert len(set(emitted)) == len(ids)
    assert all(
        re.fullmatch(dialect.ids.pattern, given) and len(given) <= dialect.ids.max_len for given in emitted
    )
    assert [made.id_and_name(ToolCall(call_id, "read"))[0] for call_id in ids] == emitted
    again = projection(dialect, None)
    assert [again.id_and_name(ToolCall(call_id, "read"))[0] for call_id in ids] == emitted


@pytest.mark.parametrize("name", [name for name in PROFILES if name not in MINTING])
def test_no_call_id_is_sent_if_the_protocol_pairs_results_by_position(name: str) -> None:
    made = projection(PROFILES[name], READERS[name])
    assert [made.id_and_name(ToolCall(call_id, "read"))[0] for call_id in ("a", "b")] == ["", ""]


@pytest.mark.requirement("REQ-915-018")
def test_openai_style_ids_begin_with_call() -> None:
    assert re.fullmatch(r"call_[A-Za-z0-9]{24}", projection(OPENAI_CHAT).id_and_name(ToolCall("", "read"))[0])


def test_anthropic_style_ids_begin_with_toolu() -> None:
    assert re.fullmatch(r"toolu_[A-Za-z0-9]{24}", projection().id_and_name(ToolCall("x" * 300, "read"))[0])


@pytest.mark.requirement("REQ-915-021")
@pytest.mark.parametrize("call_id", ["", "hist_tool_1", "toolu_01Ab12Cd34Ef56Gh78Ij90", "x" * 300, "\ud800"])
def test_mistral_style_ids_are_nine_alphanumeric_characters(call_id: str) -> None:
    made = projection(PROFILES["mistral"]).id_and_name(ToolCall(call_id, "read"))[0]
    assert re.fullmatch(r"[a-zA-Z0-9]{9}", made)


@pytest.mark.requirement("REQ-915-021")
def test_ten_thousand_ids_of_nine_alphanumeric_characters_are_all_different() -> None:
    made = projection(PROFILES["mistral"])
    emitted = {made.id_and_name(ToolCall(canonical(number), "read"))[0] for number in range(10_000)}
    assert len(emitted) == 10_000


def test_a_native_id_is_sent_back_to_its_provider() -> None:
    assert projection().id_and_name(native("c1", "toolu_own"))[0] == "toolu_own"


def test_a_call_id_from_a_gateway_is_sent_back_only_to_the_model_that_created_it() -> None:
    router = READERS["openrouter"]
    made = projection(PROFILES["openrouter"], router)
    assert made.id_and_name(native("c1", "toolu_own", router))[0] == "toolu_own"
    assert re.fullmatch(
        "[a-zA-Z0-9]{9}", made.id_and_name(native("c2", "toolu_other", replace(router, model="another")))[0]
    )


@pytest.mark.parametrize(
    "origin",
    [READERS["openai_chat"], Binding("copy", "anthropic", "https://copy.example"), Binding("x", "anthropic")],
)
def test_a_native_id_is_not_sent_to_another_provider(origin: Binding) -> None:
    assert projection().id_and_name(native("c1", "toolu_foreign", origin))[0] == mint(
        "anthropic", CallId("c1")
    )
    assert projection(reader=None).id_and_name(native("c1", "toolu_own"))[0] != "toolu_own"


@pytest.mark.parametrize("data", ["functions.read:0", "", "n" * 65, "a b", "toolu_x\n", "\u00e9"])
def test_a_native_id_in_a_format_that_the_dialect_rejects_is_not_sent(data: str) -> None:
    assert re.fullmatch(r"toolu_[A-Za-z0-9]{24}", projection().id_and_name(native("c1", data))[0])


@pytest.mark.requirement("REQ-915-016")
def test_a_native_id_already_in_use_is_replaced() -> None:
    made = projection()
    first = canonical(1)
    ids = [made.id_and_name(native("a", "toolu_same"))[0], made.id_and_name(native("b", "toolu_same"))[0]]
    ids += [
        made.id_and_name(native("c", mint("anthropic", first)))[0],
        made.id_and_name(ToolCall(first, "read"))[0],
    ]
    assert len(set(ids)) == 4
    assert ids[0] == "toolu_same"


@pytest.mark.requirement("REQ-915-014")
def test_a_lane_keeps_its_ids_and_never_reuses_them() -> None:
    earlier = projection()
    first = earlier.id_and_name(native("a", "toolu_same"))[0]
    calls, used, index = earlier.new_state()
    sent = RenderState(calls=calls, used=used, index=index)
    later = Projection(sent, ANTHROPIC, None)
    assert later.id_and_name(ToolCall("a", "read"))[0] == first
    assert Projection(sent, ANTHROPIC, CLAUDE).id_and_name(native("b", "toolu_same"))[0] != first


@every_dialect
@examples(300)
@given(name=st.text(max_size=200))
def test_any_tool_name_becomes_valid_for_the_dialect(dialect: Dialect, name: str) -> None:
    assert re.fullmatch(dialect.ids.tool_name_pattern, tool_name(name, dialect.ids.tool_name_pattern))


@every_dialect
def test_valid_tool_names_are_kept_and_invalid_tool_names_stay_distinct(dialect: Dialect) -> None:
    pattern = dialect.ids.tool_name_pattern
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


def test_lanes_share_small_sets_of_tool_names_and_no_large_set_is_kept() -> None:
    def names(count: int) -> frozenset[str]:
        made = projection()
        for number in range(count):
            made.id_and_name(ToolCall(f"call {number}", f"tool_{number}"))
        return made.with_names(frozenset())

    assert names(MAX_INTERNED) is names(MAX_INTERNED)
    assert names(MAX_INTERNED + 1) == names(MAX_INTERNED + 1)
    assert names(MAX_INTERNED + 1) is not names(MAX_INTERNED + 1)
