"""Reads a generateContent transcript: a list of `contents`, also a badly broken one.

Keys are read in both spellings, `functionCall` as on the wire and `function_call` as the vendor's client has it. A
response is paired with its call by id, else by position and name: it answers the earliest call of that name, among
those of the latest content that wait for one.
"""

from base64 import b64encode
from collections.abc import Callable, Sequence

from actors.adapters.reading import Reading, as_text, named_key, native_key
from actors.adapters.wire import Fields, fields, items, string
from actors.core.content import Code, Media, Speaker
from actors.core.jsonio import mended

_SPEAKERS: dict[str, Speaker] = {"": "human", "user": "human", "model": "model", "function": "human"}


def read(contents: Sequence[object], reading: Reading) -> None:
    """Read wire contents, oldest first, into `reading`."""
    reader = _Reader(reading)
    for number, content in enumerate(contents):
        role = string(fields(content).get("role"))
        reading.begin(f"contents[{number}]", _SPEAKERS.get(role, "human"))
        if not isinstance(content, dict):
            reading.fold("item that is no content", content)
        elif role == "system":
            reading.instruct("\n".join(string(fields(part).get("text")) for part in _parts(content)))
        else:
            if role not in _SPEAKERS:
                reading.note(f"content of role {as_text(role)[:40]} taken as the user's")
            reader.content(content)


def _parts(content: Fields) -> Sequence[object]:
    parts = content.get("parts")
    return [parts] if isinstance(parts, dict | str) else items(parts)


class _Reader:
    """Reads contents and remembers which calls wait, for responses without an id."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._waiting: list[tuple[str, str]] = []  # name and key of each, in call order
        self._fresh = True  # the next call is the first of its content

    def content(self, content: Fields) -> None:
        self._fresh = True
        for part in _parts(content):
            if isinstance(part, str):
                self._reading.text(part)
            else:
                self._part(fields(part) or {"": part})

    def _part(self, part: Fields) -> None:
        signature = _field(part, "thoughtSignature")
        if part.get("thought") is True:
            self._reading.think(string(part.get("text")))
            return
        if isinstance(signature, bytes):
            signature = b64encode(signature).decode()
        self._reading.think("", "thought_signature", string(signature))
        for key, read_data in _DATA.items():
            if (data := _field(part, key)) is not None:
                read_data(self, fields(data) or {"": data})
                return
        if not signature:
            self._reading.fold("part of an unknown kind", part)

    def _text(self, data: Fields) -> None:
        self._reading.text(string(data.get("")))

    def _call(self, call: Fields) -> None:
        key, name = _key(call), string(call.get("name"))
        if self._fresh:
            self._waiting.clear()
            self._fresh = False
        self._waiting.append((name, key))
        self._reading.call(key, call.get("name"), call.get("args"))

    def _response(self, response: Fields) -> None:
        key = self._answered(_key(response), string(response.get("name")))
        content, failed = _outcome(_field(response, "response"))
        media = [held for part in items(response.get("parts")) if (held := _media(fields(part)))]
        self._reading.result(key, content, failed=failed, media=media)

    def _answered(self, key: str, name: str) -> str:
        """Return the key of the call a response answers: its own, or that of the first of its name that waits."""
        waiting = self._waiting
        at = next((at for at, (_, known) in enumerate(waiting) if known == key), None)
        if at is None and name:
            by_name = named_key(name)  # an id that no call has can only be meant for a call without one
            named = (at for at, (known, own) in enumerate(waiting) if known == name and by_name in (key, own))
            at = next(named, None)
        return key if at is None else waiting.pop(at)[1]

    def _inline(self, data: Fields) -> None:
        self._carrier({"inlineData": data})

    def _file(self, data: Fields) -> None:
        self._carrier({"fileData": data})

    def _carrier(self, part: Fields) -> None:
        if media := _media(part):
            self._reading.say(media)

    def _code(self, data: Fields) -> None:
        self._reading.say(
            Code(mended(string(data.get("code"))), mended(string(data.get("language")).lower()))
        )

    def _code_result(self, data: Fields) -> None:
        self._reading.fold("result of code", data.get("output", data))


_DATA: dict[str, Callable[[_Reader, Fields], None]] = {
    "functionCall": _Reader._call,
    "functionResponse": _Reader._response,
    "inlineData": _Reader._inline,
    "fileData": _Reader._file,
    "executableCode": _Reader._code,
    "codeExecutionResult": _Reader._code_result,
    "text": _Reader._text,
}


def _field(value: Fields, name: str) -> object:
    """Return a field under either of its spellings."""
    found = value.get(name)
    return value.get(_SNAKE[name]) if found is None and name in _SNAKE else found


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


def _key(value: Fields) -> str:
    """Return what a call or a response pairs by: its id, else its name."""
    return native_key(value.get("id")) or named_key(value.get("name"))


def _outcome(response: object) -> tuple[object, bool]:
    """Return what a response says and whether it is an error, by the convention of one key."""
    if isinstance(response, dict) and len(response) == 1:
        for key in ("output", "result"):
            if key in response:
                return response[key], False
        if response.get("error") is not None:
            return response["error"], True
    return response, False


def _media(part: Fields) -> Media | None:
    inline, file = fields(_field(part, "inlineData")), fields(_field(part, "fileData"))
    if inline:
        data = inline.get("data")
        text = b64encode(data).decode() if isinstance(data, bytes) else string(data)
        return Media(mended(string(_field(inline, "mimeType"))), data=mended(text))
    if file:
        return Media(mended(string(_field(file, "mimeType"))), url=mended(string(_field(file, "fileUri"))))
    return None
