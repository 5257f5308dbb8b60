"""Detect defects of an answer: no content for the caller, tool calls as text, or an interruption.

The turn (`actors.core.turn.turn`) retries an answer without content with the notes that this module defines.

In:  the complete message of a model, and whether the request declared tools.
Out: the answer's `cut`, as in `AskResult.incomplete` and the log; the note to send to the model.

    empty      neither text nor a call: nothing, only reasoning, or only chat-template tokens
    unparsed   a tool call as text, between chat-template tokens

Images, documents and the output of a provider's own tools are content. The history does not contain empty answers, for
two reasons: most providers reject an assistant message without content (ALL-11, KIM-04), and some reject reasoning
without a following item (OAR-03).

A self-hosted model writes its calls and reasoning between tokens of its chat template. A host without the matching
parser returns the calls as text. This module detects these calls but never parses them: a call written as text must not
run, because the text may quote a document or another model. Only exact tokens count. A token in a fenced block, in
inline code or in quotes is a quotation and does not count. If a token is a plain word in brackets, the text after it
must look like a call.

When a request fails, the session marks the part of the answer that it keeps, so that it is not mistaken for a complete
answer later.
"""

import re
from collections.abc import Mapping
from typing import Final

from actors.core.data.jsonio import parse_object
from actors.core.values.content import Block, Message, ProviderBlock, Text, Thinking
from actors.core.values.stream import Cut

_NAME = r"[\w.:-]+"
CALL_TOKENS: Final[Mapping[str, tuple[str, ...]]] = {
    # Source: huggingface.co/moonshotai/Kimi-K2-Instruct, tool_call_guidance.md. vLLM accepts the singular form too.
    "kimi": (r"<\|tool_calls?_section_(?:begin|end)\|>", r"<\|tool_call_(?:begin|argument_begin|end)\|>"),
    # Hermes, Qwen 2.5 and Qwen 3 write JSON in <tool_call>, Qwen 3 Coder <function=NAME>, GLM 4.5 to 5 NAME<arg_key>.
    "qwen": (
        rf"<tool_call>(?=\s*(?:[\[{{<]|\Z)|{_NAME}\s*(?:<|{{))",
        r"[}\]>]\s*</tool_call>",
        rf"<function={_NAME}>",
    ),
    "glm": (r"<arg_key>", r"<arg_value>", r"<\|observation\|>"),
    # Source: github.com/openai/harmony. The second pattern matches the text if special tokens were removed from it.
    "harmony": (
        r"<\|(?:call|constrain)\|>",
        rf"to=functions\.{_NAME}",
        rf"<\|(?:start|channel)\|>\w*\s+to={_NAME}",
        r"<\|start\|>functions\.",
    ),
    # Source: huggingface.co/deepseek-ai. The first pattern is for V3 and R1, the second for V3.2 and V4 (DSML).
    # Some hosts use ASCII bars for DSML.
    "deepseek": (
        r"<｜tool▁(?:calls?▁(?:begin|end)|sep)｜>",
        r"</?[｜|]DSML[｜|](?:function_calls|tool_calls|invoke|parameter)\b",
    ),
    # Source: llama.com/docs, for Llama 3.1 and 4. Llama's <function=NAME> is the same as that of Qwen 3 Coder.
    "llama": (r"<\|python_(?:tag|start)\|>",),
    # Source: mistral-common. Tokenizer v3 writes a list; v11 and v13 write NAME[ARGS].
    "mistral": (rf"\[TOOL_CALLS\](?=\s*(?:[\[{{]|\Z|{_NAME}\s*[\[{{]))", r"\[ARGS\](?=\s*{)"),
    # The first pattern is for MiniMax M2, the second for M1, which writes JSON in <tool_calls>.
    "minimax": (r"<minimax:tool_call>", r"<tool_calls>(?=\s*(?:[\[{<]|\Z))"),
    # Claude's own format, which many open models have learned.
    "invoke": (rf"<invoke name=\"{_NAME}\">", r"<function_calls>(?=\s*<)"),
    "gemma": (r"<\|tool_call>", r"<start_function_call>"),
    "granite": (r"<\|tool_call\|>",),
    "cohere": (r"<\|START_ACTION\|>",),
    "nemotron": (r"<TOOLCALL>",),
    "seed": (r"<seed:tool_call>",),
    "lfm": (r"<\|tool_call_start\|>",),
    "longcat": (r"<longcat_tool_call>",),
    "gigachat": (r"<\|function_call\|>",),
}
"""Regular expressions for the tokens around tool calls, by model family."""
_CALL = re.compile("|".join(token for family in CALL_TOKENS.values() for token in family))
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»"}
_FENCED = re.compile(
    r"^[ \t>]*+(?:[-*+] |\d+[.)] )?[ \t]*+(`{3,}(?=[^`\n]*$)|~{3,})[^\n]*(?:\n.*?)??(?:\n[ \t>]*\1|\Z)",
    re.DOTALL | re.MULTILINE,
)
_TICKS = re.compile(r"`+")
_REASONING = re.compile(
    r"\s*(?:<think>.*?(?:</think>|\Z)|\[THINK\].*?(?:\[/THINK\]|\Z)|(?:<\|start\|>assistant\s*)?"
    r"<\|channel\|>analysis<\|message\|>.*?(?:<\|end\|>|\Z))",
    re.DOTALL,
)
"""Reasoning that a host did not remove from the text: of DeepSeek, Qwen and GLM; of Magistral; in harmony format."""
_TOKEN = re.compile(
    r"<\|start_header_id\|>assistant<\|end_header_id\|>"
    r"|<\|(?:im_start|start)\|>assistant|<start_of_turn>model|<\|im_assistant\|>assistant"
    r"|<\|channel\|>(?:final|commentary|analysis)"
    r"|<\|turn>model|<turn\|>|<\|channel>\w*|<channel\|>|<end_of_turn>|</tool_call>|</function>"
    r"|<\|\w{1,40}\|>|<｜[\w▁]{1,40}｜>|</?s>|<(?:eos|bos|pad|unk)>|\[(?:/?INST|BOS|EOS|EOT)\]"
)
"""A token that is not text of the model, together with the role or channel that follows the token."""
EMPTY: Final = "the answer was empty: it had neither text nor a tool call"
"""The reason that is reported when a request is retried after an empty answer."""
NO_CONTENT: Final[Mapping[Cut | None, str]] = {
    "empty": EMPTY,
    "unparsed": "the answer contains a tool call as text, which was not run",
}
"""The reason that is reported for an answer without content, by its cut."""
EMPTY_ANSWER_NOTE: Final = (
    "Your last answer was empty. Continue: answer with text, or call a tool if you need one."
)
"""The note sent after an empty answer to tool results. Repeating the request alone would give the same answer."""
UNPARSED: Final = (
    "Your last answer contains a tool call as text, with the tokens of a chat template. It was not parsed, and "
    "no tool was run. Call the tool through the tool interface, or answer with text."
)
UNPARSED_TOOLS_OFF: Final = (
    "Your last answer contains a tool call as text. It was not parsed, and no tool was run. Tools are disabled now: "
    "answer with text."
)
_INVISIBLE: Final = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff"))
"""Characters without width. `str.strip` does not remove them."""
INTERRUPTED: Final = "[This answer was interrupted.]"


def holds_call(text: str) -> bool:
    """Return True if a text contains the markup of a tool call that the model's host failed to parse.

    A plain JSON object does not count as a tool call.
    """
    if _CALL.search(text) is None or parse_object(text.strip()) is not None:
        return False
    prose = _without_inline_code(_FENCED.sub("\n", text))
    return any(not _is_quoted(prose, found) for found in _CALL.finditer(prose))


def without_reasoning(text: str) -> str:
    """Remove leading reasoning from a text."""
    at = 0
    while (found := _REASONING.match(text, at)) is not None:
        at = found.end()
    return text[at:]


def without_tokens(text: str) -> str:
    """Remove the tokens of chat templates from a text."""
    return _TOKEN.sub("", text)


def _is_quoted(text: str, token: re.Match[str]) -> bool:
    before, behind = text[token.start() - 1 : token.start()], text[token.end() : token.end() + 1]
    return before in _QUOTES and _QUOTES[before] == behind


def _without_inline_code(text: str) -> str:
    """Remove code spans from a text. A code span lies between two runs of backticks of the same length."""
    runs = [found.span() for found in _TICKS.finditer(text)]
    places: dict[int, list[int]] = {}  # indexes of runs by the length of the run, last index first
    for place in reversed(range(len(runs))):
        places.setdefault(runs[place][1] - runs[place][0], []).append(place)
    kept, at, place = list[str](), 0, 0
    while place < len(runs):
        begin, end = runs[place]
        same = places[end - begin]
        while same and same[-1] <= place:
            same.pop()
        closing = same[-1] if same else None
        if closing is not None and text.find("\n", end, runs[closing][0]) < 0:
            kept.append(text[at:begin])
            at, place = runs[closing][1], closing
        place += 1
    return "".join((*kept, text[at:]))


def content_cut(message: Message, *, has_tools: bool) -> Cut | None:
    """Return the reason why an answer has no content (`empty` or `unparsed`); None if the answer has content.

    `has_tools` is True if the request declared tools.
    """
    if message.calls:
        return None
    text = message.text
    if has_tools and holds_call(text):
        return "unparsed"
    if any(map(_is_content, message.blocks)):
        return None
    said = without_reasoning(text)
    if has_tools:  # without tools, the answer may be about the token itself, so the token counts as content
        said = without_tokens(said)
    return None if said.translate(_INVISIBLE).strip() else "empty"


def _is_content(block: Block) -> bool:
    """Return True if the block is content other than text.

    An annotation of text by the provider (a mark) is not content.
    """
    if isinstance(block, ProviderBlock):
        return block.seal.kind != "mark"
    return not isinstance(block, Text | Thinking)


def unparsed_note(*, tools_off: bool) -> str:
    """Return the note for a model that wrote a tool call as text."""
    return UNPARSED_TOOLS_OFF if tools_off else UNPARSED


def interrupted_message(partial: Message) -> Message:
    """Return a partial answer with a note that the answer was interrupted.

    The note begins with a blank line, because some providers and `Message.text` join text blocks without a separator.
    """
    text = partial.text
    gap = "\n\n" if text and not text.endswith("\n") else ""
    return Message("assistant", (*partial.blocks, Text(gap + INTERRUPTED)), partial.turn, partial.origin)
