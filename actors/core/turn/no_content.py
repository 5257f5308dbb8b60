"""No content: an answer that ended properly and gives its caller nothing.

In:  the model's whole message, and whether tools were declared.
Out: how it is cut, as `AskResult.cut` and the log have it; what the model is told of it.

    empty      neither text nor a call: nothing, only reasoning, or only tokens of a chat template
    unparsed   a tool call as text, between the tokens of a chat template (`actors.core.turn.template_tokens`)

Images, documents and what a provider's own tools did are content. An empty answer is not kept in the history: most
providers refuse an assistant message without content (ALL-11, KIM-04), or reasoning that nothing follows (OAR-03).
"""

from collections.abc import Mapping
from typing import Final

from actors.core.turn.template_tokens import holds_call, without_reasoning, without_tokens
from actors.core.values.content import Block, Message, ProviderBlock, Text, Thinking
from actors.core.values.stream import Cut

EMPTY: Final = "the answer was empty: it had neither text nor a tool call"
"""Why a request is tried again, in words for people."""

NO_CONTENT: Final[Mapping[Cut | None, str]] = {
    "empty": EMPTY,
    "unparsed": "the answer holds a tool call as text, which was not run",
}
"""The cuts of answers without content, in words for people."""

NUDGE: Final = "Your last answer was empty. Go on: answer in words, or call a tool if you need one."
"""What a model is told that said nothing after tool results. It took its turn for complete, and would again."""

UNPARSED: Final = (
    "Your last answer holds a tool call as text, with the tokens of a chat template. It was not parsed, and nothing "
    "was run. Call a tool in the way that this interface has for it, or answer in words."
)
UNPARSED_TOOLS_OFF: Final = (
    "Your last answer holds a tool call as text. It was not parsed, and nothing was run. No tool can be called any "
    "more: answer in words."
)

_INVISIBLE: Final = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff"))
"""Characters without width, which are no blanks to `str.strip`."""


def content_cut(message: Message, *, has_tools: bool) -> Cut | None:
    """Return `empty` or `unparsed` for an answer without content, else None. `has_tools`: its request declared some."""
    if message.calls:
        return None
    text = message.text
    if has_tools and holds_call(text):
        return "unparsed"
    if any(map(_is_content, message.blocks)):
        return None
    said = without_reasoning(text)
    if has_tools:  # else somebody may have asked for the token itself
        said = without_tokens(said)
    return None if said.translate(_INVISIBLE).strip() else "empty"


def _is_content(block: Block) -> bool:
    """Return whether a block is content beside text. A mark only belongs to what was said."""
    if isinstance(block, ProviderBlock):
        return block.seal.kind != "mark"
    return not isinstance(block, Text | Thinking)


def unparsed_note(*, tools_off: bool) -> str:
    """Return what a model is told whose call was not parsed."""
    return UNPARSED_TOOLS_OFF if tools_off else UNPARSED
