"""Reads a Chat Completions transcript: a list of `messages`, also a badly broken one.

One small function for each role and each kind of content part. What is not in the tables is kept as text.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from actors.adapters.reading import Reading, as_text, data_url, named_key, native_key, spread
from actors.adapters.wire import Fields, fields, items, string
from actors.core.content import Media, Speaker
from actors.core.form import replace


def read(messages: Sequence[object], reading: Reading) -> None:
    """Read wire messages, oldest first, into `reading`."""
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        if isinstance(message, dict):
            speaker, read_role = _ROLES.get(string(message.get("role")), _UNKNOWN)
            reading.begin(where, speaker)
            read_role(reading, message)
        else:
            reading.begin(where, "human")
            reading.fold("item that is no message", message)


def _system(reading: Reading, message: Fields) -> None:
    content, _ = spread(message.get("content"), _media)  # there are no images in instructions
    reading.instruct("" if content is None else as_text(content))


def _user(reading: Reading, message: Fields) -> None:
    _content(reading, message.get("content"))


def _assistant(reading: Reading, message: Fields) -> None:
    reading.think(_reasoning(message))
    _content(reading, message.get("content"))
    reading.text(string(message.get("refusal")))
    _calls(reading, message)


def _reasoning(message: Fields) -> str:
    """Return the words of reasoning beside the content. Its state is not kept: nobody may have it back."""
    words = string(message.get("reasoning_content")) or string(message.get("reasoning"))
    details = [fields(detail) for detail in items(message.get("reasoning_details"))]
    return words or "".join(string(detail.get("text")) or string(detail.get("summary")) for detail in details)


def _tool(reading: Reading, message: Fields) -> None:
    """A result. Calls found beside it come first: it may answer one of them."""
    _calls(reading, message)
    content, media = spread(message.get("content"), _media)
    reading.result(native_key(message.get("tool_call_id")), content, media=media)


def _function(reading: Reading, message: Fields) -> None:
    """The result of a `function_call`, which has no id: its name is what the old protocol pairs by."""
    reading.result(named_key(message.get("name")), message.get("content"))


def _unknown(reading: Reading, message: Fields) -> None:
    role = as_text(message.get("role"))[:40]
    content = message.get("content")
    reading.fold(f"message of role {role}", content if isinstance(content, str) else message)


_Role: TypeAlias = tuple[Speaker, Callable[[Reading, Fields], None]]

_ROLES: dict[str, _Role] = {
    "system": ("human", _system),
    "developer": ("human", _system),
    "user": ("human", _user),
    "assistant": ("model", _assistant),
    "tool": ("tool", _tool),
    "function": ("tool", _function),
}
_UNKNOWN: _Role = ("human", _unknown)


def _calls(reading: Reading, message: Fields) -> None:
    calls = message.get("tool_calls")
    for call in [calls] if isinstance(calls, dict) else items(calls):
        _call(reading, call)
    if isinstance(legacy := message.get("function_call"), dict):
        reading.call(named_key(legacy.get("name")), legacy.get("name"), legacy.get("arguments"))


def _call(reading: Reading, call: object) -> None:
    """A call of type `function` or `custom`, or with name and arguments beside its id."""
    if not isinstance(call, dict):
        reading.fold("item that is no tool call", call)
        return
    function = fields(call.get("function")) or fields(call.get("custom")) or call
    arguments = function.get("arguments", function.get("input"))
    reading.call(native_key(call.get("id")), function.get("name"), arguments)


def _content(reading: Reading, content: object) -> None:
    """A string, or a list of parts; anything else that is there is kept as text."""
    if isinstance(content, str):
        reading.text(content)
    elif isinstance(content, dict | list | tuple):
        for part in [content] if isinstance(content, dict) else content:
            _part(reading, part)
    elif content is not None:
        reading.fold("content of an unknown kind", content)


def _part(reading: Reading, part: object) -> None:
    if isinstance(part, str):
        reading.text(part)
        return
    kind = string(fields(part).get("type"))
    if kind in _TEXT_PARTS:
        reading.text(string(fields(part).get(_TEXT_PARTS[kind])))
    elif kind == "thinking":
        thinking = fields(part).get("thinking")
        chunks = [string(fields(chunk).get("text")) for chunk in items(thinking)]
        reading.think(string(thinking) or "".join(chunks))
    elif media := _media(fields(part)):
        reading.say(media)
    else:
        reading.fold(f"content part of type {kind[:40]!r}", part)


_TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}


def _media(part: Fields) -> Media | None:
    read = _MEDIA_PARTS.get(string(part.get("type")))
    return read(part) if read else None


def _image(part: Fields) -> Media | None:
    image = part.get("image_url")
    url = string(image) or string(fields(image).get("url"))
    return data_url(url) if url else None


def _file(part: Fields) -> Media | None:
    data = string(fields(part.get("file")).get("file_data"))
    return data_url(data) if data.startswith("data:") else None


def _document(part: Fields) -> Media | None:
    document = part.get("document_url")
    url = string(document) or string(fields(document).get("url"))
    return replace(data_url(url), mime="application/pdf") if url else None


def _audio(part: Fields) -> Media | None:
    audio = fields(part.get("input_audio"))
    data = string(audio.get("data"))
    return data_url(f"data:audio/{string(audio.get('format')) or '*'};base64,{data}") if data else None


_MEDIA_PARTS: dict[str, Callable[[Fields], Media | None]] = {
    "image_url": _image,
    "input_image": _image,
    "file": _file,
    "document_url": _document,
    "input_audio": _audio,
}
