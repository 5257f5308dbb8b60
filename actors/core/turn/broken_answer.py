"""Mark an answer that broke off, so that nobody takes it for a whole one.

In:  what could be kept of a model's message.
Out: the message, and behind it a note that stands apart from its last words.
"""

from typing import Final

from actors.core.values.content import Message, Text

INTERRUPTED: Final = "[This answer was interrupted.]"


def interrupted_message(kept: Message) -> Message:
    """Return a message that ends with the note.

    Some providers put texts of one message behind each other as they are, and so does `Message.text`.
    """
    said = kept.text
    gap = "\n\n" if said and not said.endswith("\n") else ""
    return Message("assistant", (*kept.blocks, Text(gap + INTERRUPTED)), kept.turn, kept.origin)
