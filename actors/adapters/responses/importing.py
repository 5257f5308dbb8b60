"""Reads a Responses transcript: the items of `input`, or of a response's `output`, also badly broken ones.

One small function for each type of item. What the model made in a row (reasoning, words, calls) is one message, and so
is a row of outputs. What is not in the table is kept as labelled text: references to items that a provider stored,
and the items of its own tools, which are no calls of the client.
"""

from collections.abc import Sequence

from actors.adapters.reading import (
    PartReader,
    Reading,
    data_url,
    fold_role,
    instructions,
    native_key,
    opened,
    read_parts,
    read_words,
    spread,
)
from actors.adapters.wire_object import WireObject
from actors.core.content import Media, Speaker
from actors.core.ingest import ingest
from actors.core.jsonio import sanitised


def read(messages: Sequence[object], reading: Reading) -> None:
    """Read wire items, oldest first, into `reading`."""
    for item in opened(messages, reading, "input", "entry that is no item"):
        kind = _kind(item)
        reading.begin(_speaker(kind, item), joins=True)
        item.says("status", "completed")
        _ITEMS.get(kind, _unknown)(reading, item)


def _kind(item: WireObject) -> str:
    """Return the type of an item. A message may leave it out, and a message of the other API's tools has none."""
    kind = item.text("type")
    if kind or "role" not in item.fields:
        return kind
    return "tool message" if item.fields["role"] == "tool" else "message"


def _speaker(kind: str, item: WireObject) -> Speaker:
    if kind in ("function_call_output", "custom_tool_call_output", "tool message"):
        return "tool"
    if kind == "message":
        return "model" if item.fields.get("role") == "assistant" else "human"
    is_models = kind.endswith("_call") or kind in ("reasoning", "mcp_list_tools", "mcp_approval_request")
    return "model" if is_models else "human"


def _message(reading: Reading, item: WireObject) -> None:
    role = item.text("role")
    if role in ("system", "developer"):
        reading.instruct(instructions(reading, item, media, "content"))
    elif role not in ("user", "assistant"):
        fold_role(reading, item)
    else:
        read_parts(reading, item, _part, "content")


def _part(reading: Reading, part: WireObject) -> None:
    read_words(reading, part, media)


def _reasoning(reading: Reading, item: WireObject) -> None:
    """Reasoning, sealed as the whole item where it holds more than words."""
    parts = [part for part in (*item.each("summary"), *item.each("content")) if isinstance(part, WireObject)]
    for part in parts:
        part.says("type", "summary_text", "reasoning_text")
    words = "\n\n".join(text for part in parts if (text := part.text("text")))
    state = ingest(item.whole()).json.decode() if item.fields.get("encrypted_content") else ""
    reading.think(words, "reasoning_item", state)


def _call(reading: Reading, item: WireObject) -> None:
    key, namespace = native_key(item.take("call_id", "id")), item.text("namespace")
    reading.call(key, item.text("name"), item.take("arguments", "input"), namespace)


def _custom_call(reading: Reading, item: WireObject) -> None:
    key, namespace = native_key(item.take("call_id", "id")), item.text("namespace")
    reading.free_call(key, item.text("name"), item.take("input", "arguments"), namespace)


def _output(reading: Reading, item: WireObject) -> None:
    item.says("role", "tool")
    content, held = spread(item, media, "output", "content")
    reading.result(native_key(item.take("call_id", "tool_call_id")), content, media=held)


def _reference(reading: Reading, item: WireObject) -> None:
    reading.fold("reference to an item that its provider keeps", item.take("id"))


def _image(reading: Reading, item: WireObject) -> None:
    """An image that the provider's own tool made."""
    if data := item.text("result"):
        form = item.text("output_format") or "png"
        reading.note("image made by its provider's tool kept as an image of the model's")
        reading.say(Media(f"image/{sanitised(form)}", data=sanitised(data)))
    else:
        _unknown(reading, item)


def _left_out(reading: Reading, item: WireObject) -> None:
    """What is no part of the conversation, or what only its provider can read."""
    kind = item.text("type")
    reading.note(f"item of type {kind!r} left out")
    item.whole()


def _unknown(reading: Reading, item: WireObject) -> None:
    reading.fold(f"item of type {item.text('type')[:40]!r}", item.whole())


_ITEMS: dict[str, PartReader] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _call,
    "custom_tool_call": _custom_call,
    "function_call_output": _output,
    "custom_tool_call_output": _output,
    "tool message": _output,
    "item_reference": _reference,
    "image_generation_call": _image,
    **dict.fromkeys(
        ("additional_tools", "compaction", "compaction_summary", "compaction_trigger"), _left_out
    ),
}


def media(part: WireObject) -> Media | None:
    """Return what an image or a file part holds or points to. A file that its provider keeps is neither."""
    kind = part.text("type")
    if kind in ("input_image", "image_url"):
        part.says("detail", "auto")
        url = part.text("image_url") or part.inner("image_url").text("url")
        return data_url(url) if url else None
    if kind != "input_file":
        return None
    if url := part.text("file_url"):
        return Media("application/pdf", url=sanitised(url))
    if part.fields.get("file_id"):
        return None
    data = part.text("file_data")
    return data_url(data) if data.startswith("data:") else None
