"""Pass 8, tidy: leave only content that the target can hold.

In:  placed messages with the thinking they keep.
Out: the same messages without empty texts, with code as fenced text, with a note where media cannot go or the
     request holds as many as it may; no message is left with nothing in it, with reasoning last where something
     must follow it, or with reasoning alone where the target refuses that.

A text that is too long for the target is split into several. Empty and whitespace-only texts are refused by
most providers (rulebook ANT-20, ANT-21), and so are messages that a dropped block left empty (ANT-22).

Media of a result stay in it where the target's results can hold them. The others follow in a human message directly
after all results of the group, never between two, and the result says so (OAC-08, MIS-18). A failed result is words
alone (ANT-51).

A request holds so many attachments and no more (BED-16, BED-17, ANT-54). What was sent stays, so the oldest of an
epoch are shown, and those that come when it is full are noted.
"""

import re
from collections.abc import Sequence
from math import inf

from actors.core.content import Block, Code, Media, Message, Text, Thinking, ToolResult
from actors.core.diagnostics import Notes
from actors.core.dialect import Dialect
from actors.core.identity import RUNTIME
from actors.core.jsonio import Json, quote, unquote
from actors.core.transcript import UNSPENT, Spent


def tidy(tail: list[Message], room: "Room", notes: Notes) -> list[Message]:
    """Return `tail` without what the target cannot hold, and take the room it needs. Tidying twice is tidying once."""
    tidied: list[Message] = []
    dialect = room.dialect
    for message in tail:
        if message.speaker == "tool":
            tidied.extend(_answers(message, room, notes))
            continue
        plain = all(_plain(block, dialect) for block in message.blocks)
        if plain and not _dangles(message.blocks, dialect):
            blocks: Sequence[Block] = message.blocks
        else:
            blocks = _tidied(message, room, notes)
        if not dialect.thinking_alone and blocks and {Thinking}.issuperset(map(type, blocks)):
            notes.lost("thinking", len(blocks))
        elif blocks is message.blocks and blocks:
            tidied.append(message)
        elif blocks:
            tidied.append(Message(message.speaker, blocks, message.turn, message.origin))
    return tidied


# ---- what a request may hold


class Room:
    """Where attachments may stand, and how many the request still takes on top of what is `spent`."""

    def __init__(self, dialect: Dialect, spent: Spent = UNSPENT) -> None:
        self.dialect = dialect
        self._media = _left(dialect.max_media, spent.media)
        self._documents = _left(dialect.max_documents, spent.documents)

    def takes(self, media: Media, kinds: frozenset[str]) -> bool:
        """Say whether an attachment is shown where these kinds may stand; if it is, there is room for one less."""
        if not _held(media, kinds, self.dialect) or self._is_full(media):
            return False
        self._media -= 1
        self._documents -= _is_document(media)
        return True

    def noted(self, media: Media) -> str:
        """Return what is said in place of an attachment that is not shown."""
        stood = f"[An attachment of type {media.mime or 'unknown'} stood here"
        kinds = self.dialect.user_media | self.dialect.result_media
        if self._is_full(media) and _held(media, kinds, self.dialect):
            return f"{stood}; the conversation holds as many as can be shown.]"
        return f"{stood} and cannot be shown.]"

    def _is_full(self, media: Media) -> bool:
        return self._media < 1 or (_is_document(media) and self._documents < 1)


def _is_document(media: Media) -> bool:
    return not media.mime.startswith("image/")


def _left(most: int | None, gone: int) -> float:
    return inf if most is None else most - gone


# ---- results and their media


def _answers(message: Message, room: Room, notes: Notes) -> list[Message]:
    """Return a message of results, and behind it a message with the media that those cannot hold."""
    if not any(result.media for result in message.results):
        return [message] if message.blocks else []
    moved: list[Media] = []
    blocks = [
        _answer(block, moved, room, notes) if type(block) is ToolResult and block.media else block
        for block in message.blocks
    ]
    answers = [Message("tool", blocks, message.turn, message.origin)]
    if moved:
        labelled = [
            block for at, media in enumerate(moved, 1) for block in (Text(f"[Attachment {at}:]"), media)
        ]
        answers.append(Message("human", labelled, message.turn, RUNTIME))
    return answers


def _answer(result: ToolResult, moved: list[Media], room: Room, notes: Notes) -> ToolResult:
    """Return a result with the media it keeps; those that follow it join `moved`, and it says where all went."""
    kept: list[Media] = []
    said: list[str] = []
    for media in result.media:
        if result.error_json is None and room.takes(media, room.dialect.result_media):
            kept.append(media)
        elif room.takes(media, room.dialect.user_media):
            moved.append(media)
            said.append(f"[Attachment {len(moved)}, of type {media.mime}, follows the tool results.]")
        else:
            notes.lost("media")
            said.append(room.noted(media))
    words = b'""' if _blank(result.shown) else result.shown
    if said:
        gap = b"" if words == b'""' else b"\\n"
        words = words[:-1] + gap + quote("\n".join(said))[1:]
    content, error = (Json(words), None) if result.error_json is None else (None, Json(words))
    return ToolResult(
        result.call_id, None, None, result.is_complete, kept, content_json=content, error_json=error
    )


def _held(media: Media, kinds: frozenset[str], dialect: Dialect) -> bool:
    """Say whether the target takes this attachment where these kinds may stand. Nobody takes an empty one."""
    kind = "document" if _is_document(media) else "image"
    limit = dialect.media_bytes
    return (
        kind in kinds
        and (media.mime in dialect.media_types or (bool(media.url) and kind == "image"))
        and _is_there(media, dialect)
        and (limit is None or len(media.data) <= limit)
    )


_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def _is_there(media: Media, dialect: Dialect) -> bool:
    """Say whether an attachment holds what can be sent: base64, or an address for the provider to fetch."""
    if media.data:
        return len(media.data) % 4 == 0 and _BASE64.fullmatch(media.data) is not None
    return dialect.media_urls and media.url.startswith("https://")


# ---- everything else


def _tidied(message: Message, room: Room, notes: Notes) -> list[Block]:
    """Return what is left of a message's blocks."""
    blocks = [kept for block in message.blocks for kept in _kept(block, message, room, notes)]
    while _dangles(blocks, room.dialect):
        blocks.pop()
        notes.lost("thinking")
    return blocks


def _dangles(blocks: Sequence[Block], dialect: Dialect) -> bool:
    """Say whether reasoning stands at the end, where something must follow it (rulebook OAR-03)."""
    return dialect.thinking_followed and bool(blocks) and type(blocks[-1]) is Thinking


def _plain(block: Block, dialect: Dialect) -> bool:
    if type(block) is Text:
        return not (dialect.drop_empty_text and _blank(block.json)) and not _too_long(block, dialect)
    return type(block) is not Media and type(block) is not Code


_MAYBE_BLANK = frozenset(b'" \\') | frozenset(range(0x80, 0x100))


def _blank(literal: Json) -> bool:
    # Nearly every literal starts with a visible ASCII character; only the others are decoded.
    return literal[1] in _MAYBE_BLANK and not unquote(literal).strip()


def _kept(block: Block, message: Message, room: Room, notes: Notes) -> list[Block]:
    if isinstance(block, Code):
        notes.lost("code")
        return [Text(f"```{block.language}\n{block.source}\n```")]
    dialect = room.dialect
    if isinstance(block, Media):
        if message.speaker == "human" and room.takes(block, dialect.user_media):
            return [block]
        notes.lost("media")
        return [Text(room.noted(block))]
    if isinstance(block, Text) and dialect.drop_empty_text and _blank(block.json):
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
