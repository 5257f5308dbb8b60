"""Reads a Bedrock Converse transcript: a list of `messages`, also a badly broken one.

One small function for each kind of block. A block names its kind by its key; one with several keys is read
as several. Blocks are read wherever they stand: a result in an assistant message is still a result.
"""

from collections.abc import Callable, Mapping, Sequence

from actors.adapters.reading import Reading, as_text, blob, native_key, read_turns
from actors.adapters.wire_object import WireObject
from actors.core.content import Media
from actors.core.jsonio import sanitised

_MIMES = {
    "image": {name: f"image/{name}" for name in ("png", "jpeg", "gif", "webp")},
    "document": {
        "pdf": "application/pdf",
        "csv": "text/csv",
        "html": "text/html",
        "txt": "text/plain",
        "md": "text/markdown",
    },
}


def read(messages: Sequence[object], reading: Reading) -> None:
    """Read wire messages, oldest first, into `reading`."""
    read_turns(messages, reading, _block, media, "block of no kind")


def _block(reading: Reading, block: WireObject) -> None:
    for kind in block.fields:
        _BLOCKS.get(kind, _unknown)(reading, block, kind)
    if not block:
        reading.fold("block of no kind", {})


def _text(reading: Reading, block: WireObject, kind: str) -> None:
    reading.text(as_text(block.take(kind)))


def _reasoning(reading: Reading, block: WireObject, kind: str) -> None:
    text = block.inner(kind).inner("reasoningText")
    reading.think(text.text("text"), "signature", text.text("signature"))
    reading.think("", "redacted", blob(block.inner(kind).take("redactedContent")))


def _tool_use(reading: Reading, block: WireObject, kind: str) -> None:
    call = block.inner(kind)
    reading.call(native_key(call.take("toolUseId")), call.text("name"), call.take("input"))


def _tool_result(reading: Reading, block: WireObject, kind: str) -> None:
    result = block.inner(kind)
    content, held = _said(result)
    failed = result.says("status", "error")
    result.says("status", "success")
    reading.result(native_key(result.take("toolUseId")), content, failed=failed, media=held)


def _said(result: WireObject) -> tuple[object, list[Media]]:
    """Return what a result says. A single `json` part is its value, other parts are texts, one a line."""
    if not isinstance(result.fields.get("content"), list | tuple | None):
        return result.take("content"), []
    parts = list(result.each("content"))
    if len(parts) == 1 and isinstance(only := parts[0], WireObject) and only.fields.keys() == {"json"}:
        return only.take("json"), []
    texts: list[str] = []
    held: list[Media] = []
    for part in parts:
        if not isinstance(part, WireObject):
            texts.append(as_text(part))
        elif found := media(part):
            held.append(found)
        elif part.fields.keys() == {"text"}:
            texts.append(as_text(part.take("text")))
        else:
            texts.append(as_text(part.whole()))
    return "\n".join(texts), held


def _carrier(reading: Reading, block: WireObject, kind: str) -> None:
    if found := media(block, kind):
        reading.say(found)
    elif words := block.inner(kind).inner("source").text("text"):
        reading.text(words)
    else:
        _unknown(reading, block, kind)


def media(part: WireObject, only: str = "") -> Media | None:
    """Return the image or the document that a block holds, if it holds one."""
    for kind, mimes in _MIMES.items():
        held = part.inner(kind)
        if only in ("", kind) and (data := blob(held.inner("source").take("bytes"))):
            form = held.text("format")
            return Media(
                mimes.get(form, f"{'image' if kind == 'image' else 'application'}/{sanitised(form)}"), data
            )
    return None


def _cache_point(reading: Reading, block: WireObject, kind: str) -> None:
    """Say nothing: a mark for the provider's cache is no content. It is not carried."""


def _unknown(reading: Reading, block: WireObject, kind: str) -> None:
    reading.fold(f"block of type {str(kind)[:40]!r}", block.take(kind))


_BLOCKS: Mapping[str, Callable[[Reading, WireObject, str], None]] = {
    "text": _text,
    "reasoningContent": _reasoning,
    "toolUse": _tool_use,
    "toolResult": _tool_result,
    "image": _carrier,
    "document": _carrier,
    "cachePoint": _cache_point,
}
