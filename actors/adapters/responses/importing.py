"""Reads a Responses transcript: the items of `input`, or of a response's `output`, also badly broken ones.

What the model made in a row (reasoning, words, calls) is one message, and so is a row of outputs. Items of an unknown
type are kept as labelled text: references to items that a provider stored, and the items of its own tools, which are
no calls of the client.
"""

from collections.abc import Sequence
from typing import ClassVar

from actors.adapters.reading import Reading
from actors.adapters.wire_object import WireObject
from actors.core.data.ingest import ingest
from actors.core.transcript.projection import flat_name
from actors.core.values.content import Media, Speaker

_OUTPUTS = ("function_call_output", "custom_tool_call_output", "tool message")
# Not part of the conversation, or something that only its provider can read.
_LEFT_OUT = ("additional_tools", "compaction", "compaction_summary", "compaction_trigger")


class ItemsReading(Reading):
    """A Responses transcript being read."""

    container: ClassVar[str] = "input"
    instructors: ClassVar[Sequence[str]] = ("system", "developer")
    stray_message: ClassVar[str] = "entry that is no item"

    def message(self, item: WireObject) -> None:
        kind, role = item.text("type"), item.fields.get("role")
        # A message may leave its type out; one of the other API's tools has none.
        if not kind and "role" in item.fields:
            kind = "tool message" if role == "tool" else "message"
        self.begin(_speaker(kind, role), joins=True)
        item.says("status", "completed")
        match kind:
            case "message":
                self.said(item.text("role"), item)
            case "reasoning":
                self._reasoning(item)
            case "function_call" | "custom_tool_call":
                free, key = kind == "custom_tool_call", item.native_id("call_id", "id")
                given = item.take("input", "arguments") if free else item.take("arguments", "input")
                self.call(key, item.text("name"), given, item.text("namespace"), free=free)
            case "item_reference":
                self.fold("reference to an item that its provider keeps", item.take("id"))
            case "image_generation_call" if data := item.text("result"):
                self.note("image made by its provider's tool kept as an image of the model's")
                self.say(Media(f"image/{item.text('output_format') or 'png'}", data))
            case _ if kind in _OUTPUTS:
                item.says("role", "tool")
                key = item.native_id("call_id", "tool_call_id")
                name = flat_name(item.text("namespace"), item.text("name"))
                if item.says("status", "in_progress", "incomplete") and not item.fields.get("output"):
                    self.pending(key, name)
                else:
                    self.result(key, *self.spread(item, "output", "content"), name=name)
            case _ if kind in _LEFT_OUT:
                self.note(f"item of type {kind!r} left out")
                item.whole()
            case _:
                self.fold(f"item of type {kind[:40]!r}", item.whole())

    def _reasoning(self, item: WireObject) -> None:
        """Take reasoning, sealed as the whole item where it holds more than words."""
        parts = [
            part for part in (*item.each("summary"), *item.each("content")) if isinstance(part, WireObject)
        ]
        for part in parts:
            part.says("type", "summary_text", "reasoning_text")
        words = "\n\n".join(text for part in parts if (text := part.text("text")))
        state = ingest(item.whole()).json.decode() if item.fields.get("encrypted_content") else ""
        self.think(words, "reasoning_item", state)


def _speaker(kind: str, role: object) -> Speaker:
    if kind in _OUTPUTS:
        return "tool"
    if kind == "message":
        return "model" if role == "assistant" else "human"
    is_models = kind.endswith("_call") or kind in ("reasoning", "mcp_list_tools", "mcp_approval_request")
    return "model" if is_models else "human"
