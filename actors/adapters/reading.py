"""A wire transcript being read into messages: one algorithm for every dialect, and its words by family.

Transcripts that people bring are broken: ids blank or repeated, results before their calls, twice, or for
calls nobody made. Shapes are read here and nothing is repaired: calls and results keep the ids they came with, and
`actors.core.normalize` pairs them. What was odd about a shape is noted, and what is not carried is counted by its path.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from actors.adapters.wire import WireObject, plain
from actors.core.data.ingest import ingest
from actors.core.data.jsonio import Json, parse_object, quote, sanitise
from actors.core.data.record import from_fields
from actors.core.transcript.projection import flat_name
from actors.core.values.content import (
    Block,
    Media,
    Message,
    MessageRole,
    ProviderState,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from actors.core.values.identity import Binding, result_key
from actors.core.values.intake import ReportBuilder

_WORDS = ("text", "input_text", "output_text")
_SAID_BY: Mapping[type[Block], MessageRole] = {
    ToolCall: "assistant",
    Thinking: "assistant",
    ToolResult: "tool",
}


class TranscriptReader:
    """Collects messages, and notes what was odd. A family says what its messages and parts are.

    As they stand, `said` reads messages as Anthropic and those who copy it have them, `part` and `media` parts as
    OpenAI's two protocols have them. `origin` is stamped on what the model said and on its seals.
    """

    container: ClassVar[str] = "messages"  # the key of a body that holds its messages
    content: ClassVar[str] = "content"  # the key of a message that holds its parts
    roles: ClassVar[Mapping[str, MessageRole]] = {"user": "user", "assistant": "assistant"}
    instructors: ClassVar[Sequence[str]] = ("system",)
    stray_message: ClassVar[str] = "item that is no message"
    stray_part: ClassVar[str] = "content of an unknown kind"

    def __init__(self, origin: Binding) -> None:
        self.remarks = ReportBuilder()
        self._origin = origin
        self.where = "transcript"
        self._role: MessageRole = "user"
        self._runs: list[tuple[str, MessageRole, list[Block]]] = []
        self._silent = False  # whether the wire message being read has said nothing so far
        self._fresh = True  # the next block begins a message of its own
        self._system: list[str] = []

    # ---- what a family says

    def message(self, message: WireObject) -> None:
        """Read a message."""
        role = message.text("role")
        self.begin(self.roles.get(role, "user"))
        self.said(role, message)

    def said(self, role: str, message: WireObject) -> None:
        """Read what a message of this role says."""
        if role in self.instructors:
            self.instruct(message, self.content)
        elif role in self.roles:
            self.parts(message)
        else:
            self.fold_role(message)

    def fold_role(self, message: WireObject) -> None:
        """Take a message of a role that the protocol does not have: its words, or all of it."""
        label = f"message of role {as_text(message.take('role'))[:40]}"
        self.fold(label, message.text("content") or message.whole())

    def part(self, part: WireObject) -> None:
        """Read a part of a message."""
        if (kind := part.text("type")) in (*_WORDS, "refusal"):
            self.text(part.text("refusal" if kind == "refusal" else "text"))
        else:
            self.attached("content part", part)

    def media(self, part: WireObject) -> Media | None:
        """Return the attachment that a part is, if it is one. A file that its provider keeps is none."""
        match part.text("type"):
            case "image_url" | "input_image":
                part.says("detail", "auto")
                part.inner("image_url").says("detail", "auto")
                return data_url(part.text("image_url") or part.inner("image_url").text("url"))
            case "document_url":
                url = part.text("document_url") or part.inner("document_url").text("url")
                return data_url(url, "application/pdf")
            case "file" | "input_file":
                file = part.inner("file") or part
                if url := file.text("file_url"):
                    return Media("application/pdf", url=url)
                data = file.text("file_data")
                return data_url(data) if data.startswith("data:") else None
            case "input_audio":
                audio = part.inner("input_audio")
                data, form = audio.text("data"), audio.text("format") or "*"
                return Media(f"audio/{form}", data) if data else None
            case _:
                return None

    def words(self, part: WireObject) -> str | None:
        """Return the words that a part of a result is, if it is words."""
        return part.text("text") if part.fields.get("type") in _WORDS else None

    # ---- what was read

    def read(self, messages: Sequence[object]) -> None:
        """Read wire messages, oldest first. What is no object is kept as text."""
        for number, value in enumerate(messages):
            self.where, self._silent = f"{self.container}[{number}]", True
            if not isinstance(value := plain(value), dict):
                self.begin("user")
                self.fold(self.stray_message, value)
                continue
            message = WireObject(value)
            self.message(message)
            for path in message.unread():
                self.remarks.left_out.add(f"{self.container}[]{path}")
            if self._silent:
                self.remarks.left_out.add(f"{self.container}[] that says nothing")

    def done(self) -> tuple[list[tuple[str, Message]], ReportBuilder, str | None]:
        """Return the messages with their places, what was odd, and the system prompt if there is one."""
        said = [
            (
                place,
                from_fields(Message, role, tuple(blocks), 0, self._origin if role == "assistant" else None),
            )
            for place, role, blocks in self._runs
        ]
        return said, self.remarks, "\n\n".join(self._system) or None

    def begin(self, role: MessageRole, *, joins: bool = False) -> None:
        """Let what follows be said by this role: a message of its own.

        One that `joins` goes on with the message before it, where the model or its tools said that too.
        """
        goes_on = joins and self._runs and role == self._role != "user"
        self._role = role
        self._fresh = self._fresh or not goes_on

    def note(self, kind: str, *about: str) -> None:
        """Note something odd about the wire message being read: `kind` with a `%s` for each thing it is about."""
        self._silent = False
        self.remarks.add(self.where, kind, *about)

    def say(self, block: Block) -> None:
        """Take a block. It may decide who speaks: models call and think, tools answer."""
        self._silent = False
        role = _SAID_BY.get(type(block), self._role)
        if self._fresh or self._runs[-1][1] != role:
            self._runs.append((self.where, role, []))
            self._fresh = False
        self._runs[-1][2].append(block)

    def text(self, text: str) -> None:
        """Take words. Empty ones say nothing."""
        if text:
            self.say(from_fields(Text, quote(text)))

    def fold(self, label: str, value: object) -> None:
        """Take what has no place in a conversation as labelled text, and note it."""
        self.note(f"{label} kept as text".replace("%", ""))
        self.say(Text(f"[{label}] {as_text(value)}"))

    def attached(self, what: str, part: WireObject) -> None:
        """Take what is an attachment, or else of a type that is not known: as labelled text."""
        if found := self.media(part):
            self.say(self.readable(found))
        else:
            self.fold(f"{what} of type {part.text('type')[:40]!r}", part.whole())

    def readable(self, media: Media) -> Media | Text:
        """Return an attachment; a note in place of one that cannot be read, which no provider would accept."""
        if not media.data or (damage := media.damage) is None:
            return media
        self.note("attachment of type %s left out: %s", repr(media.media_type)[:40], damage)
        return Text(
            f"[An attachment of type {media.media_type[:40]} stood here that cannot be read: {damage}.]"
        )

    def think(self, text: str, kind: str = "", state: str = "") -> None:
        """Take reasoning, sealed if the provider left its state."""
        seal = ProviderState(kind, quote(state), self._origin) if state else None
        if text or seal:
            self.say(Thinking(text, seal))

    def call(
        self,
        key: str,
        name: str,
        given: object,
        namespace: str = "",
        *,
        free: bool = False,
        has_name: bool = False,
    ) -> None:
        """Take a tool call under its own id. Without one, its results pair by the name of the tool or by place.

        Args:
            key: Its id, "" if it has none.
            name: The name of its tool.
            given: Its arguments.
            namespace: That of the tool.
            free: Whether it takes text instead of arguments.
            has_name: Whether its results give the name of the tool, so that it needs no id.
        """
        if not key and not has_name:
            self.note("call to %s has no id", repr(name)[:80])
        native = ProviderState("call_id", quote(key), self._origin) if key else None
        name = flat_name(namespace, name)
        if free:
            words = "" if given is None else as_text(given)
            self.say(ToolCall.free_form(key, name, words, native, namespace))
        else:
            json, raw = self._arguments(name, given)
            self.say(ToolCall(key, name, None, raw, native, namespace=namespace, json=json))

    def _arguments(self, name: str, given: object) -> tuple[Json, str | None]:
        """Return arguments as a JSON object, and verbatim if they are none."""
        if given is None:
            return Json(b"{}"), None
        if isinstance(given, str):
            if parse_object(given.strip()) is not None:
                return Json(given.strip().encode() or b"{}"), None
        elif isinstance(given, Mapping):
            held = ingest(given)
            if held.marks:
                self.note("arguments of %s changed on the way in: %s", repr(name)[:80], ", ".join(held.marks))
            if held.json.startswith(b"{"):
                return held.json, None
        self.note("arguments of %s are not a JSON object; kept verbatim beside {}", repr(name)[:80])
        return Json(b"{}"), as_text(given)

    def result(
        self, key: str, content: object, media: Iterable[Media] = (), *, name: str = "", failed: bool = False
    ) -> None:
        """Take a tool result, and the media in it. One that is not there is an empty one: it was sent as an answer.

        `name` is that of the tool, where a result gives one: it tells the calls of one id apart.
        """
        held = ingest("" if content is None else content)
        if held.marks:
            self.note("result changed on the way in: %s", ", ".join(held.marks))
        json, error = (None, held.json) if failed else (held.json, None)
        self.say(from_fields(ToolResult, result_key(key, name), json, error, None, tuple(media)))

    def pending(self, key: str, name: str = "") -> None:
        """Take the block of a call that had begun and had no result yet."""
        self.note("result of call %s had not come when the transcript was made", repr(key)[:80])
        self.say(from_fields(ToolResult, result_key(key, name), None, None, False, ()))

    # ---- contents

    def parts(self, message: WireObject) -> None:
        """Read a content: a string, or a list of parts; anything else that is there is kept as text."""
        for part in _each(message, self.content):
            if isinstance(part, str):
                self.text(part)
            elif isinstance(part, WireObject):
                self.part(part)
            else:
                self.fold(self.stray_part, part)

    def spread(self, holder: WireObject, *keys: str) -> tuple[object, list[Media]]:
        """Return the content of a result, and the media in it. What is no list of parts is returned as it is."""
        parts = [part for part in holder.each(*keys) if part is not None]
        if any(isinstance(part, WireObject) and part.text("type") for part in parts):
            return self.joined(parts)
        return holder.take(*keys), []

    def joined(self, parts: Iterable[object]) -> tuple[str, list[Media]]:
        """Return the texts of some parts, one a line, and the media in them; parts of an unknown kind as JSON."""
        texts: list[str] = []
        media: list[Media] = []
        for part in parts:
            if not isinstance(part, WireObject):
                texts.append(as_text(part))
            elif found := self.media(part):
                held = self.readable(found)
                if isinstance(held, Media):
                    media.append(held)
                else:
                    texts.append(held.text)
            else:
                words = self.words(part)
                texts.append(as_text(part.whole()) if words is None else words)
        return "\n".join(texts), media

    def instruct(self, holder: WireObject, *keys: str) -> None:
        """Take a part of the system prompt: a text, or blocks, or a content that has parts.

        After the conversation has begun, it is a note inside it.
        """
        content = holder.inner(*keys)
        if "parts" in content.fields:
            holder, keys = content, ("parts",)
        said = map(self._instruction, _each(holder, *keys))
        text = "\n".join([words for words in said if words is not None])
        if not text:
            return
        self._silent = False
        if self._runs:
            self.note("system message in mid-conversation kept as a note")
            self._role = "user"
            self.say(Text(f"[System note] {text}"))
        else:
            self._system.append(text)

    def _instruction(self, part: object) -> str | None:
        """Return the words of a part of the system prompt; None if it has none."""
        if not isinstance(part, WireObject):
            return as_text(part)
        if isinstance(part.fields.get("text"), str):
            part.says("type", "text", "input_text")
            return part.text("text")
        if found := self.media(part):
            self.note("%s in the system prompt left out", found.media_type)
            return None
        return None if "cachePoint" in part.fields else as_text(part.whole())


def _each(holder: WireObject, *keys: str) -> Iterable[object]:
    """Return the parts of a content. A text is a part; so is anything else that is not a list."""
    listed = holder.each(*keys)
    value = None if listed else holder.take(*keys)
    return listed if value is None or isinstance(value, list | tuple) else [value]


def as_text(value: object) -> str:
    """Return any value as text: a string as it is, anything else as JSON."""
    return sanitise(value) if isinstance(value, str) else ingest(value).json.decode()


def blob(value: object) -> str:
    """Return a blob as it stands in JSON. Vendors' clients hold it as bytes."""
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    return sanitise(value) if isinstance(value, str) else ""


def data_url(url: str, kind: str = "") -> Media | None:
    """Return the media of a type that a URL holds or points to; None if it is empty.

    Without a type it is the URL's own, or that of an image: nothing more is known of what is elsewhere.
    """
    header, comma, data = url.partition(",")
    if comma and header.startswith("data:") and header.endswith(";base64"):
        own = header.removeprefix("data:").removesuffix(";base64")
        return Media(kind or own or "image/*", data=data)
    return Media(kind or "image/*", url=url) if url else None
