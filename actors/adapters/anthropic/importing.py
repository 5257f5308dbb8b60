"""Reads an Anthropic Messages transcript: a list of `messages`, also a badly broken one.

Blocks are read wherever they stand: a result in an assistant message is still a result. Blocks of server tools belong
to their provider and are kept as text.
"""

from actors.adapters.reading import Reading
from actors.adapters.wire_object import WireObject
from actors.core.values.content import Media


class MessagesReading(Reading):
    """A Messages transcript being read."""

    def part(self, part: WireObject) -> None:
        match part.text("type"):
            case "text":
                self.text(part.text("text"))
            case "thinking":
                self.think(part.text("thinking"), "signature", part.text("signature"))
            case "redacted_thinking":
                self.think("", "redacted", part.text("data"))
            case "tool_use":
                self.call(part.native_id("id"), part.text("name"), part.take("input"))
            case "tool_result":
                key, failed = part.native_id("tool_use_id"), part.says("is_error", True)
                self.result(key, *self.spread(part, "content"), name=part.text("name"), failed=failed)
            case "image" | "document" if part.inner("source").says("type", "text"):
                part.inner("source").says("media_type", "text/plain")
                self.text(part.inner("source").text("data"))
            case _:
                self.attached("block", part)

    def media(self, part: WireObject) -> Media | None:
        kind, source = part.text("type"), part.inner("source")
        if kind in ("image", "document"):
            if source.says("type", "base64"):
                return Media(source.text("media_type"), data=source.text("data"))
            if source.says("type", "url"):
                return Media("application/pdf" if kind == "document" else "image/*", url=source.text("url"))
        return None
