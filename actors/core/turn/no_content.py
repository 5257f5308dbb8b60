"""Detect an answer that ended properly but has no content for the caller.

The turn (`actors.core.turn.turn`) retries such answers with the notes that this module defines.

In:  the complete message of a model, and whether the request declared tools.
Out: its `cut`, as in `AskResult.incomplete` and the log; the note to send to the model.

    empty      neither text nor a call: nothing, only reasoning, or only tokens of a chat template
    unparsed   a tool call as text, between the tokens of a chat template (`actors.core.turn.template_tokens`)

Images, documents and the output of a provider's own tools are content. An empty answer is not kept in the history: most
providers refuse an assistant message without content (ALL-11, KIM-04), or reasoning that nothing follows (OAR-03).
"""

from collections.abc import Mapping
from typing import Final

from actors.core.turn.template_tokens import holds_call, without_reasoning, without_tokens
from actors.core.values.content import Block, Message, ProviderBlock, Text, Thinking
from actors.core.values.stream import Cut

EMPTY: Final = "the answer was empty: it had neither text nor a tool call"
"""The reported reason for a retry."""

NO_CONTENT: Final[Mapping[Cut | None, str]] = {
    "empty": EMPTY,
    "unparsed": "the answer holds a tool call as text, which was not run",
}
"""The reported reason of each cut without content."""

NUDGE: Final = "Your last answer was empty. Go on: answer in words, or call a tool if you need one."
"""The note after an empty answer that follows tool results. The same request again would give the same answer."""

UNPARSED: Final = (
    "Your last answer holds a tool call as text, with the tokens of a chat template. It was not parsed, and nothing "
    "was run. Call a tool in the way that this interface has for it, or answer in words."
)
UNPARSED_TOOLS_OFF: Final = (
    "Your last answer holds a tool call as text. It was not parsed, and nothing was run. No tool can be called any "
    "more: answer in words."
)

_INVISIBLE: Final = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff"))
"""Characters without width, which `str.strip` keeps."""


def content_cut(message: Message, *, has_tools: bool) -> Cut | None:
    """Return the cut of an answer without content, else None. `has_tools`: the request declared tools."""
    if message.calls:
        return None
    text = message.text
    if has_tools and holds_call(text):
        return "unparsed"
    if any(map(_is_content, message.blocks)):
        return None
    said = without_reasoning(text)
    if has_tools:  # without tools, the user may have asked about the token itself
        said = without_tokens(said)
    return None if said.translate(_INVISIBLE).strip() else "empty"


def _is_content(block: Block) -> bool:
    """Return True for content other than text. A mark (a provider's annotation of text) is not content."""
    if isinstance(block, ProviderBlock):
        return block.seal.kind != "mark"
    return not isinstance(block, Text | Thinking)


def unparsed_note(*, tools_off: bool) -> str:
    """Return the note for a model that wrote a call as text."""
    return UNPARSED_TOOLS_OFF if tools_off else UNPARSED
