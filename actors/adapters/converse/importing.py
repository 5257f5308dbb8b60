"""Reads a Bedrock Converse transcript: a list of `messages`, also a badly broken one.

A block names its kind by its key; one with several keys is read as several. Blocks are read wherever they stand: a
result in an assistant message is still a result.
"""

from typing import ClassVar

from actors.adapters.reading import Reading, as_text, blob
from actors.adapters.wire_object import WireObject
from actors.core.values.content import Media

_DOCUMENTS = {"csv": "text/csv", "html": "text/html", "txt": "text/plain", "md": "text/markdown"}


class ConverseReading(Reading):
    """A Converse transcript being read."""

    stray_part: ClassVar[str] = "block of no kind"

    def part(self, part: WireObject) -> None:
        if not part:
            self.fold(self.stray_part, {})
        for kind in part.fields:
            if kind != "cachePoint":  # a mark for the provider's cache is no content, and is not carried
                self._block(part, kind)

    def _block(self, part: WireObject, kind: str) -> None:
        held = part.inner(kind)
        match kind:
            case "text":
                self.text(as_text(part.take(kind)))
            case "reasoningContent":
                reasoning = held.inner("reasoningText")
                self.think(reasoning.text("text"), "signature", reasoning.text("signature"))
                self.think("", "redacted", blob(held.take("redactedContent")))
            case "toolUse":
                self.call(held.native_id("toolUseId"), held.text("name"), held.take("input"))
            case "toolResult":
                key, failed = held.native_id("toolUseId"), held.says("status", "error")
                held.says("status", "success")
                self.result(key, *self.spread(held, "content"), name=held.text("name"), failed=failed)
            case "image" | "document" if found := _attachment(part, kind):
                self.say(found)
            case "image" | "document" if words := held.inner("source").text("text"):
                self.text(words)
            case _:
                self.fold(f"block of type {str(kind)[:40]!r}", part.take(kind))

    def spread(self, holder: WireObject, *keys: str) -> tuple[object, list[Media]]:
        """Return the content of a result: a single `json` part is its value, other parts are texts, one a line."""
        if not isinstance(holder.fields.get("content"), list | tuple | None):
            return holder.take("content"), []
        parts = holder.each("content")
        if len(parts) == 1 and isinstance(only := parts[0], WireObject) and only.fields.keys() == {"json"}:
            return only.take("json"), []
        return self.joined(parts)

    def words(self, part: WireObject) -> str | None:
        return as_text(part.take("text")) if part.fields.keys() == {"text"} else None

    def media(self, part: WireObject) -> Media | None:
        return _attachment(part, "image") or _attachment(part, "document")


def _attachment(part: WireObject, kind: str) -> Media | None:
    """Return the image or the document that a block holds, if it holds one."""
    held = part.inner(kind)
    if not (data := blob(held.inner("source").take("bytes"))):
        return None
    form = held.text("format")
    mime = f"image/{form}" if kind == "image" else _DOCUMENTS.get(form, f"application/{form}")
    return Media(mime, data)
