"""A wire transcript being read into messages, for every dialect.

Transcripts that people bring are broken: ids blank or repeated, results before their calls, twice, or for
calls nobody made. Shapes are read here and nothing is repaired: calls and results keep the ids they came with, and
`actors.core.door` pairs them. What was odd about a shape is noted, one line each.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from actors.adapters.wire import Fields, fields, items, string
from actors.core.content import (
    Block,
    Code,
    Media,
    Message,
    Native,
    Seal,
    Speaker,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from actors.core.identity import Binding
from actors.core.jsonio import Ingested, Json, ingest, mended, parse_object, quote

_NAMED = "\0"
"""Begins what pairs a result with its call where the protocol goes by the tool's name."""


class Read(NamedTuple):
    """What a wire transcript says, in the shape it was in.

    Args:
        messages: In wire order, with the call ids of their provider. A wire message that mixes speakers is several.
        places: Where each of them stood.
        notes: One line for each thing whose shape was odd.
        system: The system prompt, if the transcript begins with one.
    """

    messages: list[Message]
    places: list[str]
    notes: list[str]
    system: str | None


class Reading:
    """Collects messages, and notes what was odd.

    Args:
        origin: Stamped on what the model said and on its seals.
    """

    def __init__(self, origin: Binding) -> None:
        self._origin = origin
        self._where = ""
        self._speaker: Speaker = "human"
        self._runs: list[tuple[str, Speaker, list[Block]]] = []
        self._fresh = True  # the next block begins a message of its own
        self._system: list[str] = []
        self._notes: list[str] = []

    @property
    def begun(self) -> bool:
        """Whether anything but the system prompt has been read."""
        return bool(self._runs)

    def begin(self, where: str, speaker: Speaker, *, joins: bool = False) -> None:
        """Turn to the next wire message. `where` names it in diagnostics.

        One that `joins` goes on with the message before it, where that is of the same speaker.
        """
        self._where, self._speaker = where, speaker
        if joins and self.begun:
            return
        self._fresh = True

    def note(self, text: str) -> None:
        """Note something odd about the wire message being read."""
        self._notes.append(f"{self._where}: {mended(text)}")

    def instruct(self, text: str) -> None:
        """Take a part of the system prompt; after the conversation has begun, a note inside it."""
        if not text:
            return
        if not self.begun:
            self._system.append(mended(text))
            return
        self.note("system message in mid-conversation kept as a note")
        self._speaker = "human"
        self.say(Text(f"[System note] {text}"))

    def say(self, *blocks: Block) -> None:
        """Take blocks that belong together. The first decides who speaks: models call, tools answer."""
        if not blocks:
            return
        speaker = self._speaker_of(blocks[0])
        if self._fresh or self._runs[-1][1] != speaker:
            self._runs.append((self._where, speaker, []))
            self._fresh = False
        self._runs[-1][2].extend(blocks)

    def text(self, text: str) -> None:
        """Take words. Empty ones say nothing."""
        if text:
            self.say(Text(text))

    def fold(self, label: str, value: object) -> None:
        """Take what has no place in a conversation as labelled text, and note it."""
        self.note(f"{label} kept as text")
        self.say(Text(f"[{label}] {as_text(value)}"))

    def think(self, text: str, kind: str = "", state: str = "") -> None:
        """Take reasoning, sealed if the provider left its state."""
        seal = Seal(kind, quote(state), self._origin) if state else None
        if text or seal:
            self.say(Thinking(text, seal))

    def call(self, key: str, name: object, arguments: object) -> None:
        """Take a tool call under what a result of it is known by (`native_key`, `named_key`)."""
        if not key:
            self.note(f"call to {string(name)!r} has no id")
        is_id = key and not key.startswith(_NAMED)
        native = Seal("call_id", quote(key), self._origin) if is_id else None
        json, raw = self._arguments(string(name), arguments)
        self.say(ToolCall(key, mended(string(name)), raw=raw, native=native, json=json))

    def result(self, key: str, content: object, *, failed: bool = False, media: Iterable[Media] = ()) -> None:
        """Take a tool result, and the media in it. One that is not there is an empty one: it was sent as an answer."""
        held = ingest("" if content is None else content)
        self._note_marks("result", held)
        if failed:
            self.say(ToolResult(key, error_json=held.json, media=media))
        else:
            self.say(ToolResult(key, content_json=held.json, media=media))

    def done(self) -> Read:
        """Return all that was read."""
        messages = [
            Message(speaker, blocks, origin=self._origin if speaker == "model" else None)
            for _, speaker, blocks in self._runs
        ]
        places = [place for place, _, _ in self._runs]
        return Read(messages, places, self._notes, "\n\n".join(self._system) or None)

    def _speaker_of(self, block: Block) -> Speaker:
        match block:
            case ToolResult():
                return "tool"
            case ToolCall() | Thinking():
                return "model"
            case Text() | Media() | Code() | Native():
                return self._speaker

    def _arguments(self, name: str, arguments: object) -> tuple[Json, str | None]:
        """Return arguments as a JSON object, and verbatim if they are none."""
        if arguments is None:
            return Json(b"{}"), None
        if isinstance(arguments, str):
            if parse_object(arguments.strip()) is not None:
                return Json(arguments.strip().encode() or b"{}"), None
        elif isinstance(arguments, Mapping):
            held = ingest(arguments)
            self._note_marks(f"arguments of {name!r}", held)
            if held.json.startswith(b"{"):
                return held.json, None
        self.note(f"arguments of {name!r} are not a JSON object; kept verbatim beside {{}}")
        return Json(b"{}"), mended(arguments) if isinstance(arguments, str) else as_text(arguments)

    def _note_marks(self, what: str, held: Ingested) -> None:
        if held.marks:
            self.note(f"{what} changed on the way in: {', '.join(held.marks)}")


def native_key(value: object) -> str:
    """Return what a native id pairs by. A blank one is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)[:64]
    text = string(value)
    return mended(text) if text.strip() else ""


def named_key(name: object) -> str:
    """Return what a call pairs by that has no id of its own, in a protocol that goes by the tool's name."""
    return _NAMED + mended(string(name))


def as_text(value: object) -> str:
    """Return any value as text: a string as it is, anything else as JSON."""
    return mended(value) if isinstance(value, str) else ingest(value).json.decode()


_SPEAKERS: dict[str, Speaker] = {"user": "human", "assistant": "model"}


def read_turns(
    messages: Sequence[object],
    reading: Reading,
    content: Callable[[Reading, object], None],
    instructions: Callable[[object], str],
) -> None:
    """Read messages of the user and the assistant, as Anthropic and those who copy it have them.

    Args:
        messages: Oldest first. One of another role is folded into what the human says.
        reading: What they are read into.
        content: Reads what a message holds.
        instructions: Gives the text of a system prompt that stands among the messages.
    """
    for number, message in enumerate(messages):
        role = string(fields(message).get("role"))
        reading.begin(f"messages[{number}]", _SPEAKERS.get(role, "human"))
        if not isinstance(message, dict):
            reading.fold("item that is no message", message)
        elif role == "system":
            reading.instruct(instructions(message.get("content")))
        elif role in _SPEAKERS:
            content(reading, message.get("content"))
        else:
            held = message.get("content")
            label = f"message of role {as_text(message.get('role'))[:40]}"
            reading.fold(label, held if isinstance(held, str) else message)


def spread(content: object, media_of: Callable[[Fields], Media | None]) -> tuple[object, list[Media]]:
    """Return the content of a result or a system prompt, and the media in it.

    A list of parts becomes its texts, one a line, parts of an unknown kind as JSON. What is no list of
    parts is returned as it is.
    """
    parts = [content] if isinstance(content, dict) else items(content)
    if not any(string(fields(part).get("type")) for part in parts):
        return content, []
    texts: list[str] = []
    media: list[Media] = []
    for part in parts:
        if found := media_of(fields(part)):
            media.append(found)
        elif string(fields(part).get("type")) in ("text", "input_text", "output_text"):
            texts.append(string(fields(part).get("text")))
        else:
            texts.append(as_text(part))
    return "\n".join(texts), media


def data_url(url: str) -> Media:
    """Return the media that a URL holds or points to. The kind of what it points to is not known."""
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return Media(
            mended(head.removeprefix("data:").removesuffix(";base64")) or "image/*", data=mended(data)
        )
    return Media("image/*", url=mended(url))
