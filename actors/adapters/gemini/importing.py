"""Reads a generateContent transcript: a list of `contents`, also a badly broken one.

Keys are read in both spellings, `functionCall` as on the wire and `function_call` as the vendor's client has it. A
response is paired with its call by id, else by position and name: it answers the earliest call of that name, among
those of the latest content that wait for one.
"""

from collections.abc import Callable, Sequence

from actors.adapters.reading import (
    Reading,
    as_text,
    blob,
    instructions,
    named_key,
    native_key,
    opened,
    read_parts,
)
from actors.adapters.wire_object import WireObject
from actors.core.content import Code, Media, Speaker
from actors.core.jsonio import sanitised

_SPEAKERS: dict[str, Speaker] = {"": "human", "user": "human", "model": "model", "function": "human"}


def read(contents: Sequence[object], reading: Reading) -> None:
    """Read wire contents, oldest first, into `reading`."""
    reader = _PartReader(reading)
    for content in opened(contents, reading, "contents", "item that is no content"):
        role = content.text("role")
        reading.begin(_SPEAKERS.get(role, "human"))
        if role == "system":
            reading.instruct(instructions(reading, content, media, "parts"))
        else:
            if role not in _SPEAKERS:
                reading.note("content of role %s taken as the user's", as_text(role)[:40])
            reader.content(content)


class _PartReader:
    """Reads contents and remembers which calls wait, for responses without an id."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._waiting: list[tuple[str, str]] = []  # name and key of each, in call order
        self._fresh = True  # the next call is the first of its content

    def content(self, content: WireObject) -> None:
        self._fresh = True
        read_parts(self._reading, content, self._part, "parts", "part of an unknown kind")

    def _part(self, _: Reading, part: WireObject) -> None:
        if part.says("thought", True):
            self._reading.think(part.text("text"))
            return
        signature = blob(part.take(*_spellings("thoughtSignature")))
        self._reading.think("", "thought_signature", signature)
        for key, read_data in _DATA.items():
            if any(part.fields.get(spelling) is not None for spelling in _spellings(key)):
                read_data(self, part)
                return
        if not signature:
            self._reading.fold("part of an unknown kind", part.whole())

    def _text(self, part: WireObject) -> None:
        self._reading.text(part.text("text"))

    def _call(self, part: WireObject) -> None:
        call = part.inner(*_spellings("functionCall"))
        key, name = _key(call), call.text("name")
        if self._fresh:
            self._waiting.clear()
            self._fresh = False
        self._waiting.append((name, key))
        self._reading.call(key, name, call.take("args"))

    def _response(self, part: WireObject) -> None:
        response = part.inner(*_spellings("functionResponse"))
        key = self._answered(_key(response), response.text("name"))
        content, failed = _outcome(response.take("response"))
        held = [
            found
            for item in response.each("parts")
            if isinstance(item, WireObject) and (found := media(item))
        ]
        self._reading.result(key, content, failed=failed, media=held)

    def _answered(self, key: str, name: str) -> str:
        """Return the key of the call a response answers: its own, or that of the first of its name that waits."""
        waiting = self._waiting
        at = next((at for at, (_, known) in enumerate(waiting) if known == key), None)
        if at is None and name:
            by_name = named_key(name)  # an id that no call has can only be meant for a call without one
            named = (at for at, (known, own) in enumerate(waiting) if known == name and by_name in (key, own))
            at = next(named, None)
        return key if at is None else waiting.pop(at)[1]

    def _carrier(self, part: WireObject) -> None:
        if found := media(part):
            self._reading.say(found)
        else:
            self._reading.fold("part of an unknown kind", part.whole())

    def _code(self, part: WireObject) -> None:
        code = part.inner(*_spellings("executableCode"))
        self._reading.say(Code(sanitised(code.text("code")), sanitised(code.text("language").lower())))

    def _code_result(self, part: WireObject) -> None:
        result = part.inner(*_spellings("codeExecutionResult"))
        output = result.take("output")
        self._reading.fold("result of code", result.whole() if output is None else output)


_DATA: dict[str, Callable[[_PartReader, WireObject], None]] = {
    "functionCall": _PartReader._call,
    "functionResponse": _PartReader._response,
    "inlineData": _PartReader._carrier,
    "fileData": _PartReader._carrier,
    "executableCode": _PartReader._code,
    "codeExecutionResult": _PartReader._code_result,
    "text": _PartReader._text,
}


def _spellings(name: str) -> tuple[str, ...]:
    """Return both spellings of a key."""
    return (name, _SNAKE[name]) if name in _SNAKE else (name,)


_SNAKE = {
    "thoughtSignature": "thought_signature",
    "functionCall": "function_call",
    "functionResponse": "function_response",
    "inlineData": "inline_data",
    "fileData": "file_data",
    "executableCode": "executable_code",
    "codeExecutionResult": "code_execution_result",
    "mimeType": "mime_type",
    "fileUri": "file_uri",
}


def _key(value: WireObject) -> str:
    """Return what a call or a response pairs by: its id, else its name."""
    return native_key(value.take("id")) or named_key(value.take("name"))


def _outcome(response: object) -> tuple[object, bool]:
    """Return what a response says and whether it is an error, by the convention of one key."""
    if isinstance(response, dict) and len(response) == 1:
        for key in ("output", "result"):
            if key in response:
                return response[key], False
        if response.get("error") is not None:
            return response["error"], True
    return response, False


def media(part: WireObject) -> Media | None:
    """Return what a part holds or points to, if it is an attachment."""
    if inline := part.inner(*_spellings("inlineData")):
        data = blob(inline.take("data"))
        return Media(sanitised(inline.text(*_spellings("mimeType"))), data=data)
    if file := part.inner(*_spellings("fileData")):
        mime, uri = file.text(*_spellings("mimeType")), file.text(*_spellings("fileUri"))
        return Media(sanitised(mime), url=sanitised(uri))
    return None
