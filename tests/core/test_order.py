"""Check that bound reasoning is sent only after the unchanged output that preceded it."""

import pytest

from actors import Message, Text, ToolCall, ToolResult
from actors.core.data.jsonio import quote
from actors.core.data.record import replace
from actors.core.dialects.dialect import ResponsesTurns
from actors.core.dialects.profiles import KIMI, OPENAI_RESPONSES
from actors.core.lanes.lane import Rendered
from actors.core.ledger import Ledger
from actors.core.render.order import move_calls_last
from actors.core.values.content import Block, ProviderBlock, ProviderState, Thinking
from actors.core.values.identity import Binding
from actors.transcripts import History, check, dialect, encode, render
from tests.core.session_log import find_refusal, render_at_once, text
from tests.generated.histories import READERS

BOUND = tuple(name for name in READERS if dialect(name).reasoning.binding == "prefix")
"""Dialects whose hosts may bind reasoning to its prefix."""
every_bound = pytest.mark.parametrize("name", BOUND)


def state(name: str, mark: str) -> str:
    """Return a seal in the provider's form: an opaque string or a complete item."""
    if name != "openai_responses":
        return f"mark-{mark}"
    return f'{{"type":"reasoning","id":"rs_{mark}","summary":[],"encrypted_content":"mark-{mark}"}}'


def thinking(name: str, mark: str) -> Thinking:
    kind = "reasoning_item" if name == "openai_responses" else "signature"
    return Thinking("hm", ProviderState(kind, quote(state(name, mark)), READERS[name]))


def call(name: str, number: int, native: str | None = None, raw: str | None = None) -> ToolCall:
    """Return a call with a valid native id unless another one is given."""
    seal = ProviderState("call_id", quote(f"native_{number}" if native is None else native), READERS[name])
    return ToolCall(f"c{number}", "read", {"p": 1}, native=seal, raw=raw)


def model_message(name: str, *blocks: Block) -> list[Message]:
    results = [ToolResult(block.id, "ok") for block in blocks if isinstance(block, ToolCall)]
    tail = Message("tool", results) if results else Message("user", [Text("And?")])
    return [Message("user", [Text("u")]), Message("assistant", blocks, origin=READERS[name]), tail]


def sent_marks(name: str, *blocks: Block, binding: Binding | None = None) -> tuple[list[str], Rendered]:
    """Return the marks of the sent reasoning in order, and the render."""
    rendered = render_at_once(model_message(name, *blocks), Ledger(), binding or READERS[name])
    assert find_refusal(rendered) is None
    marks = sorted("abc", key=lambda mark: text(rendered).find(f"mark-{mark}".encode()))
    return [mark for mark in marks if f"mark-{mark}".encode() in text(rendered)], rendered


@every_bound
def test_a_message_that_is_sent_unchanged_keeps_all_its_reasoning_in_place(name: str) -> None:
    blocks = (thinking(name, "a"), Text("So."), thinking(name, "b"), call(name, 1), thinking(name, "c"))
    found, rendered = sent_marks(name, *blocks, call(name, 2))
    assert found == ["a", "b", "c"]
    assert rendered.report.losses == ()
    places = [text(rendered).find(part) for part in (b"mark-a", b"So.", b"mark-b", b"native_1", b"mark-c")]
    assert places == sorted(places)


@every_bound
@pytest.mark.parametrize("change", ["blank", "malformed", "renamed", "unnamed", "repeated", "misnamed"])
def test_reasoning_after_unsendable_content_is_dropped_and_counted(name: str, change: str) -> None:
    changed: dict[str, tuple[Block, ...]] = {
        "blank": (Text(" "),),
        "malformed": (call(name, 1, raw="{"),),
        "renamed": (call(name, 1, native="no id: \u00e9"),),
        "unnamed": (ToolCall("c1", "read", {"p": 1}),),
        "misnamed": (replace(call(name, 1), name="read file"),),
        "repeated": (call(name, 1, native="one"), call(name, 3, native="one")),
    }
    blocks = (thinking(name, "a"), *changed[change], thinking(name, "b"), call(name, 2))
    found, rendered = sent_marks(name, *blocks)
    assert found == ["a"]
    assert dict(rendered.report.losses)["thinking"] == 1
    assert b"native_2" in text(rendered)


@every_bound
def test_losing_reasoning_in_one_message_affects_no_other_message(name: str) -> None:
    first = model_message(name, thinking(name, "a"), Text(" "), thinking(name, "b"), Text("So."))
    second = model_message(name, thinking(name, "c"), call(name, 1))
    rendered = render_at_once([*first, *second], Ledger(), READERS[name])
    assert find_refusal(rendered) is None
    assert [b"mark-%b" % mark in text(rendered) for mark in (b"a", b"b", b"c")] == [True, False, True]


def test_reasoning_that_a_moved_text_would_reorder_is_dropped() -> None:
    name = "openai_responses"
    found, rendered = sent_marks(name, thinking(name, "a"), call(name, 1), thinking(name, "b"), Text("So."))
    assert found == []
    assert dict(rendered.report.losses) == {"thinking": 2}
    assert text(rendered).find(b"So.") < text(rendered).find(b"native_1")


def test_the_order_of_the_model_is_kept_if_text_may_follow_calls() -> None:
    name = "openai_responses"
    lenient = replace(OPENAI_RESPONSES, turns=ResponsesTurns())
    messages = model_message(name, thinking(name, "a"), call(name, 1), thinking(name, "b"), Text("So."))
    rendered = render(History(messages), Ledger(), lenient, binding=READERS[name])
    assert (rendered.report.losses, rendered.report.faults) == ((), ())
    places = [text(rendered).find(part) for part in (b"mark-a", b"native_1", b"mark-b", b"So.")]
    assert places == sorted(places)
    assert [fault.rule for fault in check(encode(rendered, model="m"), OPENAI_RESPONSES)] == ["OAR-14"]


def test_unbound_reasoning_moves_together_with_the_block_after_it() -> None:
    name = "openai_responses"
    free = replace(OPENAI_RESPONSES, reasoning=replace(OPENAI_RESPONSES.reasoning, binding="model"))
    blocks: list[Block] = [thinking(name, "a"), call(name, 1), thinking(name, "b"), Text("So.")]
    assert move_calls_last(blocks) == [blocks[2], blocks[3], blocks[0], blocks[1]]
    rendered = render(History(model_message(name, *blocks)), Ledger(), free, binding=READERS[name])
    assert rendered.report.losses == ()
    places = [text(rendered).find(part) for part in (b"mark-b", b"So.", b"mark-a", b"native_1")]
    assert places == sorted(places)


def test_server_tool_blocks_after_a_call_are_moved_before_the_call() -> None:
    name, item = "openai_responses", '{"type":"web_search_call","status":"completed","action":{}}'
    found = ProviderBlock("web_search_call", ProviderState("part", quote(item), READERS[name]))
    _, rendered = sent_marks(name, call(name, 1), found)
    places = [text(rendered).find(part) for part in (b"web_search_call", b"native_1")]
    assert -1 < places[0] < places[1]


def test_a_phase_label_is_sent_even_if_content_before_the_label_was_dropped() -> None:
    name = "openai_responses"
    phase = Thinking("", ProviderState("phase", quote("commentary"), READERS[name]))
    found, rendered = sent_marks(name, Text(" "), thinking(name, "a"), phase, Text("So."))
    assert found == []
    assert b'"phase":"commentary"' in text(rendered)


def test_calls_get_placeholder_reasoning_no_matter_which_render_pass_dropped_their_reasoning() -> None:
    bound = replace(KIMI, reasoning=replace(KIMI.reasoning, binding="prefix"))
    trimmed = replace(KIMI, reasoning=replace(KIMI.reasoning, must_be_followed=True))
    seal = ProviderState("reasoning_content", quote("reasoning_content"), READERS["kimi"])
    made = call("kimi", 1)
    for profile, blocks in (
        (bound, (Text("So."), Text(" "), Thinking("hm", seal), made)),  # its prefix has changed
        (trimmed, (made, Thinking("hm", seal))),  # no block follows it
    ):
        rendered = render(History(model_message("kimi", *blocks)), Ledger(), profile, binding=READERS["kimi"])
        assert rendered.report.faults == ()
        assert KIMI.reasoning.placeholder.encode() in text(rendered)
        assert dict(rendered.report.losses)["thinking"] == 1
