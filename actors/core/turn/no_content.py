"""Detect an answer that ended normally but has no content for the caller.

The turn (`actors.core.turn.turn`) retries such answers with the notes that this module defines.

In:  the complete message of a model, and whether the request declared tools.
Out: the answer's `cut`, as in `AskResult.incomplete` and the log; the note to send to the model.

    empty      neither text nor a call: nothing, only reasoning, or only chat-template tokens
    unparsed   a tool call as text, between chat-template tokens (`actors.core.turn.template_tokens`)

Images, documents and the output of a provider's own tools are content. The history does not contain empty answers, for
two reasons: most providers reject an assistant message without content (ALL-11, KIM-04), and some reject reasoning
without a following item (OAR-03).
"""

from collections.abc import Mapping
from typing import Final

from actors.core.turn.template_tokens import holds_call, without_reasoning, without_tokens
from actors.core.values.content import Block, Message, ProviderBlock, Text, Thinking
from actors.core.values.stream import Cut

EMPTY: Final = "the answer was empty: it had neither text nor a tool call"
"""The reason that is reported when a request is retried after an empty answer."""

NO_CONTENT: Final[Mapping[Cut | None, str]] = {
    "empty": EMPTY,
    "unparsed": "the answer holds a tool call as text, which was not run",
}
"""The reason that is reported for an answer without content, by its cut."""

NUDGE: Final = "Your last answer was empty. Go on: answer in words, or call a tool if you need one."
"""The note sent after an empty answer to tool results. Repeating the request alone would give the same answer."""

UNPARSED: Final = (
    "Your last answer holds a tool call as text, with the tokens of a chat template. It was not parsed, and nothing "
    "was run. Call a tool in the way that this interface has for it, or answer in words."
)
UNPARSED_TOOLS_OFF: Final = (
    "Your last answer holds a tool call as text. It was not parsed, and nothing was run. No tool can be called any "
    "more: answer in words."
)

_INVISIBLE: Final = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff"))
"""Characters without width. `str.strip` does not remove them."""


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
