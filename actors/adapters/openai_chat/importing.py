"""Reads a Chat Completions transcript: a list of `messages`, also a badly broken one."""

from collections.abc import Sequence
from typing import ClassVar

from actors.adapters.reading import Reading
from actors.adapters.wire_object import WireObject

# Calls of the client's tools; a provider's own have other types.
_OURS = ("", "function", "custom", "tool_call")


class ChatReading(Reading):
    """A Chat Completions transcript being read."""

    instructors: ClassVar[Sequence[str]] = ("system", "developer")

    def said(self, role: str, message: WireObject) -> None:
        match role:
            case "assistant":
                self.think(self._reasoning(message))
                self.parts(message)
                self.text(message.text("refusal"))
                self._calls(message)
            case "tool":
                self._calls(message)  # it may answer one of those found beside it
                key, name = message.native_id("tool_call_id"), message.text("name")
                self.result(key, *self.spread(message, "content"), name=name)
            case "function":  # the old protocol has no ids and pairs by name
                self.result("", message.take("content"), name=message.text("name"))
            case _:
                super().said(role, message)

    def part(self, part: WireObject) -> None:
        if not part.says("type", "thinking"):
            super().part(part)
            return
        chunks = [chunk for chunk in part.each("thinking") if isinstance(chunk, WireObject)]
        for chunk in chunks:
            chunk.says("type", "text")
        self.think(part.text("thinking") or "".join(chunk.text("text") for chunk in chunks))

    def _reasoning(self, message: WireObject) -> str:
        """Return the words of reasoning beside the content. Its state is not kept: nobody may have it back.

        A gateway may say the same words under several names.
        """
        words = message.text("reasoning_content") or message.text("reasoning")
        message.says("reasoning", words)
        details: list[str] = []
        for detail in message.each("reasoning_details"):
            if isinstance(detail, WireObject):
                detail.says("type", "reasoning.text", "reasoning.summary")
                details.append(detail.text("text") or detail.text("summary"))
        if words and details and "".join(details) != words:
            self.note("reasoning_details that say something else than the reasoning left out")
        return words or "".join(details)

    def _calls(self, message: WireObject) -> None:
        for call in message.each("tool_calls"):
            if isinstance(call, WireObject):
                self._call(call)
            else:
                self.fold("item that is no tool call", call)
        if legacy := message.inner("function_call"):
            self._legacy_call(legacy.text("name"), legacy.take("arguments"))

    def _legacy_call(self, name: str, given: object) -> None:
        """Take a call of the old protocol, which has no ids. Some hosts put an empty one into every answer: no call."""
        if name.strip():
            self.call("", name, given, has_name=True)
        elif given and given != "{}":
            self.fold("function_call without a name", given)

    def _call(self, call: WireObject) -> None:
        """Take a call of type `function` or `custom`, or with name and arguments beside its id."""
        if (kind := call.text("type")) not in _OURS:
            self.fold(f"call of type {kind[:40]!r}", call.whole())
            return
        call.take("index")  # the list says as much
        key, custom = call.native_id("id"), call.inner("custom")
        if custom:
            self.call(key, custom.text("name"), custom.take("input"), free=True)
        else:
            function = call.inner("function") or call
            self.call(key, function.text("name"), function.take("arguments", "input"))
