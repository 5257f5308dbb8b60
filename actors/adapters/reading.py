"""Read a provider's transcript into messages, with one algorithm that each wire family adapts to its format.

Imported transcripts are often broken: ids are blank or repeated, and results come before their calls, twice, or without
a call. This module reads such transcripts without repairing them: calls and results keep their ids, and
`actors.core.normalize` pairs them. The report lists oddities, and counts, by path, the fields that are not imported.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from actors.adapters.wire import WireObject, as_plain_data
from actors.core.data.ingest import ingest
from actors.core.data.jsonio import Json, is_object, parse_object, quote, sanitise
from actors.core.data.record import from_fields
from actors.core.transcript.transcript import flat_name
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
from actors.core.values.identity import Binding, imported_call_id
from actors.core.values.intake import ReportBuilder

_TEXT_TYPES = ("text", "input_text", "output_text")
_ROLE_OF_BLOCK: Mapping[type[Block], MessageRole] = {
    ToolCall: "assistant",
    Thinking: "assistant",
    ToolResult: "tool",
}


class TranscriptReader:
    """Collects the messages of a transcript, and reports oddities. Each subclass defines the format of a wire family.

    The base class reads messages in Anthropic's format, and their parts in the formats of OpenAI's two protocols.
    `origin` is the binding to record in the model's messages and with their signatures.
    """

    container: ClassVar[str] = "messages"  # the key of a request body that contains the messages
    content: ClassVar[str] = "content"  # the key of a message that contains its parts
    roles: ClassVar[Mapping[str, MessageRole]] = {"user": "user", "assistant": "assistant"}
    instructors: ClassVar[Sequence[str]] = ("system",)
    stray_message: ClassVar[str] = "item that is no message"
    stray_part: ClassVar[str] = "content of an unknown kind"

    def __init__(self, origin: Binding) -> None:
        self.report: ReportBuilder = ReportBuilder()
        self._origin = origin
        self.location: str = "transcript"
        self._role: MessageRole = "user"
        self._runs: list[tuple[str, MessageRole, list[Block]]] = []
        self._is_empty = False  # whether the current message has yielded no block so far
        self._begins_message = True  # whether the next block begins a new message
        self._system: list[str] = []

    # ---- methods that a family overrides

    def read_item(self, message: WireObject, /) -> None:
        """Read one item of the transcript as a message."""
        role = message.read_text("role")
        self.begin_message(self.roles.get(role, "user"))
        self.read_message(role, message)

    def read_message(self, role: str, message: WireObject) -> None:
        """Read the content of a message, according to its role."""
        if role in self.instructors:
            self.add_instructions(message, self.content)
        elif role in self.roles:
            self.read_parts(message)
        else:
            self.add_unknown_role(message)

    def add_unknown_role(self, message: WireObject) -> None:
        """Add a message with an unknown role as text: its `content`, or the JSON of the complete message."""
        label = f"message of role {as_text(message.read_value('role'))[:40]}"
        self.add_as_text(label, message.read_text("content") or message.read_all())

    def read_part(self, part: WireObject) -> None:
        """Read one part of a message's content."""
        if (kind := part.read_text("type")) in (*_TEXT_TYPES, "refusal"):
            self.add_text(part.read_text("refusal" if kind == "refusal" else "text"))
        else:
            self.add_attachment("content part", part)

    def parse_media(self, part: WireObject) -> Media | None:
        """Return the attachment in a part, or None if the part has none. A reference to a file that the provider stores
        does not count as an attachment.
        """
        match part.read_text("type"):
            case "image_url" | "input_image":
                part.has_value("detail", "auto")
                part.read_object("image_url").has_value("detail", "auto")
                return media_from_url(
                    part.read_text("image_url") or part.read_object("image_url").read_text("url")
                )
            case "document_url":
                url = part.read_text("document_url") or part.read_object("document_url").read_text("url")
                return media_from_url(url, "application/pdf")
            case "file" | "input_file":
                file = part.read_object("file") or part
                if url := file.read_text("file_url"):
                    return Media("application/pdf", url=url)
                data = file.read_text("file_data")
                return media_from_url(data) if data.startswith("data:") else None
            case "input_audio":
                audio = part.read_object("input_audio")
                data, form = audio.read_text("data"), audio.read_text("format") or "*"
                return Media(f"audio/{form}", data) if data else None
            case _:
                return None

    def result_text(self, part: WireObject) -> str | None:
        """Return the text of one part of a result, or None if the part is not text."""
        return part.read_text("text") if part.fields.get("type") in _TEXT_TYPES else None

    # ---- collecting messages

    def read(self, messages: Sequence[object]) -> None:
        """Read the messages of a transcript, oldest first. Items that are not objects are kept as text."""
        for number, value in enumerate(messages):
            self.location, self._is_empty = f"{self.container}[{number}]", True
            if type(value) is not dict and not is_object(value := as_plain_data(value)):
                self.begin_message("user")
                self.add_as_text(self.stray_message, value)
                continue
            message = WireObject(value)
            self.read_item(message)
            for path in () if message.is_read() else message.unread_paths():
                self.report.left_out.add(f"{self.container}[]{path}")
            if self._is_empty:
                self.report.left_out.add(f"{self.container}[] (empty)")

    def finish(self) -> tuple[list[tuple[str, Message]], ReportBuilder, str | None]:
        """Return the messages with their locations, the report, and the system prompt or None."""
        said = [
            (
                place,
                from_fields(Message, role, tuple(blocks), 0, self._origin if role == "assistant" else None),
            )
            for place, role, blocks in self._runs
        ]
        return said, self.report, "\n\n".join(self._system) or None

    def begin_message(self, role: MessageRole, *, joins: bool = False) -> None:
        """Begin a message with this role.

        With `joins`, the message continues the previous message if both are from the model or both are from tools.
        """
        goes_on = joins and self._runs and role == self._role != "user"
        self._role = role
        self._begins_message = self._begins_message or not goes_on

    def note_oddity(self, template: str, *details: str) -> None:
        """Report an oddity of the current message. `template` contains a `%s` for each item of `details`."""
        self._is_empty = False
        self.report.add(self.location, template, *details)

    def add_block(self, block: Block) -> None:
        """Add a block. Calls and thinking become part of a model message, results part of a tool message, and other
        blocks part of a message with the current role.
        """
        self._is_empty = False
        role = _ROLE_OF_BLOCK.get(type(block), self._role)
        if self._begins_message or self._runs[-1][1] != role:
            self._runs.append((self.location, role, []))
            self._begins_message = False
        self._runs[-1][2].append(block)

    def add_text(self, text: str) -> None:
        """Add a text block. Empty text is skipped."""
        if text:
            self.add_block(from_fields(Text, quote(text)))

    def add_as_text(self, label: str, value: object) -> None:
        """Add a value that has no equivalent in a conversation as labelled text, and report it."""
        self.note_oddity(f"{label} kept as text".replace("%", ""))
        self.add_block(Text(f"[{label}] {as_text(value)}"))

    def add_attachment(self, label: str, part: WireObject) -> None:
        """Add the attachment in a part. A part of an unknown type becomes text, labelled with `label`."""
        if found := self.parse_media(part):
            self.add_block(self.check_readable(found))
        else:
            self.add_as_text(f"{label} of type {part.read_text('type')[:40]!r}", part.read_all())

    def check_readable(self, media: Media) -> Media | Text:
        """Return an attachment unchanged or, if it is damaged, a text that replaces it. Every provider would reject a
        damaged attachment.
        """
        if not media.data or (damage := media.damage) is None:
            return media
        self.note_oddity("attachment of type %s left out: %s", repr(media.media_type)[:40], damage)
        return Text(
            f"[An attachment of type {media.media_type[:40]} was omitted here; it cannot be read: {damage}.]"
        )

    def add_thinking(self, text: str, kind: str = "", state: str = "") -> None:
        """Add reasoning. `state` is the provider's data for the reasoning, such as a signature, and `kind` is the kind
        of that data.
        """
        seal = ProviderState(kind, quote(state), self._origin) if state else None
        if text or seal:
            self.add_block(Thinking(text, seal))

    def add_call(
        self,
        call_id: str,
        name: str,
        arguments: object,
        namespace: str = "",
        *,
        free: bool = False,
        has_name: bool = False,
    ) -> None:
        """Add a tool call with its id. The results of a call without an id are matched by tool name or by position.

        Args:
            call_id: The id, or "" if it is missing.
            name: The name of the tool.
            arguments: The arguments.
            namespace: The namespace of the tool.
            free: Whether the tool takes free text instead of arguments.
            has_name: Whether results in this format contain the tool's name. In this case, the call needs no id.
        """
        if not call_id and not has_name:
            self.note_oddity("call to %s has no id", repr(name)[:80])
        native = ProviderState("call_id", quote(call_id), self._origin) if call_id else None
        name = flat_name(namespace, name)
        if free:
            words = "" if arguments is None else as_text(arguments)
            self.add_block(ToolCall.free_form(call_id, name, words, native, namespace))
        else:
            json, raw = self._parse_arguments(name, arguments)
            raw_json = None if raw is None else quote(raw)
            self.add_block(from_fields(ToolCall, call_id, name, json, raw_json, native, namespace, False))

    def _parse_arguments(self, name: str, arguments: Any) -> tuple[Json, str | None]:  # Any: any JSON value
        """Return the arguments as a JSON object, and None. If they are not an object, return an empty object and their
        verbatim text.
        """
        value: object = arguments
        if arguments is None:
            return Json(b"{}"), None
        if isinstance(arguments, str):
            if parse_object(arguments.strip()) is not None:
                return Json(arguments.strip().encode() or b"{}"), None
        elif isinstance(arguments, Mapping):
            held = ingest(value)
            if held.marks:
                self.note_oddity(
                    "arguments of %s were changed on import: %s", repr(name)[:80], ", ".join(held.marks)
                )
            if held.json.startswith(b"{"):
                return held.json, None
        self.note_oddity(
            "arguments of %s are not a JSON object; replaced by {} and kept as raw text", repr(name)[:80]
        )
        return Json(b"{}"), as_text(value)

    def add_result(
        self,
        call_id: str,
        content: object,
        media: Iterable[Media] = (),
        *,
        name: str = "",
        failed: bool = False,
    ) -> None:
        """Add a tool result with its media. A result without content counts as an empty result, not as a missing one.

        `name` is the tool's name, if the result contains it. The name distinguishes calls with the same id.
        """
        held = ingest("" if content is None else content)
        if held.marks:
            self.note_oddity("result was changed on import: %s", ", ".join(held.marks))
        json, error = (None, held.json) if failed else (held.json, None)
        self.add_block(
            from_fields(ToolResult, imported_call_id(call_id, name), json, error, None, tuple(media))
        )

    def add_pending_result(self, call_id: str, name: str = "") -> None:
        """Add a result block for a call that had started but had no result yet."""
        self.note_oddity("call %s had no result yet when the transcript was made", repr(call_id)[:80])
        self.add_block(from_fields(ToolResult, imported_call_id(call_id, name), None, None, False, ()))

    # ---- reading contents

    def read_parts(self, message: WireObject) -> None:
        """Read the content of a message: a string, or a list of parts. Values of other types are kept as text."""
        for part in _content_parts(message, self.content):
            if isinstance(part, str):
                self.add_text(part)
            elif isinstance(part, WireObject):
                self.read_part(part)
            else:
                self.add_as_text(self.stray_part, part)

    def read_result_content(self, holder: WireObject, *keys: str) -> tuple[object, list[Media]]:
        """Return the content of a result and its media. A value that is not a list of parts is returned unchanged."""
        parts = [part for part in holder.read_list(*keys) if part is not None]
        if any(isinstance(part, WireObject) and part.read_text("type") for part in parts):
            return self.join_parts(parts)
        return holder.read_value(*keys), []

    def join_parts(self, parts: Iterable[object]) -> tuple[str, list[Media]]:
        """Return the text of the parts, one part per line, and their media.

        Parts of an unknown kind become JSON text.
        """
        texts: list[str] = []
        media: list[Media] = []
        for part in parts:
            if not isinstance(part, WireObject):
                texts.append(as_text(part))
            elif found := self.parse_media(part):
                held = self.check_readable(found)
                if isinstance(held, Media):
                    media.append(held)
                else:
                    texts.append(held.text)
            else:
                words = self.result_text(part)
                texts.append(as_text(part.read_all()) if words is None else words)
        return "\n".join(texts), media

    def add_instructions(self, holder: WireObject, *keys: str) -> None:
        """Add the value under `keys` to the system prompt: a string, a list of blocks, or an object with parts.

        If a message precedes the text, it becomes a note inside the conversation instead.
        """
        content = holder.read_object(*keys)
        if "parts" in content.fields:
            holder, keys = content, ("parts",)
        said = map(self._instruction_text, _content_parts(holder, *keys))
        text = "\n".join([words for words in said if words is not None])
        if not text:
            return
        self._is_empty = False
        if self._runs:
            self.note_oddity("system message in mid-conversation kept as a note")
            self._role = "user"
            self.add_block(Text(f"[System note] {text}"))
        else:
            self._system.append(text)

    def _instruction_text(self, part: object) -> str | None:
        """Return the text of one part of the system prompt, or None if the part has no text."""
        if not isinstance(part, WireObject):
            return as_text(part)
        if isinstance(part.fields.get("text"), str):
            part.has_value("type", "text", "input_text")
            return part.read_text("text")
        if found := self.parse_media(part):
            self.note_oddity("%s in the system prompt left out", found.media_type)
            return None
        return None if "cachePoint" in part.fields else as_text(part.read_all())


def _content_parts(holder: WireObject, *keys: str) -> Iterable[object]:
    """Return the parts of a message's content. A value that is not a list counts as a single part."""
    listed = holder.read_list(*keys)
    value = None if listed else holder.read_value(*keys)
    return listed if value is None or isinstance(value, list | tuple) else [value]


def as_text(value: object) -> str:
    """Return a string in sanitised form, and any other value as JSON text."""
    return sanitise(value) if isinstance(value, str) else ingest(value).json.decode()


def as_base64(value: object) -> str:
    """Return binary data as base64.

    Vendors' client libraries represent such data as bytes. A string is only sanitised.
    """
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    return sanitise(value) if isinstance(value, str) else ""


def media_from_url(url: str, media_type: str = "") -> Media | None:
    """Return the media that a URL contains or points to, or None if the URL is empty.

    Without `media_type`, the type is read from the URL. If the URL does not show it, the type is `image/*`.
    """
    header, comma, data = url.partition(",")
    if comma and header.startswith("data:") and header.endswith(";base64"):
        own = header.removeprefix("data:").removesuffix(";base64")
        return Media(media_type or own or "image/*", data=data)
    return Media(media_type or "image/*", url=url) if url else None
