"""Pass 7, tidy: leave only content that the target can hold.

In:  placed messages with the thinking they keep.
Out: the same messages without empty texts, with code as fenced text, with a note where media cannot go; no
     message is left with nothing in it.

A text that is too long for the target is split into several. Empty and whitespace-only texts are refused by
most providers (rulebook ANT-20, ANT-21), and so are messages that a dropped block left empty (ANT-22).
"""

from actors.core.content import Block, Code, Media, Message, Text
from actors.core.diagnostics import Notes
from actors.core.dialect import Dialect


def tidy(tail: list[Message], dialect: Dialect, notes: Notes) -> list[Message]:
    """Return `tail` without what the target cannot hold. Tidying twice is tidying once."""
    tidied: list[Message] = []
    for message in tail:
        if message.speaker == "tool" or all(_plain(block, dialect) for block in message.blocks):
            if message.blocks:
                tidied.append(message)
            continue
        blocks = [kept for block in message.blocks for kept in _kept(block, message, dialect, notes)]
        if blocks:
            tidied.append(Message(message.speaker, blocks, message.turn, message.origin))
    return tidied


def _plain(block: Block, dialect: Dialect) -> bool:
    if type(block) is Text:
        return not (dialect.drop_empty_text and _empty(block)) and not _too_long(block, dialect)
    return type(block) is not Media and type(block) is not Code


_MAYBE_BLANK = frozenset(b'" \\') | frozenset(range(0x80, 0x100))


def _empty(block: Text) -> bool:
    # Nearly every literal starts with a visible ASCII character; only the others are decoded.
    return block.json[1] in _MAYBE_BLANK and not block.text.strip()


def _kept(block: Block, message: Message, dialect: Dialect, notes: Notes) -> list[Block]:
    if isinstance(block, Code):
        notes.lost("code")
        return [Text(f"```{block.language}\n{block.source}\n```")]
    if isinstance(block, Media) and not _held(block, message, dialect):
        notes.lost("media")
        return [Text(f"[An attachment of type {block.mime or 'unknown'} stood here and cannot be shown.]")]
    if isinstance(block, Text) and dialect.drop_empty_text and _empty(block):
        notes.lost("empty")
        return []
    return _pieces(block, dialect) if isinstance(block, Text) else [block]


def _too_long(block: Text, dialect: Dialect) -> bool:
    # A literal has at least as many bytes as its text has characters.
    return dialect.max_string is not None and len(block.json) > dialect.max_string


def _pieces(block: Text, dialect: Dialect) -> list[Block]:
    """Return a text as several, none longer than the target takes (rulebook OAC-14)."""
    longest = dialect.max_string
    if longest is None or not _too_long(block, dialect):
        return [block]
    text = block.text
    pieces = (text[start : start + longest] for start in range(0, len(text), longest))
    return [Text(piece) for piece in pieces if piece.strip() or not dialect.drop_empty_text]


def _held(block: Media, message: Message, dialect: Dialect) -> bool:
    """Say whether the target takes this attachment here. One that holds nothing, nobody takes."""
    kind = "image" if block.mime.startswith("image/") else "document"
    limit = dialect.media_bytes
    return (
        message.speaker == "human"
        and kind in dialect.user_media
        and (block.mime in dialect.media_types or (bool(block.url) and kind == "image"))
        and bool(block.data or block.url)
        and (limit is None or len(block.data) * 3 // 4 <= limit)
    )
