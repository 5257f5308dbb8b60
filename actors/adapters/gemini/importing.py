"""Reads a generateContent transcript: a list of `contents`, also a badly broken one.

Keys are read in both spellings, `functionCall` as on the wire and `function_call` as the vendor's client has it. A
response is paired with its call by id, else by position and name: it answers the earliest call of that name, among
those of the latest content that wait for one.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import ClassVar

from actors.adapters.reading import Reading, blob, named_key
from actors.adapters.wire_object import WireObject
from actors.core.content import Code, Media, Speaker
from actors.core.identity import Binding


class ContentsReading(Reading):
    """A generateContent transcript being read. It remembers which calls wait, for responses without an id."""

    container: ClassVar[str] = "contents"
    content: ClassVar[str] = "parts"
    speakers: ClassVar[Mapping[str, Speaker]] = {"user": "human", "model": "model"}
    stray_message: ClassVar[str] = "item that is no content"
    stray_part: ClassVar[str] = "part of an unknown kind"

    def __init__(self, origin: Binding) -> None:
        super().__init__(origin)
        self._waiting: list[tuple[str, str]] = []  # name and key of each, in call order
        self._asked = ""  # where they were made

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
            self.say(found)
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
        key, name = _key(call), call.text("name")
        if self.where != self._asked:
            self._waiting.clear()
            self._asked = self.where
        self._waiting.append((name, key))
        self.call(key, name, call.take("args"))

    def _response(self, response: WireObject) -> None:
        key = self._answered(_key(response), response.text("name"))
        content, failed = _outcome(response.take("response"))
        parts = [part for part in response.each("parts") if isinstance(part, WireObject)]
        self.result(key, content, filter(None, map(self.media, parts)), failed=failed)

    def _answered(self, key: str, name: str) -> str:
        """Return the key of the call a response answers: its own, or that of the first of its name that waits."""
        waiting = self._waiting
        at = next((at for at, (_, known) in enumerate(waiting) if known == key), None)
        if at is None and name:
            by_name = named_key(name)  # an id that no call has can only be meant for a call without one
            named = (at for at, (known, own) in enumerate(waiting) if known == name and by_name in (key, own))
            at = next(named, None)
        return key if at is None else waiting.pop(at)[1]

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


def _key(value: WireObject) -> str:
    """Return what a call or a response pairs by: its id, else its name."""
    return value.native_id("id") or named_key(value.text("name"))


def _outcome(response: object) -> tuple[object, bool]:
    """Return what a response says and whether it is an error, by the convention of one key."""
    if isinstance(response, dict) and len(response) == 1:
        ((key, value),) = response.items()
        if key in ("output", "result") or (key == "error" and value is not None):
            return value, key == "error"
    return response, False
