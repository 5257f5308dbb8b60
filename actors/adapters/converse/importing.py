"""Reads a Bedrock Converse transcript: a list of `messages`, also a badly broken one.

One small function for each kind of block. A block names its kind by its key; one with several keys is read
as several. Blocks are read wherever they stand: a result in an assistant message is still a result.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence

from actors.adapters.reading import Reading, as_text, native_key, read_turns
from actors.adapters.wire import Fields, fields, items, string
from actors.core.content import Media
from actors.core.jsonio import mended

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
    read_turns(messages, reading, _content, instructions)


def instructions(system: object) -> str:
    """Return a system prompt, a string or a list of blocks, as text. Marks for a cache are no part of it."""
    if not isinstance(system, list | tuple):
        return "" if system is None else as_text(system)
    blocks = [block for block in system if "cachePoint" not in fields(block)]
    return "\n".join(string(fields(block).get("text")) or as_text(block) for block in blocks)


def _content(reading: Reading, content: object) -> None:
    """A list of blocks; a string or a single block is taken too, anything else is kept as text."""
    if isinstance(content, str):
        reading.text(content)
    elif isinstance(content, dict | list | tuple):
        for block in [content] if isinstance(content, dict) else content:
            if isinstance(block, str):
                reading.text(block)
            elif isinstance(block, dict) and block:
                for kind, value in block.items():
                    _BLOCKS.get(kind, _unknown(kind))(reading, value)
            else:
                reading.fold("block of no kind", block)
    elif content is not None:
        reading.fold("content of an unknown kind", content)


def _text(reading: Reading, value: object) -> None:
    reading.text(value if isinstance(value, str) else as_text(value))


def _reasoning(reading: Reading, value: object) -> None:
    text = fields(fields(value).get("reasoningText"))
    reading.think(string(text.get("text")), "signature", string(text.get("signature")))
    reading.think("", "redacted", _base64(fields(value).get("redactedContent")))


def _tool_use(reading: Reading, value: object) -> None:
    call = fields(value)
    reading.call(native_key(call.get("toolUseId")), call.get("name"), call.get("input"))


def _tool_result(reading: Reading, value: object) -> None:
    result = fields(value)
    content, media = _said(result.get("content"))
    failed = result.get("status") == "error"
    reading.result(native_key(result.get("toolUseId")), content, failed=failed, media=media)


def _said(content: object) -> tuple[object, list[Media]]:
    """Return what a result says. A single `json` part is its value, other parts are texts, one a line."""
    parts = items(content)
    if len(parts) == 1 and isinstance(parts[0], dict) and parts[0].keys() == {"json"}:
        return parts[0]["json"], []
    if content is not None and not isinstance(content, list | tuple):
        return content, []
    texts: list[str] = []
    media: list[Media] = []
    for part in parts:
        if found := _media(part):
            media.append(found)
        elif isinstance(part, dict) and part.keys() == {"text"}:
            texts.append(as_text(part["text"]))
        else:
            texts.append(as_text(part))
    return "\n".join(texts), media


def _carrier(kind: str) -> Callable[[Reading, object], None]:
    def carried(reading: Reading, value: object) -> None:
        source = fields(fields(value).get("source"))
        if media := _media({kind: value}):
            reading.say(media)
        elif isinstance(source.get("text"), str):
            reading.text(string(source["text"]))
        else:
            _unknown(kind)(reading, value)

    return carried


def _media(part: object) -> Media | None:
    for kind, mimes in _MIMES.items():
        held: Fields = fields(fields(part).get(kind))
        data = _base64(fields(held.get("source")).get("bytes"))
        if data:
            form = string(held.get("format"))
            return Media(
                mimes.get(form, f"{'image' if kind == 'image' else 'application'}/{mended(form)}"), data
            )
    return None


def _base64(value: object) -> str:
    """Return a blob as it stands in JSON. Vendors' clients hold it as bytes."""
    return b64encode(value).decode() if isinstance(value, bytes | bytearray) else mended(string(value))


def _cache_point(reading: Reading, value: object) -> None:
    """Say nothing: a mark for the provider's cache is no content."""


def _unknown(kind: object) -> Callable[[Reading, object], None]:
    return lambda reading, value: reading.fold(f"block of type {str(kind)[:40]!r}", value)


_BLOCKS: Mapping[object, Callable[[Reading, object], None]] = {
    "text": _text,
    "reasoningContent": _reasoning,
    "toolUse": _tool_use,
    "toolResult": _tool_result,
    "image": _carrier("image"),
    "document": _carrier("document"),
    "cachePoint": _cache_point,
}
