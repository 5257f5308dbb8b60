"""Reads a generateContent transcript: a list of `contents`, also a badly broken one.

Keys are read in both spellings, `functionCall` as on the wire and `function_call` as the vendor's client has it.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import ClassVar

from actors.adapters.reading import Reading, blob
from actors.adapters.wire_object import WireObject
from actors.core.values.content import Code, Media, Speaker


class ContentsReading(Reading):
    """A generateContent transcript being read."""

    container: ClassVar[str] = "contents"
    content: ClassVar[str] = "parts"
    speakers: ClassVar[Mapping[str, Speaker]] = {"user": "human", "model": "model"}
    stray_message: ClassVar[str] = "item that is no content"
    stray_part: ClassVar[str] = "part of an unknown kind"

    def fold_role(self, message: WireObject) -> None:
        if (role := message.text("role")) not in ("", "function"):
            self.note("content of role %s taken as the user's", role[:40])
        self.parts(message)

    def part(self, part: WireObject) -> None:
        if part.says("thought", True):
            self.think(part.text("text"))
            return
        signature = blob(part.take(*_both("thoughtSignature")))
        self.think("", "thought_signature", signature)
        if call := part.inner(*_both("functionCall")):
            self._call(call)
        elif response := part.inner(*_both("functionResponse")):
            self._response(response)
        elif found := self.media(part):
            self.say(self.readable(found))
        elif code := part.inner(*_both("executableCode")):
            self.say(Code(code.text("code"), code.text("language").lower()))
        elif result := part.inner(*_both("codeExecutionResult")):
            output = result.take("output")
            self.fold("result of code", result.whole() if output is None else output)
        elif words := part.text("text"):
            self.text(words)
        elif not signature and "text" not in part.fields:
            self.fold(self.stray_part, part.whole())

    def _call(self, call: WireObject) -> None:
        self.call(call.native_id("id"), call.text("name"), call.take("args"), has_name=True)

    def _response(self, response: WireObject) -> None:
        key, name = response.native_id("id"), response.text("name")
        content, failed = _outcome(response.take("response"))
        parts = [part for part in response.each("parts") if isinstance(part, WireObject)]
        self.result(key, content, filter(None, map(self.media, parts)), name=name, failed=failed)

    def media(self, part: WireObject) -> Media | None:
        if inline := part.inner(*_both("inlineData")):
            data = blob(inline.take("data"))
            return Media(inline.text(*_both("mimeType")), data=data)
        if file := part.inner(*_both("fileData")):
            return Media(file.text(*_both("mimeType")), url=file.text(*_both("fileUri")))
        return None


@cache
def _both(key: str) -> tuple[str, str]:
    """Return both spellings of a key."""
    return key, re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", key)


def _outcome(response: object) -> tuple[object, bool]:
    """Return what a response says and whether it is an error, by the convention of one key."""
    if isinstance(response, dict) and len(response) == 1:
        ((key, value),) = response.items()
        if key in ("output", "result") or (key == "error" and value is not None):
            return value, key == "error"
    return response, False
