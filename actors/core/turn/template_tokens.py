"""Find chat-template tokens in the text of an answer. They mark tool calls and reasoning.

`actors.core.turn.no_content` and `actors.core.turn.output` use this module.

In:  the text of an answer.
Out: whether it contains a tool call that the host did not parse; the text without tokens and reasoning.

A self-hosted model writes its calls between tokens of its chat template. A host without the matching parser returns the
calls as text. This module detects these calls but never parses them: a call written as text must not run, because the
text may quote a document or another model.

Only exact tokens count. A token in a fenced block, in inline code or in quotes is a quotation and does not count. If a
token is a plain word in brackets, the text after it must look like a call.
"""

import re
from collections.abc import Mapping
from typing import Final

from actors.core.data.jsonio import parse_object

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
