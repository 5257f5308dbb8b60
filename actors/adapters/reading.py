"""Read a wire transcript into messages: one algorithm for every dialect, with the vocabulary of each family.

Imported transcripts are often broken: ids are blank or repeated, results come before their calls, twice, or without a
call. This module reads shapes and repairs nothing: calls and results keep their ids, and `actors.core.normalize`
pairs them. The report records odd shapes, and counts the fields that are not imported by path.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from actors.adapters.wire import WireObject, plain
from actors.core.data.ingest import ingest
from actors.core.data.jsonio import Json, is_object, parse_object, quote, sanitise
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
    """Collects messages, and reports oddities. Subclasses define the messages and parts of a family.

    By default, `said` reads messages in the format of Anthropic and compatible hosts, `part` and `media` read parts
    of OpenAI's two protocols. `origin` is stamped on messages of the model and on their seals.
    """

    container: ClassVar[str] = "messages"  # the key of a body that holds its messages
    content: ClassVar[str] = "content"  # the key of a message that holds its parts
    roles: ClassVar[Mapping[str, MessageRole]] = {"user": "user", "assistant": "assistant"}
    instructors: ClassVar[Sequence[str]] = ("system",)
    stray_message: ClassVar[str] = "item that is no message"
    stray_part: ClassVar[str] = "content of an unknown kind"

    def __init__(self, origin: Binding) -> None:
        self.remarks: ReportBuilder = ReportBuilder()
        self._origin = origin
        self.where: str = "transcript"
        self._role: MessageRole = "user"
        self._runs: list[tuple[str, MessageRole, list[Block]]] = []
        self._silent = False  # whether the current wire message has yielded nothing so far
        self._fresh = True  # the next block begins a message of its own
        self._system: list[str] = []

    # ---- the vocabulary of a family

    def message(self, message: WireObject, /) -> None:
        """Read a message."""
        role = message.text("role")
        self.begin(self.roles.get(role, "user"))
        self.read_message(role, message)

    def read_message(self, role: str, message: WireObject) -> None:
        """Read the content of a message of this role."""
        if role in self.instructors:
            self.instruct(message, self.content)
        elif role in self.roles:
            self.parts(message)
        else:
            self.fold_role(message)

    def fold_role(self, message: WireObject) -> None:
        """Add a message with an unknown role as text: its `content`, or the complete JSON if it has none."""
        label = f"message of role {as_text(message.take('role'))[:40]}"
        self.fold(label, message.text("content") or message.whole())

    def part(self, part: WireObject) -> None:
        """Read a part of a message."""
        if (kind := part.text("type")) in (*_WORDS, "refusal"):
            self.text(part.text("refusal" if kind == "refusal" else "text"))
        else:
            self.add_attachment("content part", part)

    def media(self, part: WireObject) -> Media | None:
        """Return the attachment in a part, or None. A reference to a file stored at the provider is None."""
        match part.text("type"):
            case "image_url" | "input_image":
                part.has_value("detail", "auto")
                part.inner("image_url").has_value("detail", "auto")
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
        """Return the text of a part of a result; None if the part is not text."""
        return part.text("text") if part.fields.get("type") in _WORDS else None

    # ---- the result

    def read(self, messages: Sequence[object]) -> None:
        """Read wire messages, oldest first. Items that are not objects are kept as text."""
        for number, value in enumerate(messages):
            self.where, self._silent = f"{self.container}[{number}]", True
            if not is_object(value := plain(value)):
                self.begin("user")
                self.fold(self.stray_message, value)
                continue
            message = WireObject(value)
            self.message(message)
            for path in message.unread_paths():
                self.remarks.left_out.add(f"{self.container}[]{path}")
            if self._silent:
                self.remarks.left_out.add(f"{self.container}[] that says nothing")

    def finish(self) -> tuple[list[tuple[str, Message]], ReportBuilder, str | None]:
        """Return the messages with their places, the report, and the system prompt if there is one."""
        said = [
            (
                place,
                from_fields(Message, role, tuple(blocks), 0, self._origin if role == "assistant" else None),
            )
            for place, role, blocks in self._runs
        ]
        return said, self.remarks, "\n\n".join(self._system) or None

    def begin(self, role: MessageRole, *, joins: bool = False) -> None:
        """Begin a message of this role.

        A message that `joins` continues the previous one if both come from the model, or both from its tools.
        """
        goes_on = joins and self._runs and role == self._role != "user"
        self._role = role
        self._fresh = self._fresh or not goes_on

    def note(self, kind: str, *about: str) -> None:
        """Report an oddity of the current wire message. `kind` has a `%s` for each item of `about`."""
        self._silent = False
        self.remarks.add(self.where, kind, *about)

    def say(self, block: Block) -> None:
        """Add a block. Its type may determine the role: models call and think, tools answer."""
        self._silent = False
        role = _SAID_BY.get(type(block), self._role)
        if self._fresh or self._runs[-1][1] != role:
            self._runs.append((self.where, role, []))
            self._fresh = False
        self._runs[-1][2].append(block)

    def text(self, text: str) -> None:
        """Add text. Empty text is skipped."""
        if text:
            self.say(from_fields(Text, quote(text)))

    def fold(self, label: str, value: object) -> None:
        """Add a value without a place in a conversation as labelled text, and report it."""
        self.note(f"{label} kept as text".replace("%", ""))
        self.say(Text(f"[{label}] {as_text(value)}"))

    def add_attachment(self, what: str, part: WireObject) -> None:
        """Add an attachment, or a part of an unknown type as labelled text."""
        if found := self.media(part):
            self.say(self.readable(found))
        else:
            self.fold(f"{what} of type {part.text('type')[:40]!r}", part.whole())

    def readable(self, media: Media) -> Media | Text:
        """Return an attachment, or a note in place of an unreadable one, which every provider would reject."""
        if not media.data or (damage := media.damage) is None:
            return media
        self.note("attachment of type %s left out: %s", repr(media.media_type)[:40], damage)
        return Text(
            f"[An attachment of type {media.media_type[:40]} stood here that cannot be read: {damage}.]"
        )

    def think(self, text: str, kind: str = "", state: str = "") -> None:
        """Add reasoning, sealed if the transcript has the provider's state."""
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
        """Add a tool call under its own id. Results of a call without an id are matched by tool name or by position.

        Args:
            key: The id, "" if missing.
            name: The name of the tool.
            given: The arguments.
            namespace: The namespace of the tool.
            free: Whether the tool takes text instead of arguments.
            has_name: Whether its results contain the tool's name, so that no id is needed.
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

    def _arguments(self, name: str, given: Any) -> tuple[Json, str | None]:  # Any: from a transcript
        """Return arguments as a JSON object; if they are not one, an empty object and the verbatim text."""
        value: object = given
        if given is None:
            return Json(b"{}"), None
        if isinstance(given, str):
            if parse_object(given.strip()) is not None:
                return Json(given.strip().encode() or b"{}"), None
        elif isinstance(given, Mapping):
            held = ingest(value)
            if held.marks:
                self.note("arguments of %s changed on the way in: %s", repr(name)[:80], ", ".join(held.marks))
            if held.json.startswith(b"{"):
                return held.json, None
        self.note("arguments of %s are not a JSON object; kept verbatim beside {}", repr(name)[:80])
        return Json(b"{}"), as_text(value)

    def result(
        self, key: str, content: object, media: Iterable[Media] = (), *, name: str = "", failed: bool = False
    ) -> None:
        """Add a tool result with its media. A missing result is an empty one, since the transcript has an answer.

        `name` is the tool's name if the result contains it; it distinguishes calls with the same id.
        """
        held = ingest("" if content is None else content)
        if held.marks:
            self.note("result changed on the way in: %s", ", ".join(held.marks))
        json, error = (None, held.json) if failed else (held.json, None)
        self.say(from_fields(ToolResult, result_key(key, name), json, error, None, tuple(media)))

    def pending(self, key: str, name: str = "") -> None:
        """Add a result block for a call that had started and had no result yet."""
        self.note("result of call %s had not come when the transcript was made", repr(key)[:80])
        self.say(from_fields(ToolResult, result_key(key, name), None, None, False, ()))

    # ---- contents

    def parts(self, message: WireObject) -> None:
        """Read the content of a message: a string, or a list of parts. Other values are kept as text."""
        for part in _content_parts(message, self.content):
            if isinstance(part, str):
                self.text(part)
            elif isinstance(part, WireObject):
                self.part(part)
            else:
                self.fold(self.stray_part, part)

    def spread(self, holder: WireObject, *keys: str) -> tuple[object, list[Media]]:
        """Return the content of a result and its media. A value that is not a list of parts is returned unchanged."""
        parts = [part for part in holder.each(*keys) if part is not None]
        if any(isinstance(part, WireObject) and part.text("type") for part in parts):
            return self.join_parts(parts)
        return holder.take(*keys), []

    def join_parts(self, parts: Iterable[object]) -> tuple[str, list[Media]]:
        """Return the texts of the parts, one per line, and their media; parts of an unknown kind as JSON."""
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
        """Add a part of the system prompt: a text, blocks, or a content with parts.

        After the conversation has begun, it becomes a note inside it.
        """
        content = holder.inner(*keys)
        if "parts" in content.fields:
            holder, keys = content, ("parts",)
        said = map(self._instruction, _content_parts(holder, *keys))
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
        """Return the text of a part of the system prompt; None if it has none."""
        if not isinstance(part, WireObject):
            return as_text(part)
        if isinstance(part.fields.get("text"), str):
            part.has_value("type", "text", "input_text")
            return part.text("text")
        if found := self.media(part):
            self.note("%s in the system prompt left out", found.media_type)
            return None
        return None if "cachePoint" in part.fields else as_text(part.whole())


def _content_parts(holder: WireObject, *keys: str) -> Iterable[object]:
    """Return the parts of a content. A text or any other value outside a list is a single part."""
    listed = holder.each(*keys)
    value = None if listed else holder.take(*keys)
    return listed if value is None or isinstance(value, list | tuple) else [value]


def as_text(value: object) -> str:
    """Return a value as text: a string unchanged, anything else as JSON."""
    return sanitise(value) if isinstance(value, str) else ingest(value).json.decode()


def blob(value: object) -> str:
    """Return a blob as its string in JSON. Vendors' clients represent it as bytes."""
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    return sanitise(value) if isinstance(value, str) else ""


def data_url(url: str, kind: str = "") -> Media | None:
    """Return the media that a URL contains or points to; None if the URL is empty.

    By default, the type is that in the URL, or `image/*` for a remote resource, whose type is unknown.
    """
    header, comma, data = url.partition(",")
    if comma and header.startswith("data:") and header.endswith(";base64"):
        own = header.removeprefix("data:").removesuffix(";base64")
        return Media(kind or own or "image/*", data=data)
    return Media(kind or "image/*", url=url) if url else None
