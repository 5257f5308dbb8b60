"""Reads a Responses transcript: the items of `input`, or of a response's `output`, also badly broken ones.

One small function for each type of item. What the model made in a row (reasoning, words, calls) is one message, and so
is a row of outputs. What is not in the table is kept as labelled text: references to items that a provider stored,
and the items of its own tools.
"""

from collections.abc import Callable, Sequence

from actors.adapters.reading import Reading, as_text, data_url, native_key, spread
from actors.adapters.wire import Fields, fields, items, string
from actors.core.content import Media, Speaker
from actors.core.jsonio import ingest, mended


def read(messages: Sequence[object], reading: Reading) -> None:
    """Read wire items, oldest first, into `reading`."""
    before: Speaker = "human"
    for number, item in enumerate(messages):
        kind = _kind(fields(item))
        speaker = _speaker(kind, fields(item))
        reading.begin(f"input[{number}]", speaker, joins=speaker == before and speaker != "human")
        if isinstance(item, dict):
            _ITEMS.get(kind, _unknown)(reading, item)
        else:
            reading.fold("entry that is no item", item)
        before = speaker


def _kind(item: Fields) -> str:
    """Return the type of an item. A message may leave it out, and a message of the other API's tools has none."""
    kind = string(item.get("type"))
    if kind or "role" not in item:
        return kind
    return "tool message" if item.get("role") == "tool" else "message"


def _speaker(kind: str, item: Fields) -> Speaker:
    if kind in ("reasoning", "function_call", "custom_tool_call"):
        return "model"
    if kind in ("function_call_output", "custom_tool_call_output", "tool message"):
        return "tool"
    return "model" if kind == "message" and item.get("role") == "assistant" else "human"


def _message(reading: Reading, item: Fields) -> None:
    role, content = item.get("role"), item.get("content")
    if role in ("system", "developer"):
        words, _ = spread(content, _media)
        reading.instruct("" if words is None else as_text(words))
    elif role not in ("user", "assistant"):
        label = f"message of role {as_text(role)[:40]}"
        reading.fold(label, content if isinstance(content, str) else item)
    elif isinstance(content, dict | list | tuple):
        for part in [content] if isinstance(content, dict) else content:
            _part(reading, part)
    elif isinstance(content, str):
        reading.text(content)
    elif content is not None:
        reading.fold("content of an unknown kind", content)


def _part(reading: Reading, part: object) -> None:
    kind = string(fields(part).get("type"))
    if isinstance(part, str):
        reading.text(part)
    elif kind in _TEXT_PARTS:
        reading.text(string(fields(part).get(_TEXT_PARTS[kind])))
    elif media := _media(fields(part)):
        reading.say(media)
    else:
        reading.fold(f"content part of type {kind[:40]!r}", part)


_TEXT_PARTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}


def _reasoning(reading: Reading, item: Fields) -> None:
    """Reasoning, sealed as the whole item where it holds more than words."""
    parts = map(fields, (*items(item.get("summary")), *items(item.get("content"))))
    words = "\n\n".join(text for part in parts if (text := string(part.get("text"))))
    state = ingest(item).json.decode() if item.get("encrypted_content") else ""
    reading.think(words, "reasoning_item", state)


def _call(reading: Reading, item: Fields) -> None:
    key = native_key(item.get("call_id") or item.get("id"))
    reading.call(key, item.get("name"), item.get("arguments", item.get("input")))


def _output(reading: Reading, item: Fields) -> None:
    content, media = spread(item.get("output", item.get("content")), _media)
    reading.result(native_key(item.get("call_id") or item.get("tool_call_id")), content, media=media)


def _reference(reading: Reading, item: Fields) -> None:
    reading.fold("reference to an item that its provider keeps", item.get("id"))


def _unknown(reading: Reading, item: Fields) -> None:
    reading.fold(f"item of type {string(item.get('type'))[:40]!r}", item)


_ITEMS: dict[str, Callable[[Reading, Fields], None]] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _call,
    "custom_tool_call": _call,
    "function_call_output": _output,
    "custom_tool_call_output": _output,
    "tool message": _output,
    "item_reference": _reference,
}


def _media(part: Fields) -> Media | None:
    """Return what an image or a file part holds or points to. A file that its provider keeps is neither."""
    kind = part.get("type")
    if kind in ("input_image", "image_url"):
        image = part.get("image_url")
        url = string(image) or string(fields(image).get("url"))
        return data_url(url) if url else None
    if kind != "input_file":
        return None
    if url := string(part.get("file_url")):
        return Media("application/pdf", url=mended(url))
    data = string(part.get("file_data"))
    return data_url(data) if data.startswith("data:") else None
