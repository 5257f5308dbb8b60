"""Check the render walk: supported blocks, results after their calls, and the roles of the dialect."""

import dataclasses
import re
from typing import get_args

import pytest
from hypothesis import given

from actors.core.data.jsonio import Json, quote
from actors.core.data.record import replace
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import ANTHROPIC, LLAMA_CPP, OPENAI_CHAT, PROFILES
from actors.core.ledger import Ledger
from actors.core.log.call_events import Cancelled, Reason, Returned, Scheduled, Started, ToolCallRecord
from actors.core.log.events import RequestSent
from actors.core.render import ThinkingPolicy
from actors.core.render.choose import SYNTHETIC
from actors.core.transcript.diagnostics import Report
from actors.core.transcript.transcript import RenderState
from actors.core.values.content import (
    Block,
    Code,
    Media,
    Message,
    ProviderState,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from actors.core.values.identity import Binding, CallId
from actors.testing.images import png_base64
from tests.core.recorded import Answer, Called, Said, record_walk
from tests.core.session_log import BINDINGS, examples, find_refusal, render_at_once, text
from tests.generated.histories import READERS
from tests.generated.parts import REASONS
from tests.generated.strategies import conversations

PIXEL = png_base64()

OPENAI, CLAUDE = BINDINGS[:2]
ONE, TWO = ToolCall("c1", "read"), ToolCall("c2", "read")
every_dialect = pytest.mark.parametrize("dialect", PROFILES.values(), ids=PROFILES)


def human(*blocks: Block) -> Message:
    return Message("user", blocks or (Text("u"),))


def model(*blocks: Block) -> Message:
    return Message("assistant", blocks)


def tool(*blocks: Block) -> Message:
    return Message("tool", blocks)


def answers(said: list[Said]) -> list[Answer]:
    return [block for _, blocks in said for block in blocks if isinstance(block, Answer)]


def call_ids(said: list[Said]) -> list[str]:
    return [block.id for _, blocks in said for block in blocks if isinstance(block, Called)]


# ---- one completion per call, directly after it


@pytest.mark.requirement("REQ-915-006", "REQ-915-007", "REQ-915-008", "REQ-915-011")
@every_dialect
@examples(60)
@given(conversation=conversations())
def test_each_call_is_answered_once_directly_after_it_in_call_order(
    conversation: tuple[list[Message], Ledger], dialect: Dialect
) -> None:
    said, report = record_walk(conversation[0], dialect, conversation[1], READERS[dialect.name])
    waiting: list[str] = []
    for role, blocks in said:
        made = [block.id for block in blocks if isinstance(block, Called)]
        given_out = [block.id for block in blocks if isinstance(block, Answer)]
        assert given_out == waiting
        assert not given_out or role in ("user", "tool")
        assert not made or role == "assistant"
        assert len(made) <= 1 or dialect.turns.calls_together
        waiting = made
    assert waiting == []
    assert tuple(call_ids(said)) == report.emitted_calls == report.emitted_results
    assert len(report.calls) == len(report.emitted_calls)


@pytest.mark.requirement("REQ-915-039")
@pytest.mark.parametrize("reason", REASONS)
def test_a_synthetic_result_states_its_reason_neutrally(reason: Reason) -> None:
    ledger = Ledger([ToolCallRecord(CallId("c1"), "read", sealed=reason)])
    said, report = record_walk([model(ONE)], ANTHROPIC, ledger)
    (answer,) = answers(said)
    assert (answer.words, answer.failed) == (SYNTHETIC[reason], False)
    assert report.synthetic == (("c1", reason),)
    assert "user" not in SYNTHETIC[reason].decode()
    assert len(set(SYNTHETIC.values())) == len(get_args(Reason)) + 1  # one more: for a running call


def test_the_reason_of_a_synthetic_result_comes_from_the_ledger() -> None:
    ledger = Ledger().apply(
        Scheduled(CallId("new"), "r"), Scheduled(CallId("begun"), "r"), Started(CallId("begun"))
    )
    ledger = ledger.apply(Cancelled(CallId("stopped"), "interrupted"))
    names = ("new", "begun", "stopped", "unheard_of")
    _, report = record_walk([model(*(ToolCall(name, "r") for name in names))], ANTHROPIC, ledger)
    assert dict(report.synthetic) == {
        "new": "running",
        "begun": "running",
        "stopped": "interrupted",
        "unheard_of": "lost",
    }


@pytest.mark.requirement("REQ-915-008")
def test_blocks_between_calls_and_their_results_move_after_the_results_in_order() -> None:
    stop, wait = human(Text("stop")), model(Text("wait"))
    first, second = ToolResult("c1", "a"), ToolResult("c2", "b")
    said, _ = record_walk(
        [human(), model(TWO, ONE), stop, tool(first), wait, tool(second), human()], OPENAI_CHAT
    )
    words = [[getattr(block, "words", getattr(block, "json", b"")) for block in blocks] for _, blocks in said]
    assert words == [[b'"u"'], [b"{}", b"{}"], [b'"b"', b'"a"'], [b'"stop"'], [b'"wait"'], [b'"u"']]


ONE_CALL = replace(LLAMA_CPP, turns=replace(LLAMA_CPP.turns, calls_together=False))


@pytest.mark.requirement("REQ-915-008")
@examples(200)
@given(conversations())
def test_sending_one_call_per_message_keeps_all_other_blocks_in_order(
    conversation: tuple[list[Message], Ledger],
) -> None:
    messages, ledger = conversation
    together, parted = (
        record_walk(messages, LLAMA_CPP if whole else ONE_CALL, ledger)[0] for whole in (True, False)
    )
    for role in ("user", "assistant", "tool"):
        said, was = (
            [_unnumbered(block) for each, blocks in told if each == role for block in blocks]
            for told in (parted, together)
        )
        said, was = ([block for block in blocks if not _is_filler(block)] for blocks in (said, was))
        assert said == was
    assert all(sum(isinstance(block, Called) for block in blocks) < 2 for _, blocks in parted)


def test_blocks_before_a_call_stay_in_the_message_of_that_call() -> None:
    said, _ = record_walk([human(), model(Text("a"), ONE, Text("b"), TWO, Text("c"))], ONE_CALL)
    texts = [
        [block.text for block in blocks if isinstance(block, Text)]
        for role, blocks in said
        if role == "assistant"
    ]
    assert texts == [["a"], ["b", "c"]]


def _unnumbered(block: object) -> object:
    """Return a block without attachment numbers, which restart after each result."""
    if isinstance(block, Answer):
        return dataclasses.replace(block, words=re.sub(rb"Attachment \d+", b"Attachment", block.words))
    if isinstance(block, Text):
        return Text(json=Json(re.sub(rb"Attachment \d+", b"Attachment", block.json)))
    return block


def _is_filler(block: object) -> bool:
    dialect = PROFILES["llama_cpp"]
    fillers = (dialect.turns.filler_first, dialect.turns.filler_last, dialect.turns.filler_between)
    return isinstance(block, Text) and block.text in fillers


# ---- thinking

OWN = Thinking("own", ProviderState("signature", quote("c2ln"), CLAUDE))


CALLED = (Called("toolu_ex25pqAajCB98As272zAIypy", "read"),)


def rendered_blocks(
    message: Message,
    policy: ThinkingPolicy = "native",
    dialect: Dialect = ANTHROPIC,
    state: RenderState | None = None,
) -> list[object]:
    """Return the rendered blocks of a message."""
    reader = CLAUDE if dialect is ANTHROPIC else OPENAI
    said, _ = record_walk([human(), message], dialect, reader=reader, policy=policy, state=state)
    return list(said[1][1])


@pytest.mark.requirement("REQ-915-023")
def test_native_thinking_is_sent_back_unchanged() -> None:
    assert rendered_blocks(model(OWN, Text("t"), ONE)) == [OWN, Text("t"), *CALLED]


@pytest.mark.parametrize(
    "origin",
    [
        OPENAI,
        Binding("claude", "anthropic", CLAUDE.endpoint, CLAUDE.account, "another-model"),
        Binding("claude", "anthropic", CLAUDE.endpoint, "another-account", CLAUDE.model),
        Binding("claude", "anthropic", "https://copy.example", CLAUDE.account, CLAUDE.model),
    ],
)
def test_thinking_of_another_provider_is_not_sent(origin: Binding) -> None:
    foreign = Thinking("f", ProviderState("signature", quote("c2ln"), origin))
    assert rendered_blocks(model(foreign, Text("t"))) == [Text("t")]
    assert rendered_blocks(model(foreign, Text("t")), "text") == [Text("[Reasoning: f]"), Text("t")]


@pytest.mark.requirement("REQ-915-023")
def test_thinking_of_another_provider_does_not_affect_how_other_thinking_is_sent() -> None:
    foreign = Thinking("f", ProviderState("signature", quote("c2ln"), OPENAI))
    talk = [
        human(),
        model(OWN, Text("a")),
        human(),
        model(foreign, Text("b")),
        human(),
        model(OWN, Text("c")),
    ]
    said, _ = record_walk([*talk, human()], ANTHROPIC, reader=CLAUDE)
    assert [blocks for role, blocks in said if role == "assistant"] == [
        (OWN, Text("a")),
        (Text("b"),),
        (OWN, Text("c")),
    ]


@pytest.mark.requirement("REQ-915-024")
def test_thinking_excluded_by_policy_or_by_the_dialect_is_not_sent() -> None:
    assert rendered_blocks(model(OWN, ONE), "drop") == [*CALLED]
    seal = ProviderState("signature", quote("c2ln"), OPENAI)
    (left,) = rendered_blocks(model(Thinking("t", seal), ONE), dialect=OPENAI_CHAT)
    assert isinstance(left, Called)


@pytest.mark.parametrize("vendor", ["kimi", "deepseek"])
def test_required_thinking_is_sent_with_calls_despite_the_policy(vendor: str) -> None:
    maker = READERS[vendor]
    own = Thinking("t", ProviderState("reasoning_content", quote("reasoning_content"), maker))
    said, _ = record_walk(
        [human(), model(own, ONE), model(own, Text("t"))], PROFILES[vendor], None, maker, "drop"
    )
    with_call, without = (blocks for role, blocks in said if role == "assistant")
    expected = (own, Text("t")) if vendor == "deepseek" else (Text("t"),)
    assert (with_call[0], without) == (own, expected)


@pytest.mark.parametrize(
    "block",
    [
        Thinking("t"),
        Thinking("t", ProviderState("signature", quote(""), CLAUDE)),
        Thinking("", ProviderState("redacted", quote(""), CLAUDE)),
    ],
)
def test_thinking_without_a_signature_is_not_sent(block: Thinking) -> None:
    assert rendered_blocks(model(block, Text("t"))) == [Text("t")]


def test_thinking_in_a_user_message_or_after_text_is_not_sent() -> None:
    assert rendered_blocks(human(OWN, Text("t"))) == [Text("t")]
    assert rendered_blocks(model(Text("t"), OWN, ONE)) == [Text("t"), *CALLED]


def test_thinking_from_before_the_epoch_is_sent_as_text_or_omitted() -> None:
    assert rendered_blocks(model(OWN, ONE), state=RenderState(epoch_start=2)) == [*CALLED]
    assert rendered_blocks(model(OWN, ONE), "text", state=RenderState(epoch_start=2)) == [
        Text("[Reasoning: own]"),
        *CALLED,
    ]
    assert rendered_blocks(model(OWN, ONE), state=RenderState(epoch_start=1)) == [OWN, *CALLED]


# ---- content supported by the target


@every_dialect
@pytest.mark.parametrize("words", ["", " ", "\n\t", "\u00a0", "\u2003", "\x1c", "\x85"])
def test_blank_texts_and_messages_of_blank_texts_are_omitted(dialect: Dialect, words: str) -> None:
    messages = [
        human(),
        human(Text(words)),
        model(Text(words), ONE),
        model(Text(words)),
        human(Text("v"), Text(words)),
    ]
    said, report = record_walk(messages, dialect)
    texts = [
        block.text
        for _, blocks in said
        for block in blocks
        if isinstance(block, Text) and "(" not in block.text
    ]
    assert texts == ["u", "v"]
    assert dict(report.losses) == {"empty": 4}
    assert all(blocks for _, blocks in said)


@every_dialect
def test_code_is_sent_as_fenced_text_and_unsupported_media_as_a_note(dialect: Dialect) -> None:
    said, _ = record_walk([human(), model(Code("x = 1", "py"), Media("image/png", PIXEL))], dialect)
    *_, code, note = said[1][1]
    assert code == Text("```py\nx = 1\n```")
    assert "image/png" in note.text


@every_dialect
def test_media_with_content_stay_in_the_user_message_if_the_dialect_accepts_media(dialect: Dialect) -> None:
    image, document = Media("image/png", PIXEL), Media("application/pdf", "aGk=")
    (message,), _ = record_walk([human(image, document, Media("image/png"))], dialect)
    kept = [block for block in message[1] if isinstance(block, Media)]
    held = {"image": image, "document": document}
    assert kept == [media for kind, media in held.items() if kind in dialect.media.user_kinds]
    assert len(message[1]) == 3


IMAGE, DOCUMENT, SOUND = (
    Media("image/png", PIXEL),
    Media("application/pdf", "aGk="),
    Media("audio/wav", "aGk="),
)


def render_results(dialect: Dialect, *results: ToolResult) -> tuple[list[Answer], list[Said], Report]:
    """Return the results of two calls, and the blocks that follow them."""
    said, report = record_walk([human(), model(ONE, TWO), tool(*results), human()], dialect)
    at = next(at for at, (_, blocks) in enumerate(said) if any(isinstance(block, Answer) for block in blocks))
    return answers(said), said[at + 1 :], report


@every_dialect
def test_media_of_tool_results_stay_inside_their_result_or_follow_all_results(dialect: Dialect) -> None:
    """Scenario 42: if a result cannot hold an image, its text announces that the image follows."""
    first = ToolResult("c1", "seen", media=[IMAGE, SOUND])
    second = ToolResult("c2", {"a": 1}, media=[DOCUMENT])
    given_out, others, report = render_results(dialect, first, second)
    held = [media for answer in given_out for media in answer.media]
    moved = [block for _, blocks in others for block in blocks if isinstance(block, Media)]
    assert held == [m for m in (IMAGE, DOCUMENT) if kind(m) in dialect.media.result_kinds]
    assert moved == [m for m in (IMAGE, DOCUMENT) if m not in held and kind(m) in dialect.media.user_kinds]
    assert others[-1] == ("user", (Text("u"),))
    said = "".join(answer.words.decode() for answer in given_out)
    assert said.startswith('"seen')
    assert said.count("follows the tool results") == len(moved)
    assert said.count("was omitted here") == 3 - len(held) - len(moved) == dict(report.losses)["media"]


def kind(media: Media) -> str:
    return "image" if media.media_type.startswith("image/") else "document"


def test_results_refer_by_number_to_the_media_that_follow_the_results() -> None:
    results = [ToolResult("c1", "a", media=[IMAGE]), ToolResult("c2", error="b", media=[IMAGE])]
    given_out, (follow, _), _ = render_results(OPENAI_CHAT, *results)
    assert [(answer.words, answer.failed) for answer in given_out] == [
        (quote("a\n[Attachment 1, of type image/png, follows the tool results.]"), False),
        (quote("b\n[Attachment 2, of type image/png, follows the tool results.]"), True),
    ]
    assert follow == ("user", (Text("[Attachment 1:]"), IMAGE, Text("[Attachment 2:]"), IMAGE))


def test_the_text_of_a_failed_result_is_sent_in_the_result_and_its_media_in_the_next_message() -> None:
    (failed, _), (follow, _), _ = render_results(ANTHROPIC, ToolResult("c1", error="no", media=[IMAGE]))
    assert failed.media == ()
    assert IMAGE in follow[1]


def test_blank_text_next_to_media_is_omitted() -> None:
    (blank, _), _, _ = render_results(ANTHROPIC, ToolResult("c1", " \n", media=[IMAGE]))
    assert (blank.words, blank.media) == (b'""', (IMAGE,))


def test_an_image_too_large_for_the_dialect_is_replaced_by_a_note() -> None:
    large = Media("image/png", "A" * 8 * 2**20)
    (noted, _), _, report = render_results(ANTHROPIC, ToolResult("c1", "seen", media=[large]))
    assert noted.media == ()
    assert b"was omitted here" in noted.words
    assert dict(report.losses) == {"media": 1}


@pytest.mark.parametrize("reader", BINDINGS, ids=str)
def test_media_of_late_and_orphan_results_accompany_their_text(reader: Binding) -> None:
    ledger = Ledger().apply(
        RequestSent(1, 1, reader, 0, 1, ((CallId("c1"), "lost"),)),
        Returned(CallId("c1"), quote("L"), (IMAGE,)),
    )
    said = text(render_at_once([human(), model(ONE), human()], ledger, reader)).decode()
    assert said.index("Late result") < said.index(PIXEL)
    said = text(
        render_at_once([human(), tool(ToolResult("gone", "R", media=[IMAGE])), human()], Ledger(), reader)
    ).decode()
    assert said.index("without its call") < said.index(PIXEL)


def test_media_follow_a_result_rendered_as_text() -> None:
    results = tool(ToolResult("c1", "x", media=[IMAGE]), ToolResult("c2", "y"))
    said, _ = record_walk([human(), model(ONE, TWO), results], ANTHROPIC, state=RenderState(plain=True))
    assert [type(block) for block in said[-1][1]] == [Text, Media, Text]


def test_media_after_results_come_before_the_filler_message_and_the_user_message() -> None:
    strict = replace(OPENAI_CHAT, turns=replace(OPENAI_CHAT.turns, user_after_tool="filler"))
    said, _ = record_walk([human(), model(ONE), tool(ToolResult("c1", "x", media=[IMAGE])), human()], strict)
    assert [role for role, _ in said] == ["user", "assistant", "tool", "assistant", "user", "user"]


# ---- neighbours


def record_messages(dialect: Dialect, *messages: Message, last: str | None = None) -> list[Said]:
    state = RenderState(last_role="user" if last == "user" else None)
    said, _ = record_walk(messages, dialect, reader=CLAUDE, state=state)
    return said


def test_a_filler_message_opens_a_transcript_that_must_begin_with_the_user() -> None:
    filler = ("user", (Text(ANTHROPIC.turns.filler_first),))
    assert record_messages(ANTHROPIC, model(Text("t")), human())[0] == filler
    assert record_messages(ANTHROPIC, model(Text("t")), human(), last="user")[0][0] == "assistant"
    assert record_messages(OPENAI_CHAT, model(Text("t")), human())[0][0] == "assistant"


@every_dialect
def test_no_transcript_ends_with_a_model_message(dialect: Dialect) -> None:
    assert record_messages(dialect, human(), model(Text("t")))[-1] == (
        "user",
        (Text(dialect.turns.filler_last),),
    )
    assert record_messages(dialect, human())[-1] == ("user", (Text("u"),))
    assert record_messages(dialect)[-1] == ("user", (Text(dialect.turns.filler_last),))
    assert record_messages(dialect, last="user") == []


def test_thinking_begins_a_new_message_after_other_model_text() -> None:
    said = record_messages(ANTHROPIC, human(), model(Text("t")), model(OWN, Text("so")), human())
    assert [role for role, _ in said] == ["user", "assistant", "user", "assistant", "user"]


@pytest.mark.requirement("PROMISE-13")
def test_every_filler_is_counted_in_the_render_report() -> None:
    mistral, kimi = PROFILES["mistral"], PROFILES["kimi"]
    talk = [model(Text("t")), model(ONE), human(), model(Text("t"))]
    assert dict(record_walk(talk, ANTHROPIC)[1].fillers) == {"first": 1, "last": 1}
    assert dict(record_walk(talk, mistral)[1].fillers) == {"between": 1, "last": 1, "first": 1}
    assert dict(record_walk(talk, kimi)[1].fillers) == {"thinking": 1, "last": 1}
    assert record_walk([human(), model(Text("t")), human()], ANTHROPIC)[1].fillers == ()


# ---- plain


def test_the_plain_render_keeps_text_and_describes_the_rest() -> None:
    call = ToolCall("c1", "read", {"a": 1})
    failed = ToolResult("c2", error={"why": "no"})
    messages = [human(), model(OWN, Text("t"), call, TWO), tool(ToolResult("c1", "x"), failed)]
    said, report = record_walk(messages, ANTHROPIC, reader=CLAUDE, state=RenderState(plain=True))
    assert said == [
        ("user", (Text("u"),)),
        (
            "assistant",
            (Text("t"), Text('[Called the tool read with {"a":1}]'), Text("[Called the tool read with {}]")),
        ),
        ("user", (Text("[The tool answered: x]"), Text('[The tool failed: {"why":"no"}]'))),
    ]
    assert report.losses == (("thinking", 1),)
    assert report.calls == ("c1", "c2")


# ---- all passes


@pytest.mark.requirement("REQ-915-014", "REQ-915-015", "REQ-915-036")
def test_a_conversation_of_several_providers_renders_completely_for_each() -> None:
    messages = [
        human(Text("question")),
        Message(
            "assistant",
            [OWN, ToolCall("hist_tool_1", "read", native=ProviderState("call_id", quote("toolu_1"), CLAUDE))],
        ),
        tool(ToolResult("hist_tool_1", "R1.")),
        Message(
            "assistant",
            [ToolCall("hist_tool_2", "read", native=ProviderState("call_id", quote("call_2"), OPENAI))],
        ),
        tool(ToolResult("hist_tool_2", "R2.")),
        human(Text("go on")),
    ]
    for binding, native, foreign in ((CLAUDE, b"toolu_1", b"call_2"), (OPENAI, b"call_2", b"toolu_1")):
        rendered = render_at_once(messages, Ledger(), binding)
        assert find_refusal(rendered) is None
        sent = text(rendered)
        assert sent.count(native) == 2
        assert foreign not in sent
        assert (b"c2ln" in sent) == (binding == CLAUDE)


def test_the_tests_have_a_binding_for_every_profile() -> None:
    assert set(READERS) == set(PROFILES)
