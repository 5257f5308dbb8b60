"""The passes one by one: each does its own thing, does it once, and leaves the rest alone."""

from itertools import pairwise

import pytest
from hypothesis import given

from actors.core.content import Block, Code, Media, Message, Seal, Text, Thinking, ToolCall, ToolResult
from actors.core.diagnostics import Notes
from actors.core.dialect import Dialect
from actors.core.events import Cancelled, Reason, RequestSent, Returned, Scheduled, Started
from actors.core.history import History
from actors.core.identity import Binding, CallId
from actors.core.jsonio import quote
from actors.core.ledger import Interaction, Ledger
from actors.core.profiles import ANTHROPIC, OPENAI_CHAT, PROFILES
from actors.core.render import Reader
from actors.core.render.apart import apart
from actors.core.render.attribute import attribute
from actors.core.render.close import SYNTHETIC, close, why_missing
from actors.core.render.identify import identify
from actors.core.render.neighbours import neighbours
from actors.core.render.place import place
from actors.core.render.plain import plain
from actors.core.render.thinking import ThinkingPolicy, thinking, unsealed
from actors.core.render.tidy import Room, tidy
from actors.core.table import Table
from actors.core.transcript import Entry, EntryBlock
from actors.testing.histories import READERS
from actors.testing.stock import REASONS
from actors.testing.strategies import conversations
from tests.core.session_log import BINDINGS, cold, examples, refused, text

OPENAI, CLAUDE = BINDINGS[:2]
ONE, TWO = ToolCall("c1", "read"), ToolCall("c2", "read")
every_dialect = pytest.mark.parametrize("dialect", PROFILES.values(), ids=PROFILES)


def human(*blocks: Block) -> Message:
    return Message("human", blocks or (Text("u"),))


def model(*blocks: Block) -> Message:
    return Message("model", blocks)


def tool(*blocks: Block) -> Message:
    return Message("tool", blocks)


def settled(messages: list[Message]) -> list[Message]:
    """A conversation as the passes after `identify` get it, without results."""
    named, _ = identify(attribute(list(History(messages)), Notes()), Table(), Table(), Notes())
    return [message for message in named if message.speaker != "tool"]


# ---- attribute


@pytest.mark.requirement("REQ-915-047")
@examples(200)
@given(conversations())
def test_attribute_gives_every_block_to_its_own_speaker_once_and_in_order(
    conversation: tuple[list[Message], Ledger],
) -> None:
    messages, _ = conversation
    attributed = attribute(messages, Notes())
    assert [block for message in attributed for block in message.blocks] == [
        block for message in messages for block in message.blocks
    ]
    for message in attributed:
        for block in message.blocks:
            assert (type(block) is ToolCall) <= (message.speaker == "model")
            assert (type(block) is ToolResult) == (message.speaker == "tool")
    assert attribute(attributed, Notes()) == attributed


def test_words_among_the_tools_are_a_humans() -> None:
    assert attribute([tool(Text("note"), ToolResult("c1", "x"))], Notes()) == [
        human(Text("note")),
        tool(ToolResult("c1", "x")),
    ]


# ---- identify


def test_identify_counts_the_occurrences_of_an_id_across_requests() -> None:
    again, aliases = identify([model(ONE)], Table({CallId("c1"): False}), Table(), Notes())
    assert [call.id for call in again[0].calls] == ["c1~2"]
    later, _ = identify([tool(ToolResult("c1", "x"))], Table({CallId("c1"): False}), aliases, Notes())
    assert [result.call_id for result in later[0].results] == ["c1~2"]


def test_identify_leaves_unique_ids_alone() -> None:
    tail = [model(ONE, TWO), tool(ToolResult("c2", "x"))]
    assert identify(tail, Table(), Table(), Notes())[0] is tail


def test_a_name_that_identify_would_give_may_be_taken() -> None:
    named, _ = identify(
        [model(ToolCall("x~2", "a"), ToolCall("x", "b"), ToolCall("x", "c"))], Table(), Table(), Notes()
    )
    assert [call.id for call in named[0].calls] == ["x~2", "x", "x~3"]


# ---- close


@pytest.mark.requirement("REQ-915-007", "REQ-915-011")
@examples(200)
@given(conversations())
def test_close_answers_every_call_and_closing_twice_is_closing_once(
    conversation: tuple[list[Message], Ledger],
) -> None:
    messages, ledger = conversation
    closed = close(settled(messages), ledger, Notes())
    answered = [result.call_id for message in closed for result in message.results]
    assert answered == [call.id for message in closed for call in message.calls]
    assert close(closed, ledger, Notes()) == closed


@pytest.mark.requirement("REQ-915-039")
@pytest.mark.parametrize("reason", REASONS)
def test_a_synthetic_result_says_why_and_blames_nobody(reason: Reason) -> None:
    ledger = Ledger([Interaction(CallId("c1"), "read", sealed=reason)])
    notes = Notes()
    closed = close([model(ONE)], ledger, notes)
    assert closed[1].results[0].shown == SYNTHETIC[reason]
    assert closed[1].results[0].status == "pending"
    assert notes.synthetic == [("c1", reason)]
    assert "user" not in SYNTHETIC[reason].decode()
    assert len(set(SYNTHETIC.values())) == len(REASONS)


def test_the_reason_follows_what_the_ledger_knows() -> None:
    ledger = Ledger().apply(
        Scheduled(CallId("new"), "r"), Scheduled(CallId("begun"), "r"), Started(CallId("begun"))
    )
    ledger = ledger.apply(Cancelled(CallId("stopped"), "interrupted"))
    known = {name: why_missing(CallId(name), ledger) for name in ("new", "begun", "stopped", "unheard_of")}
    assert known == {
        "new": "never_started",
        "begun": "outcome_unknown",
        "stopped": "interrupted",
        "unheard_of": "lost",
    }


# ---- place


@pytest.mark.requirement("REQ-915-008")
def test_what_stood_between_goes_after_the_group_in_its_own_order() -> None:
    stop, wait = human(Text("stop")), model(Text("wait"))
    first, second = ToolResult("c1", "a"), ToolResult("c2", "b")
    placed = place([human(), model(TWO, ONE), stop, tool(first), wait, tool(second)])
    assert placed == [human(), model(TWO, ONE), tool(second, first), stop, wait]
    assert place(placed) == placed


# ---- apart

ONE_CALL = PROFILES["llama_cpp"].derive(calls_together=False)


@pytest.mark.requirement("REQ-915-008")
@examples(200)
@given(conversations())
def test_where_a_message_holds_one_call_each_goes_with_its_own_result(
    conversation: tuple[list[Message], Ledger],
) -> None:
    messages, ledger = conversation
    together = place(close(settled(messages), ledger, Notes()))
    parted = apart(together, ONE_CALL)
    assert apart(together, ANTHROPIC) == together
    assert apart(parted, ONE_CALL) == parted
    for message, answer in pairwise([*parted, human()]):
        if message.calls:
            assert [call.id for call in message.calls] == [result.call_id for result in answer.results]
            assert len(message.calls) == 1
    for speaker in ("human", "model", "tool"):
        said, was = (
            [block for message in tail if message.speaker == speaker for block in message.blocks]
            for tail in (parted, together)
        )
        assert said == was


# ---- thinking

OWN = Thinking("own", Seal("signature", quote("c2ln"), CLAUDE))


def thought(message: Message, policy: ThinkingPolicy = "native", dialect: Dialect = ANTHROPIC) -> list[Block]:
    reader = CLAUDE if dialect is ANTHROPIC else OPENAI
    return list(thinking([message], dialect, Reader(reader, policy), Notes())[0].blocks)


@pytest.mark.requirement("REQ-915-023")
def test_own_thinking_goes_back_as_it_came() -> None:
    assert thought(model(OWN, Text("t"), ONE)) == [OWN, Text("t"), ONE]


@pytest.mark.parametrize(
    "origin",
    [
        OPENAI,
        Binding("claude", "anthropic", CLAUDE.endpoint, CLAUDE.account, "another-model"),
        Binding("claude", "anthropic", CLAUDE.endpoint, "another-account", CLAUDE.model),
        Binding("claude", "anthropic", "https://copy.example", CLAUDE.account, CLAUDE.model),
    ],
)
def test_foreign_thinking_stays_behind(origin: Binding) -> None:
    foreign = Thinking("f", Seal("signature", quote("c2ln"), origin))
    assert thought(model(foreign, Text("t"))) == [Text("t")]
    assert thought(model(foreign, Text("t")), "text") == [Text("[Reasoning: f]"), Text("t")]


@pytest.mark.requirement("REQ-915-024")
def test_thinking_excluded_by_policy_or_by_the_dialect_is_not_sent() -> None:
    assert thought(model(OWN, ONE), "drop") == [ONE]
    seal = Seal("signature", quote("c2ln"), OPENAI)
    assert thought(model(Thinking("t", seal), ONE), dialect=OPENAI_CHAT) == [ONE]


@pytest.mark.parametrize("vendor", ["kimi", "deepseek"])
def test_thinking_excluded_by_policy_goes_back_with_calls_to_a_maker_that_demands_it(vendor: str) -> None:
    maker = READERS[vendor]
    own = Thinking("t", Seal("reasoning_content", quote("reasoning_content"), maker))
    messages = [model(own, ONE), model(own, Text("t"))]
    with_call, without = thinking(messages, PROFILES[vendor], Reader(maker, "drop"), Notes())
    assert (list(with_call.blocks), list(without.blocks)) == ([own, ONE], [Text("t")])


@pytest.mark.parametrize(
    "block",
    [
        Thinking("t"),
        Thinking("t", Seal("signature", quote(""), CLAUDE)),
        Thinking("", Seal("redacted", quote(""), CLAUDE)),
    ],
)
def test_thinking_without_a_seal_or_with_an_empty_one_stays_behind(block: Thinking) -> None:
    assert thought(model(block, Text("t"))) == [Text("t")]


def test_thinking_under_another_speaker_or_after_other_words_stays_behind() -> None:
    assert thought(human(OWN, Text("t"))) == [Text("t")]
    assert thought(model(Text("t"), OWN, ONE)) == [Text("t"), ONE]


def test_thinking_from_before_an_epoch_has_no_seal() -> None:
    assert unsealed(model(OWN, ONE)).blocks == (Thinking("own"), ONE)
    assert unsealed(human()) == human()


# ---- tidy


@every_dialect
@pytest.mark.parametrize("words", ["", " ", "\n\t", "\u00a0", "\u2003", "\x1c", "\x85"])
def test_blank_texts_are_left_out_and_so_are_messages_that_held_only_those(
    dialect: Dialect, words: str
) -> None:
    notes = Notes()
    assert tidy(
        [human(Text(words)), model(Text(words), ONE), human(Text("u"), Text(words))],
        Room(dialect),
        notes,
    ) == [
        model(ONE),
        human(),
    ]
    assert notes.losses == {"empty": 3}


@every_dialect
def test_code_is_a_fenced_text_and_media_without_a_place_a_note(dialect: Dialect) -> None:
    (message,) = tidy([model(Code("x = 1", "py"), Media("image/png", "aGk="))], Room(dialect), Notes())
    code, note = message.blocks
    assert code == Text("```py\nx = 1\n```")
    assert isinstance(note, Text)
    assert "image/png" in note.text


@every_dialect
def test_media_stays_where_the_dialect_takes_it_and_holds_something(dialect: Dialect) -> None:
    image, document = Media("image/png", "aGk="), Media("application/pdf", "aGk=")
    (message,) = tidy([human(image, document, Media("image/png"))], Room(dialect), Notes())
    kept = [block for block in message.blocks if isinstance(block, Media)]
    held = {"image": image, "document": document}
    assert kept == [media for kind, media in held.items() if kind in dialect.user_media]
    assert len(message.blocks) == 3


IMAGE, DOCUMENT, SOUND = (Media(mime, "aGk=") for mime in ("image/png", "application/pdf", "audio/wav"))


@every_dialect
def test_media_stay_in_a_result_or_follow_all_results_and_none_is_lost_in_silence(dialect: Dialect) -> None:
    """Scenario 42: where a result cannot hold an image, it says that the image follows."""
    notes = Notes()
    first = ToolResult("c1", "seen", media=[IMAGE, SOUND])
    second = ToolResult("c2", {"a": 1}, media=[DOCUMENT])
    answers, *others = tidy([model(ONE, TWO), tool(first, second), human()], Room(dialect), notes)[1:]
    assert (
        [result.call_id for result in answers.results]
        == ["c1", "c2"]
        == [block.call_id for block in answers.blocks if isinstance(block, ToolResult)]
    )
    held = [media for result in answers.results for media in result.media]
    moved = [block for message in others for block in message.blocks if isinstance(block, Media)]
    assert held == [m for m in (IMAGE, DOCUMENT) if kind(m) in dialect.result_media]
    assert moved == [m for m in (IMAGE, DOCUMENT) if m not in held and kind(m) in dialect.user_media]
    assert others[-1] == human()
    said = answers.results[0].shown.decode() + answers.results[1].shown.decode()
    assert said.startswith('"seen')
    assert said.count("follows the tool results") == len(moved)
    assert said.count("stood here") == 3 - len(held) - len(moved) == notes.losses["media"]


def kind(media: Media) -> str:
    return "image" if media.mime.startswith("image/") else "document"


def test_what_follows_the_results_is_numbered_as_the_results_say() -> None:
    results = [ToolResult("c1", "a", media=[IMAGE]), ToolResult("c2", error="b", media=[IMAGE])]
    answers, follow = tidy([tool(*results)], Room(OPENAI_CHAT), Notes())
    assert [result.shown for result in answers.results] == [
        quote("a\n[Attachment 1, of type image/png, follows the tool results.]"),
        quote("b\n[Attachment 2, of type image/png, follows the tool results.]"),
    ]
    assert [result.status for result in answers.results] == ["complete", "error"]
    assert follow.blocks == (Text("[Attachment 1:]"), IMAGE, Text("[Attachment 2:]"), IMAGE)


def test_a_failed_result_is_words_alone_and_its_media_follow() -> None:
    answers, follow = tidy([tool(ToolResult("c1", error="no", media=[IMAGE]))], Room(ANTHROPIC), Notes())
    assert answers.results[0].media == ()
    assert IMAGE in follow.blocks


def test_blank_words_beside_media_are_left_out() -> None:
    (answers,) = tidy([tool(ToolResult("c1", " \n", media=[IMAGE]))], Room(ANTHROPIC), Notes())
    assert answers.results == (ToolResult("c1", "", media=[IMAGE]),)


def test_an_image_that_is_too_large_for_the_dialect_leaves_a_note() -> None:
    large, notes = Media("image/png", "A" * 8 * 2**20), Notes()
    (answers,) = tidy([tool(ToolResult("c1", "seen", media=[large]))], Room(ANTHROPIC), notes)
    assert answers.results[0].media == ()
    assert "stood here" in answers.results[0].shown.decode()
    assert notes.losses == {"media": 1}


def test_the_same_words_with_another_image_are_another_result() -> None:
    image, other = ToolResult("c1", "seen", media=[IMAGE]), ToolResult("c1", "seen", media=[DOCUMENT])
    messages = [human(), model(ONE), tool(image), tool(image), tool(other)]
    report = cold(messages, Ledger(), CLAUDE).report
    assert report.dedupe == (("c1", "duplicate"), ("c1", "conflicting_duplicate"))


def test_a_repeated_id_keeps_the_media_of_its_result() -> None:
    messages = [
        model(ONE),
        tool(ToolResult("c1", "a")),
        model(ONE),
        tool(ToolResult("c1", "b", media=[IMAGE])),
    ]
    named, _ = identify(messages, Table(), Table(), Notes())
    assert named[3].results == (ToolResult("c1~2", "b", media=[IMAGE]),)


@pytest.mark.parametrize("reader", BINDINGS, ids=str)
def test_the_media_of_a_late_result_and_of_an_orphan_go_with_their_text(reader: Binding) -> None:
    ledger = Ledger().apply(
        RequestSent(1, 1, reader, 0, 1, ((CallId("c1"), "lost"),)),
        Returned(CallId("c1"), quote("L"), (IMAGE,)),
    )
    said = text(cold([human(), model(ONE), human()], ledger, reader)).decode()
    assert said.index("Late result") < said.index("aGk=")
    said = text(
        cold([human(), tool(ToolResult("gone", "R", media=[IMAGE])), human()], Ledger(), reader)
    ).decode()
    assert said.index("without its call") < said.index("aGk=")


def test_in_words_the_media_of_a_result_stand_behind_it() -> None:
    (told,) = plain([tool(ToolResult("c1", "x", media=[IMAGE]), ToolResult("c2", "y"))], Notes())
    assert [type(block) for block in told.blocks] == [Text, Media, Text]


def test_media_that_follow_results_come_before_a_user_message_where_a_filler_must_stand_between() -> None:
    strict = OPENAI_CHAT.derive(user_after_tool="filler")
    told = tidy([tool(ToolResult("c1", "x", media=[IMAGE])), human()], Room(strict), Notes())
    entries = neighbours([(m, ()) for m in told], strict, "assistant")
    assert [entry.role for entry in entries] == ["tool", "assistant", "user", "user"]


@every_dialect
@examples(200)
@given(conversation=conversations())
def test_tidying_twice_is_tidying_once(conversation: tuple[list[Message], Ledger], dialect: Dialect) -> None:
    once = tidy(settled(conversation[0]), Room(dialect), Notes())
    assert tidy(once, Room(dialect), Notes()) == once
    assert all(message.blocks for message in once)


# ---- neighbours


def told(dialect: Dialect, *messages: Message, last: str | None = None) -> list[Entry]:
    pairs: list[tuple[Message, tuple[EntryBlock, ...]]] = [
        (message, tuple(block for block in message.blocks if isinstance(block, Text | Thinking)))
        for message in messages
    ]
    return neighbours(pairs, dialect, "user" if last == "user" else None)


def test_a_transcript_that_must_begin_with_the_user_does() -> None:
    filler = Entry("user", (Text(ANTHROPIC.filler_first),))
    assert told(ANTHROPIC, model(Text("t")), human())[0] == filler
    assert told(ANTHROPIC, model(Text("t")), human(), last="user")[0].role == "assistant"
    assert told(OPENAI_CHAT, model(Text("t")), human())[0].role == "assistant"


@every_dialect
def test_no_transcript_ends_with_the_models_words(dialect: Dialect) -> None:
    assert told(dialect, human(), model(Text("t")))[-1] == Entry("user", (Text(dialect.filler_last),))
    assert told(dialect, human())[-1] == Entry("user", (Text("u"),))
    assert told(dialect)[-1] == Entry("user", (Text(dialect.filler_last),))
    assert told(dialect, last="user") == []


def test_thinking_opens_its_message_even_behind_other_words_of_the_model() -> None:
    entries = told(ANTHROPIC, human(), model(Text("t")), model(OWN, Text("so")), human())
    assert [entry.role for entry in entries] == ["user", "assistant", "user", "assistant", "user"]


# ---- plain


def test_plain_leaves_words_alone_and_puts_the_rest_into_words() -> None:
    call = ToolCall("c1", "read", {"a": 1})
    failed = ToolResult("c2", error={"why": "no"})
    notes = Notes()
    said = plain([human(), model(OWN, Text("t"), call), tool(ToolResult("c1", "x"), failed)], notes)
    assert said == [
        human(),
        model(Text("t"), Text('[Called the tool read with {"a":1}]')),
        human(Text("[The tool answered: x]"), Text('[The tool failed: {"why":"no"}]')),
    ]
    assert notes.losses == {"thinking": 1}


# ---- all of them


@pytest.mark.requirement("REQ-915-014", "REQ-915-015", "REQ-915-036")
def test_a_conversation_of_several_providers_goes_to_either_whole() -> None:
    messages = [
        human(Text("question")),
        Message(
            "model", [OWN, ToolCall("hist_tool_1", "read", native=Seal("call_id", quote("toolu_1"), CLAUDE))]
        ),
        tool(ToolResult("hist_tool_1", "R1.")),
        Message("model", [ToolCall("hist_tool_2", "read", native=Seal("call_id", quote("call_2"), OPENAI))]),
        tool(ToolResult("hist_tool_2", "R2.")),
        human(Text("go on")),
    ]
    for binding, native, foreign in ((CLAUDE, b"toolu_1", b"call_2"), (OPENAI, b"call_2", b"toolu_1")):
        rendered = cold(messages, Ledger(), binding)
        assert refused(rendered) is None
        sent = text(rendered)
        assert sent.count(native) == 2
        assert foreign not in sent
        assert (b"c2ln" in sent) == (binding == CLAUDE)


def test_readers_have_the_dialects_that_the_profiles_name() -> None:
    assert set(READERS) == set(PROFILES)
