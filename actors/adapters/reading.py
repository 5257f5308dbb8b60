"""A wire transcript being read into messages, for every dialect.

Transcripts that people bring are broken: ids blank or repeated, results before their calls, twice, or for
calls nobody made. Shapes are read here and nothing is repaired: calls and results keep the ids they came with, and
`actors.core.door` pairs them. What was odd about a shape is noted, and what is not carried is counted by its path.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from actors.adapters.wire import string
from actors.adapters.wire_object import WireObject, plain
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
from actors.core.form import kept
from actors.core.identity import Binding
from actors.core.ingest import Ingested, ingest
from actors.core.intake import NameTally, Remarks
from actors.core.jsonio import Json, parse_object, quote, sanitised
from actors.core.projection import flat_name

_NAMED = "\0"
"""Begins what pairs a result with its call where the protocol goes by the tool's name."""


MediaReader: TypeAlias = Callable[[WireObject], Media | None]
"""Returns the attachment that a part is, if it is one."""
PartReader: TypeAlias = "Callable[[Reading, WireObject], None]"


class ReadTranscript(NamedTuple):
    """What a wire transcript says, in the shape it was in.

    Args:
        messages: In wire order, with the call ids of their provider. A wire message that mixes speakers is several.
        places: Where each of them stood.
        remarks: What was odd about their shapes.
        left_out: The path of each key that is not carried, with how often it was met.
        system: The system prompt, if the transcript begins with one.
    """

    messages: list[Message]
    places: list[str]
    remarks: Remarks
    left_out: tuple[tuple[str, int], ...]
    system: str | None


class Reading:
    """Collects messages, and notes what was odd.

    Args:
        origin: Stamped on what the model said and on its seals.
    """

    def __init__(self, origin: Binding) -> None:
        self._origin = origin
        self._where = ""
        self._opened: tuple[str, WireObject] | None = None
        self._speaker: Speaker = "human"
        self._runs: list[tuple[str, Speaker, list[Block]]] = []
        self._silent = False  # whether the wire message being read has said nothing so far
        self._fresh = True  # the next block begins a message of its own
        self._system: list[str] = []
        self._remarks = Remarks()
        self._left_out = NameTally()

    @property
    def begun(self) -> bool:
        """Whether anything but the system prompt has been read."""
        return bool(self._runs)

    def open(self, container: str, number: int, value: object) -> WireObject | None:
        """Turn to the next wire message and return it, to be read key by key; None if it is no object."""
        self._close()
        self._where = f"{container}[{number}]"
        value = plain(value)
        self._silent = True
        if isinstance(value, dict):
            opened = WireObject(value)
            self._opened = f"{container}[]", opened
            return opened
        self.begin("human")
        return None

    def begin(self, speaker: Speaker, *, joins: bool = False) -> None:
        """Let what follows be said by this speaker: a message of its own.

        One that `joins` goes on with the message before it, where the model or its tools said that too.
        """
        goes_on = joins and self.begun and speaker == self._speaker != "human"
        self._speaker = speaker
        self._fresh = self._fresh or not goes_on

    def note(self, kind: str, *about: str) -> None:
        """Note something odd about the wire message being read: `kind` with a `%s` for each thing it is about."""
        self._silent = False
        self._remarks.add(self._where or "transcript", kind, *about)

    def leave(self, unread: Iterable[str]) -> None:
        """Count paths that are not carried."""
        for path in unread:
            self._left_out.add(path)

    def _close(self) -> None:
        if self._opened is not None:
            container, opened = self._opened
            self.leave(f"{container}{path}" for path in opened.unread())
            if self._silent:
                self._left_out.add(f"{container} that says nothing")
            self._opened = None

    def instruct(self, text: str) -> None:
        """Take a part of the system prompt; after the conversation has begun, a note inside it."""
        if not text:
            return
        self._silent = False
        if not self.begun:
            self._system.append(sanitised(text))
            return
        self.note("system message in mid-conversation kept as a note")
        self._speaker = "human"
        self.say(Text(f"[System note] {text}"))

    def say(self, *blocks: Block) -> None:
        """Take blocks that belong together. The first decides who speaks: models call, tools answer."""
        if not blocks:
            return
        self._silent = False
        speaker = self._speaker_of(blocks[0])
        if self._fresh or self._runs[-1][1] != speaker:
            self._runs.append((self._where, speaker, []))
            self._fresh = False
        self._runs[-1][2].extend(blocks)

    def text(self, text: str) -> None:
        """Take words. Empty ones say nothing."""
        if text:
            self.say(kept(Text, quote(text)))

    def fold(self, label: str, value: object) -> None:
        """Take what has no place in a conversation as labelled text, and note it."""
        self.note(f"{label} kept as text".replace("%", ""))
        self.say(Text(f"[{label}] {as_text(value)}"))

    def think(self, text: str, kind: str = "", state: str = "") -> None:
        """Take reasoning, sealed if the provider left its state."""
        seal = Seal(kind, quote(state), self._origin) if state else None
        if text or seal:
            self.say(Thinking(text, seal))

    def call(self, key: str, name: object, arguments: object, namespace: str = "") -> None:
        """Take a tool call under what a result of it is known by (`native_key`, `named_key`)."""
        named, native = self._called(key, name, namespace)
        json, raw = self._arguments(named, arguments)
        self.say(kept(ToolCall, key, named, json, raw, native, sanitised(namespace)))

    def free_call(self, key: str, name: object, text: object, namespace: str = "") -> None:
        """Take a call of a tool that is given free text."""
        named, native = self._called(key, name, namespace)
        words = "" if text is None else as_text(text)
        self.say(ToolCall.free_form(key, named, words, native, sanitised(namespace)))

    def _called(self, key: str, name: object, namespace: str) -> tuple[str, Seal | None]:
        """Return a call's name, that of its group in front of it, and its own id."""
        if not key:
            self.note("call to %s has no id", repr(string(name))[:80])
        is_id = key and not key.startswith(_NAMED)
        native = Seal("call_id", quote(key), self._origin) if is_id else None
        return sanitised(flat_name(namespace, string(name))), native

    def result(self, key: str, content: object, *, failed: bool = False, media: Iterable[Media] = ()) -> None:
        """Take a tool result, and the media in it. One that is not there is an empty one: it was sent as an answer."""
        held = ingest("" if content is None else content)
        if held.marks:
            self.note("result changed on the way in: %s", ", ".join(held.marks))
        json, error = (None, held.json) if failed else (held.json, None)
        self.say(kept(ToolResult, key, json, error, None, tuple(media)))

    def done(self) -> ReadTranscript:
        """Return all that was read."""
        self._close()
        messages = [
            kept(Message, speaker, tuple(blocks), 0, self._origin if speaker == "model" else None)
            for _, speaker, blocks in self._runs
        ]
        places = [place for place, _, _ in self._runs]
        system = "\n\n".join(self._system) or None
        return ReadTranscript(messages, places, self._remarks, self._left_out.counts(), system)

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
            self._changed(name, held)
            if held.json.startswith(b"{"):
                return held.json, None
        self.note("arguments of %s are not a JSON object; kept verbatim beside {}", repr(name)[:80])
        return Json(b"{}"), sanitised(arguments) if isinstance(arguments, str) else as_text(arguments)

    def _changed(self, name: str, held: Ingested) -> None:
        if held.marks:
            self.note("arguments of %s changed on the way in: %s", repr(name)[:80], ", ".join(held.marks))


def native_key(value: object) -> str:
    """Return what a native id pairs by. A blank one is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)[:64]
    text = string(value)
    return sanitised(text) if text.strip() else ""


def named_key(name: object) -> str:
    """Return what a call pairs by that has no id of its own, in a protocol that goes by the tool's name."""
    return _NAMED + sanitised(string(name))


def as_text(value: object) -> str:
    """Return any value as text: a string as it is, anything else as JSON."""
    return sanitised(value) if isinstance(value, str) else ingest(value).json.decode()


_SPEAKERS: dict[str, Speaker] = {"user": "human", "assistant": "model"}


def opened(
    messages: Sequence[object],
    reading: Reading,
    container: str = "messages",
    other: str = "item that is no message",
) -> Iterator[WireObject]:
    """Turn to each wire message, to be read key by key. What is no object is kept as text that is labelled `other`."""
    for number, value in enumerate(messages):
        message = reading.open(container, number, value)
        if message is None:
            reading.fold(other, value)
        else:
            yield message


def read_turns(
    messages: Sequence[object],
    reading: Reading,
    read_part: PartReader,
    media_of: MediaReader,
    other: str = "content of an unknown kind",
) -> None:
    """Read messages of the user and the assistant, as Anthropic and those who copy it have them.

    Args:
        messages: Oldest first. One of another role is folded into what the human says.
        reading: What they are read into.
        read_part: Reads a block of a message.
        media_of: Reads the attachment that a block is, if it is one.
        other: The label of a block that is no object.
    """
    for message in opened(messages, reading):
        role = message.text("role")
        reading.begin(_SPEAKERS.get(role, "human"))
        if role == "system":
            reading.instruct(instructions(reading, message, media_of, "content"))
        elif role in _SPEAKERS:
            read_parts(reading, message, read_part, "content", other)
        else:
            fold_role(reading, message)


def fold_role(reading: Reading, message: WireObject) -> None:
    """Take a message of a role that the protocol does not have: its words, or all of it."""
    label = f"message of role {as_text(message.take('role'))[:40]}"
    words = message.text("content")
    reading.fold(label, words or message.whole())


def read_parts(
    reading: Reading,
    message: WireObject,
    read_part: PartReader,
    key: str,
    other: str = "content of an unknown kind",
) -> None:
    """Read a content: a string, or a list of parts; anything else that is there is kept as text, labelled `other`."""
    for part in each(message, key):
        if isinstance(part, str):
            reading.text(part)
        elif isinstance(part, WireObject):
            read_part(reading, part)
        else:
            reading.fold(other, part)


def read_words(reading: Reading, part: WireObject, media_of: MediaReader) -> None:
    """Read a part of a content as OpenAI's protocols have it: words, or an attachment."""
    kind = part.text("type")
    if kind in ("text", "input_text", "output_text", "refusal"):
        reading.text(part.text("refusal" if kind == "refusal" else "text"))
    elif found := media_of(part):
        reading.say(found)
    else:
        reading.fold(f"content part of type {kind[:40]!r}", part.whole())


def each(message: WireObject, *keys: str) -> Iterable[object]:
    """Give the parts of a content: texts, objects to be read, and what is neither.

    A text is a part; so is anything else that is not a list.
    """
    listed = list(message.each(*keys))
    if listed or (value := message.take(*keys)) is None or isinstance(value, list | tuple):
        return listed
    return [value]


def spread(holder: WireObject, media_of: MediaReader, *keys: str) -> tuple[object, list[Media]]:
    """Return the content of a result, and the media in it.

    A list of parts becomes its texts, one a line, parts of an unknown kind as JSON. What is no list of
    parts is returned as it is.
    """
    parts = [part for part in holder.each(*keys) if part is not None]
    if not any(isinstance(part, WireObject) and part.text("type") for part in parts):
        return holder.take(*keys), []
    texts: list[str] = []
    media: list[Media] = []
    for part in parts:
        if not isinstance(part, WireObject):
            texts.append(as_text(part))
        elif part.fields.get("type") in ("text", "input_text", "output_text"):
            texts.append(part.text("text"))
        elif found := media_of(part):
            media.append(found)
        else:
            texts.append(as_text(part.whole()))
    return "\n".join(texts), media


def instructions(reading: Reading, holder: WireObject, media_of: MediaReader, *keys: str) -> str:
    """Return a system prompt as text: it is one, or blocks, or a content that has parts."""
    content = holder.inner(*keys)
    if "parts" in content.fields:
        holder, keys = content, ("parts",)
    texts: list[str] = []
    for part in each(holder, *keys):
        if not isinstance(part, WireObject):
            texts.append(as_text(part))
        elif isinstance(part.fields.get("text"), str):
            part.says("type", "text", "input_text")
            texts.append(part.text("text"))
        elif found := media_of(part):
            reading.note("%s in the system prompt left out", found.mime)
        elif "cachePoint" not in part.fields:
            texts.append(as_text(part.whole()))
    return "\n".join(texts)


def blob(value: object) -> str:
    """Return a blob as it stands in JSON. Vendors' clients hold it as bytes."""
    return b64encode(value).decode() if isinstance(value, bytes | bytearray) else sanitised(string(value))


def data_url(url: str) -> Media:
    """Return the media that a URL holds or points to. The kind of what it points to is not known."""
    header, comma, data = url.partition(",")
    if comma and header.startswith("data:") and header.endswith(";base64"):
        return Media(
            sanitised(header.removeprefix("data:").removesuffix(";base64")) or "image/*", data=sanitised(data)
        )
    return Media("image/*", url=sanitised(url))
