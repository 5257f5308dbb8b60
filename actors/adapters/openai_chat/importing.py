"""Reads a Chat Completions transcript: a list of `messages`, also a badly broken one.

One small function for each role and each kind of content part. What is not in the tables is kept as text.
"""

from collections.abc import Sequence
from typing import TypeAlias

from actors.adapters.reading import (
    MediaReader,
    PartReader,
    Reading,
    data_url,
    fold_role,
    instructions,
    named_key,
    native_key,
    opened,
    read_parts,
    read_words,
    spread,
)
from actors.adapters.wire_object import WireObject
from actors.core.content import Media, Speaker
from actors.core.form import replace


def read(messages: Sequence[object], reading: Reading) -> None:
    """Read wire messages, oldest first, into `reading`."""
    for message in opened(messages, reading):
        speaker, read_role = _ROLES.get(message.text("role"), _UNKNOWN)
        reading.begin(speaker)
        read_role(reading, message)


def _system(reading: Reading, message: WireObject) -> None:
    reading.instruct(instructions(reading, message, media, "content"))


def _user(reading: Reading, message: WireObject) -> None:
    read_parts(reading, message, _part, "content")


def _assistant(reading: Reading, message: WireObject) -> None:
    reading.think(_reasoning(reading, message))
    read_parts(reading, message, _part, "content")
    reading.text(message.text("refusal"))
    _calls(reading, message)


def _reasoning(reading: Reading, message: WireObject) -> str:
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
        reading.note("reasoning_details that say something else than the reasoning left out")
    return words or "".join(details)


def _tool(reading: Reading, message: WireObject) -> None:
    """A result. Calls found beside it come first: it may answer one of them."""
    _calls(reading, message)
    content, held = spread(message, media, "content")
    reading.result(native_key(message.take("tool_call_id")), content, media=held)


def _function(reading: Reading, message: WireObject) -> None:
    """The result of a `function_call`, which has no id: its name is what the old protocol pairs by."""
    reading.result(named_key(message.text("name")), message.take("content"))


_Role: TypeAlias = tuple[Speaker, PartReader]

_ROLES: dict[str, _Role] = {
    "system": ("human", _system),
    "developer": ("human", _system),
    "user": ("human", _user),
    "assistant": ("model", _assistant),
    "tool": ("tool", _tool),
    "function": ("tool", _function),
}
_UNKNOWN: _Role = ("human", fold_role)


def _calls(reading: Reading, message: WireObject) -> None:
    for call in message.each("tool_calls"):
        if isinstance(call, WireObject):
            _call(reading, call)
        else:
            reading.fold("item that is no tool call", call)
    if legacy := message.inner("function_call"):
        name = legacy.text("name")
        reading.call(named_key(name), name, legacy.take("arguments"))


_OURS = ("", "function", "custom", "tool_call")
"""Types of calls that are the client's to run; a provider's own tools have others."""


def _call(reading: Reading, call: WireObject) -> None:
    """A call of type `function` or `custom`, or with name and arguments beside its id."""
    if (kind := call.text("type")) not in _OURS:
        reading.fold(f"call of type {kind[:40]!r}", call.whole())
        return
    call.take("index")  # the list says as much
    key, custom = native_key(call.take("id")), call.inner("custom")
    if custom:
        reading.free_call(key, custom.text("name"), custom.take("input"))
    else:
        function = call.inner("function") or call
        reading.call(key, function.text("name"), function.take("arguments", "input"))


def _part(reading: Reading, part: WireObject) -> None:
    if not part.says("type", "thinking"):
        read_words(reading, part, media)
        return
    chunks = [chunk for chunk in part.each("thinking") if isinstance(chunk, WireObject)]
    for chunk in chunks:
        chunk.says("type", "text")
    reading.think(part.text("thinking") or "".join(chunk.text("text") for chunk in chunks))


def media(part: WireObject) -> Media | None:
    """Return what a part holds or points to, if it is an attachment."""
    read = _MEDIA_PARTS.get(part.text("type"))
    return read(part) if read else None


def _image(part: WireObject) -> Media | None:
    url = part.text("image_url") or part.inner("image_url").text("url")
    part.inner("image_url").says("detail", "auto")
    return data_url(url) if url else None


def _file(part: WireObject) -> Media | None:
    data = part.inner("file").text("file_data")
    return data_url(data) if data.startswith("data:") else None


def _document(part: WireObject) -> Media | None:
    url = part.text("document_url") or part.inner("document_url").text("url")
    return replace(data_url(url), mime="application/pdf") if url else None


def _audio(part: WireObject) -> Media | None:
    audio = part.inner("input_audio")
    data = audio.text("data")
    return data_url(f"data:audio/{audio.text('format') or '*'};base64,{data}") if data else None


_MEDIA_PARTS: dict[str, MediaReader] = {
    "image_url": _image,
    "input_image": _image,
    "file": _file,
    "document_url": _document,
    "input_audio": _audio,
}
