"""Check which answers have no content, for every call form of chat templates."""

import re

import pytest

from actors.core.data.jsonio import quote
from actors.core.turn.answers import CALL_TOKENS, content_cut, holds_call, without_reasoning
from actors.core.values.content import Media, Message, ProviderBlock, ProviderState, Text, Thinking, ToolCall
from actors.core.values.identity import Binding
from tests.adapters.raw_calls import ABOUT_CALLS, RAW_CALLS
from tests.adapters.template_files import DIRECTORY, WHY_SKIPPED

MAKER = Binding("a", "m")


def model_message(*texts: str) -> Message:
    return Message("assistant", [Text(text) for text in texts])


@pytest.mark.parametrize("raw", RAW_CALLS.values(), ids=RAW_CALLS)
def test_a_call_written_in_template_tokens_is_detected_alone_and_within_other_text(raw: str) -> None:
    for text in (raw, f"I read it. {raw}", f"I read it.\n\n{raw}\n\nThat is it."):
        assert content_cut(model_message(text), has_tools=True) == "unparsed"
    assert content_cut(model_message(raw[:5], raw[5:]), has_tools=True) == "unparsed"


@pytest.mark.parametrize("raw", RAW_CALLS.values(), ids=RAW_CALLS)
def test_a_call_written_as_text_is_an_answer_if_no_tools_exist_or_another_call_was_parsed(raw: str) -> None:
    assert content_cut(model_message(raw), has_tools=False) is None
    beside = Message("assistant", [Text(raw), ToolCall("c1", "read")])
    assert content_cut(beside, has_tools=True) is None


@pytest.mark.parametrize("text", ABOUT_CALLS.values(), ids=ABOUT_CALLS)
def test_a_text_about_template_tokens_counts_as_an_answer(text: str) -> None:
    assert content_cut(model_message(text), has_tools=True) is None


def test_a_call_written_as_text_and_cut_off_after_its_first_token_is_detected() -> None:
    for text in ("I read it. <tool_call>\n", "I read it. [TOOL_CALLS]"):
        assert content_cut(model_message(text), has_tools=True) == "unparsed"


def test_a_call_written_as_text_after_a_code_example_is_detected() -> None:
    example = ABOUT_CALLS["a fence"]
    for raw in RAW_CALLS.values():
        assert holds_call(f"{example}\n{raw}"), raw
        assert holds_call(f"With `read` I see it. {raw}"), raw
    assert holds_call(f"A backtick ` alone.\n{RAW_CALLS['kimi']}\nAnd ` another.")


@pytest.mark.skipif(DIRECTORY is None, reason=WHY_SKIPPED)
@pytest.mark.parametrize("family", ["kimi", "qwen", "glm", "llama", "mistral", "minimax", "gemma", "granite"])
def test_the_call_tokens_that_are_detected_occur_in_real_chat_templates(family: str) -> None:
    assert DIRECTORY is not None
    pattern = re.compile("|".join(CALL_TOKENS[family]))
    assert any(pattern.search(path.read_text()) for path in DIRECTORY.glob("*.jinja"))


EMPTY = {
    "nothing": Message("assistant", []),
    "an empty text": model_message(""),
    "blanks": model_message(" \n\t", "\u00a0", "\u200b \ufeff"),
    "thoughts": Message("assistant", [Thinking("I could read.")]),
    "sealed thoughts": Message("assistant", [Thinking("", ProviderState("signature", quote("s"), MAKER))]),
    "thoughts and blanks": Message("assistant", [Thinking("I could read."), Text("\n\n")]),
    "a mark alone": Message(
        "assistant", [ProviderBlock("citations", ProviderState("mark", quote("[]"), MAKER))]
    ),
    "thoughts in the text": model_message("<think>I could read.</think>\n"),
    "thoughts without end": model_message("<think>I could"),
    "thoughts of Magistral": model_message("[THINK]I could read.[/THINK]"),
}


@pytest.mark.parametrize("has_tools", [True, False])
@pytest.mark.parametrize("message", EMPTY.values(), ids=EMPTY)
def test_an_answer_without_text_and_calls_is_empty(message: Message, has_tools: bool) -> None:
    assert content_cut(message, has_tools=has_tools) == "empty"


TOKENS = {
    "chatml": "<|im_end|>",
    "a role": "<|im_start|>assistant\n<|im_end|>",
    "llama": "<|start_header_id|>assistant<|end_header_id|>\n\n<|eot_id|>",
    "harmony": "<|channel|>analysis<|message|>I could read.<|end|><|start|>assistant<|channel|>final<|message|>",
    "deepseek": "<｜Assistant｜><｜end▁of▁sentence｜>",
    "mistral": "[/INST] </s>",
    "gemma": "<start_of_turn>model\n<end_of_turn>",
    "gemma 4": "<|channel>final\n<channel|><turn|>",
    "kimi": "<|im_assistant|>assistant<|im_middle|>[EOS]",
}


@pytest.mark.parametrize("text", TOKENS.values(), ids=TOKENS)
def test_template_tokens_alone_count_as_an_empty_answer_if_tools_are_declared(text: str) -> None:
    assert content_cut(model_message(text), has_tools=True) == "empty"
    assert content_cut(model_message(f"{text}It rains."), has_tools=True) is None


def test_a_template_token_counts_as_an_answer_if_no_tools_are_declared() -> None:
    assert content_cut(model_message("<|im_end|>"), has_tools=False) is None


CONTENT = {
    "text": Text("Yes."),
    "an image": Media("image/png", "iVBO"),
    "a search": ProviderBlock("server_tool_use", ProviderState("part", quote("{}"), MAKER)),
    "a part of an unknown kind": ProviderBlock("hologram", ProviderState("unknown", quote("{}"), MAKER)),
}


@pytest.mark.parametrize("block", CONTENT.values(), ids=CONTENT)
def test_content_of_server_tools_counts_as_an_answer(block: Text | Media | ProviderBlock) -> None:
    for has_tools in (True, False):
        assert content_cut(Message("assistant", [Thinking("Hm."), block]), has_tools=has_tools) is None


def test_only_reasoning_at_the_beginning_of_a_text_is_removed() -> None:
    assert without_reasoning("<think>a</think><think>b</think>\nYes.") == "\nYes."
    assert without_reasoning("Yes. <think>a</think>") == "Yes. <think>a</think>"


HOSTILE = {
    "ticks": ("x" + "`" * 1_000_000 + "<tool_call>{", True),
    "runs": ("".join("`" * (count % 400 + 1) + " " for count in range(4_000)) + "\n<tool_call>{", True),
    "fences": ("```\n" * 200_001 + "<tool_call>{", False),
    "quotes": ('"<tool_call>"' * 100_000, False),
    "blanks": (("<tool_call>" + " " * 100 + ".") * 10_000, False),
    "indentation": (" " * 1_000_000 + "<tool_call>{", True),
}


@pytest.mark.parametrize(("text", "holds"), HOSTILE.values(), ids=HOSTILE)
def test_detecting_a_call_in_hostile_text_takes_linear_time(text: str, holds: bool) -> None:
    assert holds_call(text) is holds


def test_removing_many_reasoning_blocks_from_a_text_takes_linear_time() -> None:
    assert without_reasoning("<think></think>" * 200_000) == ""
