"""Reads an Anthropic Messages transcript: a list of `messages`, also a badly broken one.

One small function for each kind of block. Blocks are read wherever they stand: a result in an assistant
message is still a result. Blocks of server tools belong to their provider and are kept as text.
"""

from collections.abc import Sequence

from actors.adapters.reading import PartReader, Reading, native_key, read_turns, spread
from actors.adapters.wire_object import WireObject
from actors.core.content import Media
from actors.core.jsonio import sanitised


def read(messages: Sequence[object], reading: Reading) -> None:
    """Read wire messages, oldest first, into `reading`."""
    read_turns(messages, reading, _block, media)


def _block(reading: Reading, block: WireObject) -> None:
    _BLOCKS.get(block.text("type"), _unknown)(reading, block)


def _text(reading: Reading, block: WireObject) -> None:
    reading.text(block.text("text"))


def _thinking(reading: Reading, block: WireObject) -> None:
    reading.think(block.text("thinking"), "signature", block.text("signature"))


def _redacted(reading: Reading, block: WireObject) -> None:
    reading.think("", "redacted", block.text("data"))


def _tool_use(reading: Reading, block: WireObject) -> None:
    reading.call(native_key(block.take("id")), block.text("name"), block.take("input"))


def _tool_result(reading: Reading, block: WireObject) -> None:
    content, held = spread(block, media, "content")
    failed = block.says("is_error", True)
    reading.result(native_key(block.take("tool_use_id")), content, failed=failed, media=held)


def _carrier(reading: Reading, block: WireObject) -> None:
    """An image or a document. A document of plain text is text."""
    source = block.inner("source")
    if found := media(block):
        reading.say(found)
    elif source.says("type", "text"):
        source.says("media_type", "text/plain")
        reading.text(source.text("data"))
    else:
        _unknown(reading, block)


def _unknown(reading: Reading, block: WireObject) -> None:
    kind = block.text("type")[:40]
    reading.fold(f"block of type {kind!r}", block.whole())


_BLOCKS: dict[str, PartReader] = {
    "text": _text,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    "image": _carrier,
    "document": _carrier,
}


def media(block: WireObject) -> Media | None:
    """Return the image or the document that a block is, if it is one."""
    kind = block.text("type")
    if kind not in ("image", "document"):
        return None
    source = block.inner("source")
    if source.says("type", "base64"):
        return Media(sanitised(source.text("media_type")), data=sanitised(source.text("data")))
    if source.says("type", "url"):
        return Media(
            "application/pdf" if kind == "document" else "image/*", url=sanitised(source.text("url"))
        )
    return None
