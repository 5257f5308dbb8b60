"""Reads an Anthropic Messages transcript: a list of `messages`, also a badly broken one.

One small function for each kind of block. Blocks are read wherever they stand: a result in an assistant
message is still a result. Blocks of server tools belong to their provider and are kept as text.
"""

from collections.abc import Callable, Sequence

from actors.adapters.reading import Reading, as_text, native_key, read_turns, spread
from actors.adapters.wire import Fields, fields, string
from actors.core.content import Media
from actors.core.jsonio import mended


def read(messages: Sequence[object], reading: Reading) -> None:
    """Read wire messages, oldest first, into `reading`."""
    read_turns(messages, reading, _content, instructions)


def instructions(system: object) -> str:
    """Return a system prompt, a string or a list of text blocks, as text."""
    content, _ = spread(system, _media)
    return "" if content is None else as_text(content)


def _content(reading: Reading, content: object) -> None:
    """A string, or a list of blocks; anything else that is there is kept as text."""
    if isinstance(content, str):
        reading.text(content)
    elif isinstance(content, dict | list | tuple):
        for block in [content] if isinstance(content, dict) else content:
            if isinstance(block, str):
                reading.text(block)
            else:
                _BLOCKS.get(string(fields(block).get("type")), _unknown)(
                    reading, fields(block) or {"": block}
                )
    elif content is not None:
        reading.fold("content of an unknown kind", content)


def _text(reading: Reading, block: Fields) -> None:
    reading.text(string(block.get("text")))


def _thinking(reading: Reading, block: Fields) -> None:
    reading.think(string(block.get("thinking")), "signature", string(block.get("signature")))


def _redacted(reading: Reading, block: Fields) -> None:
    reading.think("", "redacted", string(block.get("data")))


def _tool_use(reading: Reading, block: Fields) -> None:
    reading.call(native_key(block.get("id")), block.get("name"), block.get("input"))


def _tool_result(reading: Reading, block: Fields) -> None:
    content, media = spread(block.get("content"), _media)
    failed = block.get("is_error") is True
    reading.result(native_key(block.get("tool_use_id")), content, failed=failed, media=media)


def _carrier(reading: Reading, block: Fields) -> None:
    """An image or a document. A document of plain text is text."""
    source = fields(block.get("source"))
    if media := _media(block):
        reading.say(media)
    elif source.get("type") == "text":
        reading.text(string(source.get("data")))
    else:
        _unknown(reading, block)


def _unknown(reading: Reading, block: Fields) -> None:
    kind = string(block.get("type"))[:40]
    reading.fold(f"block of type {kind!r}", block)


_BLOCKS: dict[str, Callable[[Reading, Fields], None]] = {
    "text": _text,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    "image": _carrier,
    "document": _carrier,
}


def _media(block: Fields) -> Media | None:
    if block.get("type") not in ("image", "document"):
        return None
    source = fields(block.get("source"))
    if source.get("type") == "base64":
        mime = string(source.get("media_type"))
        return Media(mended(mime), data=mended(string(source.get("data"))))
    if source.get("type") == "url":
        kind = "application/pdf" if block.get("type") == "document" else "image/*"
        return Media(kind, url=mended(string(source.get("url"))))
    return None
