"""Mark an interrupted answer, so that it is not mistaken for a complete answer later.

When a request fails, the session adds the mark to the part of the answer that it keeps.

In:  the partial message of a model.
Out: the message with a note at its end, separated from its text.
"""

from typing import Final

from actors.core.values.content import Message, Text

INTERRUPTED: Final = "[This answer was interrupted.]"


def interrupted_message(partial: Message) -> Message:
    """Return the message with the note appended.

    The note begins with a blank line, because some providers and `Message.text` join text blocks without a separator.
    """
    text = partial.text
    gap = "\n\n" if text and not text.endswith("\n") else ""
    return Message("assistant", (*partial.blocks, Text(gap + INTERRUPTED)), partial.turn, partial.origin)
