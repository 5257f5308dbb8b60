"""Import a provider's wire transcript, complete or broken, as messages.

`actors.transcripts.from_wire` uses it. With a named dialect, only unambiguous marks of another dialect lead to a
rejection. Without a name, a wrong guess could turn the model's text into the user's. So each message must have the
shape of the guessed family, and a transcript that fits no family, or several, is rejected. A plain mark rejects a
transcript that is named as another family's; a hint only counts without a named dialect. The reader of the family
(`Codec.reading`) does the rest.

`read_declarations` reads the other fields of a request body: tools, limits, the model. It reads only fields that
`actors.encode` can write again. The remaining fields are counted by path, and so are a provider's own tools, which
never become functions of the client.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from actors.adapters.formats import first_misfit, is_words_alone
from actors.adapters.request import TEXT, ToolSpec
from actors.adapters.wire import Fields, WireObject, fields, items, number, plain, string
from actors.core.data.ingest import ingest
from actors.core.data.jsonio import Json, is_array
from actors.core.dialects.dialect import Dialect
from actors.core.dialects.profiles import (
    ANTHROPIC,
    BEDROCK,
    GEMINI,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    PROFILES,
    dialect,
)
from actors.core.models.rules import Family
from actors.core.transcript.projection import flat_name
from actors.core.values.content import Message
from actors.core.values.identity import Binding
from actors.core.values.intake import NameTally, ReportBuilder
from actors.errors import TranscriptError

HOLDERS = ("messages", "input", "contents")  # keys of a request body that may hold its transcript


class _Mark(NamedTuple):
    """A feature of one family, its place, and whether no other family can have it."""

    family: Family
    place: str
    is_plain: bool = True


_NAMES: Mapping[Family, Dialect] = {
    each.family: each for each in (OPENAI_CHAT, ANTHROPIC, OPENAI_RESPONSES, GEMINI, BEDROCK)
}
_BLOCKS: Mapping[str, tuple[Family, bool]] = {
    **dict.fromkeys(("tool_use", "redacted_thinking", "server_tool_use"), ("anthropic", True)),
    "tool_result": ("anthropic", False),  # without its call, it may come from another host
    **dict.fromkeys(("input_text", "output_text", "input_image", "input_file"), ("responses", False)),
    **dict.fromkeys(("image_url", "input_audio"), ("openai_chat", False)),
}
_CONVERSE = ("toolUse", "toolResult", "reasoningContent", "cachePoint", "guardContent")
_ITEMS = ("reasoning", "item_reference", "function_call_output", "custom_tool_call_output")

_FOREIGN: tuple[tuple[str, tuple[frozenset[str], ...]], ...] = (
    ("opencode", (frozenset({"info", "parts"}),)),
    ("pydantic-ai", (frozenset({"kind", "parts"}),)),
    ("Claude Code", (frozenset({"type", "message", "uuid"}),)),
    ("Codex", (frozenset({"type", "payload"}),)),
    ("Gemini CLI", (frozenset({"sessionId", "projectHash"}),)),
    ("pi", (frozenset({"type", "id", "parentId"}),)),
    ("LangChain or Copilot CLI", (frozenset({"type", "data"}), frozenset({"lc", "kwargs"}))),
    ("OpenHands", (frozenset({"kind", "source"}),)),
    ("Hermes", (frozenset({"role", "active"}),)),
    ("Continue", (frozenset({"message", "contextItems"}), frozenset({"history", "workspaceDirectory"}))),
    ("ShareGPT", (frozenset({"from", "value"}), frozenset({"conversations"}))),
    ("ATIF", (frozenset({"schema_version", "steps"}),)),
    ("Inspect", (frozenset({"eval", "samples"}),)),
    ("OpenTelemetry", (frozenset({"resourceSpans"}),)),
    ("llxprt", (frozenset({"role", "blocks"}),)),
    ("the Responses API's list of items", (frozenset({"object", "data"}),)),
)
"""Formats of other tools, by keys of the document or of each message. The error names them; they are not imported."""


def recognise(transcript: object, named: Dialect | None) -> tuple[Dialect, str]:
    """Return the named dialect, or else the only dialect that the transcript fits, with the evidence.

    Raises:
        TranscriptError: The transcript has plain marks of several dialects, or of another dialect and none of the
            named one; it is named as Gemini's but has no parts; or no dialect is named, and it fits none or several.
    """
    marks, plain_marks = list[_Mark](), dict[Family, _Mark]()
    for mark in _marks(transcript):
        if named is not None and mark.is_plain and mark.family == named.family:
            return named, ""  # other marks cannot change the result
        marks.append(mark)
        if mark.is_plain:
            plain_marks.setdefault(mark.family, mark)
    looks = [f"{_NAMES[mark.family].name} ({mark.place})" for mark in plain_marks.values()]
    if named is not None:
        if plain_marks:
            raise TranscriptError(f"The transcript looks like {looks[0]}, not {named.name}")
        if named.family == "gemini" and (place := _said_in_content(transcript)):
            raise TranscriptError(
                f"The transcript is not {named.name}: {place} has 'content', and no 'parts'"
            )
        return named, ""
    if len(looks) > 1:
        raise TranscriptError(f"The transcript looks like {' and '.join(looks)}; {_NAME_IT}")
    return _guess(transcript, list(plain_marks.values()) or marks)


def refuse_foreign(transcript: object, named: Dialect | None) -> None:
    """Reject a document in the own format of another tool. With a named dialect, messages with roles are accepted.

    Raises:
        TranscriptError: The document has such a format.
    """
    if named is not None and any("role" in message for _, message in _messages_by_place(transcript)):
        return
    document, messages = fields(transcript), [message for _, message in _messages_by_place(transcript)]
    for tool, shapes in _FOREIGN:
        for keys in shapes:
            in_all = bool(messages) and all(keys <= message.keys() for message in messages)
            if in_all or keys <= document.keys():
                raise TranscriptError(
                    f"The transcript is in the format of {tool}, which cannot be imported; {GIVE_ONE}"
                )


GIVE_ONE = f"give messages in a dialect (--from): {', '.join(PROFILES)}"
_NAME_IT = f"name its dialect (--from): {', '.join(PROFILES)}"


def _guess(transcript: object, marks: Sequence[_Mark]) -> tuple[Dialect, str]:
    """Return the one family that a transcript fits, with the evidence."""
    placed = list(_messages_by_place(transcript))
    messages = [message for _, message in placed]
    families: dict[Family, _Mark] = {mark.family: mark for mark in reversed(marks)}
    fits: list[_Mark] = []
    for family, mark in families.items():
        at = first_misfit(family, messages)
        if at is None:
            fits.append(mark)
        elif mark.is_plain:
            name, place = _NAMES[family].name, placed[at][0]
            raise TranscriptError(f"{mark.place}, but {place} is not a message of {name}; {_NAME_IT}")
    if len(fits) == 1:
        return _NAMES[fits[0].family], fits[0].place
    if not fits and all(map(is_words_alone, messages)) and first_misfit("openai_chat", messages) is None:
        return OPENAI_CHAT, "roles and words alone"
    several = " and ".join(_NAMES[mark.family].name for mark in fits)
    found = f"marks of {several}" if several else _describe(placed)
    raise TranscriptError(f"The format of the transcript is not certain: it has {found}; {_NAME_IT}")


def _describe(placed: Sequence[tuple[str, Fields]]) -> str:
    """Return a description of an ambiguous transcript, by its first message with more than a role and text."""
    odd = (each for each in placed if not is_words_alone(each[1]))
    if (place := next(odd, None)) is None:
        at = first_misfit("openai_chat", [message for _, message in placed]) or 0
        return f"the role {str(placed[at][1].get('role'))[:40]!r} in {placed[at][0]}"
    keys = ", ".join(repr(str(key)[:40]) for key in list(place[1])[:8])
    return f"{keys or 'no keys'} in {place[0]}"


def _marks(transcript: object) -> Iterator[_Mark]:
    yield from _of_body(fields(transcript))
    for place, message in _messages_by_place(transcript):
        yield from _of_message(message, place)


def _messages_by_place(transcript: object) -> Iterator[tuple[str, Fields]]:
    body = fields(transcript)
    container = next((key for key in reversed(HOLDERS) if key in body), "messages")
    for at, value in enumerate(items(body.get(container, transcript))):
        yield f"{container}[{at}]", fields(plain(value))


def _said_in_content(transcript: object) -> str | None:
    """Return the first message with `content`. Messages with `parts` would be a plain mark."""
    return next((place for place, message in _messages_by_place(transcript) if message.get("content")), None)


def _of_body(body: Fields) -> Iterator[_Mark]:
    if "contents" in body:
        yield _Mark("gemini", "it has 'contents'")
    elif "input" in body and "messages" not in body:
        yield _Mark("responses", "it has 'input'")
    for key in ("toolConfig", "inferenceConfig"):
        if key in body and "messages" in body:
            yield _Mark("converse", f"it has '{key}'")
    if "system" in body:
        yield _Mark("anthropic", "it has 'system' beside its messages", is_plain=False)


def _of_message(message: Fields, place: str) -> Iterator[_Mark]:
    role, kind = string(message.get("role")), string(message.get("type"))
    if isinstance(message.get("parts"), list | tuple):
        yield _Mark("gemini", f"{place} has 'parts'")
    if not role and (kind in _ITEMS or kind.endswith("_call")):
        yield _Mark("responses", f"{place} is a {kind[:40]} item")
    elif role in ("tool", "function") and "content" in message:
        yield _Mark("openai_chat", f"{place} has the role '{role}'", is_plain="tool_call_id" in message)
    elif role and message.get("tool_calls"):
        yield _Mark("openai_chat", f"{place} has 'tool_calls'")
    for at, value in enumerate(items(message.get("content"))):
        yield from _of_block(fields(plain(value)), f"{place}.content[{at}]")


def _of_block(block: Fields, place: str) -> Iterator[_Mark]:
    kind = string(block.get("type"))
    if kind in _BLOCKS:
        family, is_plain = _BLOCKS[kind]
        yield _Mark(family, f"{place} is a {kind} block", is_plain)
    elif kind == "thinking" and block.get("signature"):
        yield _Mark("anthropic", f"{place} is signed thinking")
    elif kind in ("image", "document") and fields(block.get("source")).get("type"):
        yield _Mark("anthropic", f"{place} is an {kind} with a source")
    elif not kind and (key := next((key for key in _CONVERSE if key in block), None)):
        yield _Mark("converse", f"{place} is a {key} block")
    elif [*block] == ["text"]:
        yield _Mark("converse", f"{place} is a text without a type", is_plain=False)


INSTRUCTIONS = ("system", "instructions", "systemInstruction", "system_instruction")
"""Keys of the system prompt in a request body."""


def read_transcript(
    transcript: object, name: str | None
) -> tuple[list[tuple[str, Message]], ReportBuilder, str | None]:
    """Read a wire transcript in its own shape. Return its messages, the import report, and the system prompt.

    Args:
        transcript: The parsed `messages` list (`input`, `contents`), or a complete request body with one.
        name: The dialect of the transcript; by default, the only one that it fits, named in the report.

    Messages of the model have the origin `imported`, so their seals are never sent to a provider as its own.

    Raises:
        TranscriptError: It is not a transcript, plainly belongs to another dialect, or fits none or several.
        UnknownTarget: The dialect is unknown.
    """
    from actors.adapters.codec import codec

    named, body = None if name is None else dialect(name), WireObject(transcript)
    refuse_foreign(transcript, named)
    messages = _messages(transcript, body)
    profile, mark = recognise(transcript, named)
    reading = codec(profile.family).reading(Binding("imported", profile.name))
    if mark:
        reading.note("read as %s: %s", profile.name, mark)
    reading.instruct(body, *INSTRUCTIONS)
    reading.read(messages)
    for path in body.unread_paths():
        reading.remarks.left_out.add(path.removeprefix("."))
    return reading.finish()


def _messages(transcript: object, body: WireObject) -> Sequence[object]:
    """Return the messages of a transcript, or of the body around it."""
    if isinstance(transcript, Mapping):
        held = next((key for key in HOLDERS if key in transcript), None)
        if held is None:
            raise TranscriptError(f"Not a transcript: an object without 'messages'; {GIVE_ONE}")
        transcript = body.take(held)
        if held == "input" and isinstance(transcript, str):
            transcript = [{"role": "user", "content": transcript}]
    if not is_array(transcript):
        raise TranscriptError(f"Not a transcript: {type(transcript).__name__}; give a list of messages")
    if transcript and not any(isinstance(plain(message), dict) for message in transcript):
        count = len(transcript)
        raise TranscriptError(f"Not a transcript: none of its {count} items is an object; {GIVE_ONE}")
    return transcript


class RequestFields(NamedTuple):
    """The fields of a body besides its transcript: the client's tools, and the model (empty if missing).

    `left_out` counts the fields that are not imported, by path.
    """

    model: str
    tools: tuple[ToolSpec, ...]
    max_tokens: int | None
    stream: bool
    left_out: tuple[tuple[str, int], ...]


def read_declarations(body: object) -> RequestFields:
    """Return the declarations of a request body; empty ones for a list of messages."""
    read, left = WireObject(body), NameTally()
    for key in (*HOLDERS, *INSTRUCTIONS):  # read by `from_wire`
        read.take(key)
    tools: list[ToolSpec] = []
    for holder in (read, read.inner("toolConfig")):
        for tool in holder.each("tools"):
            tools += _tools(tool, left)
    model, limit, stream = read.text("model"), _limit(read), read.has_value("stream", True)
    read.has_value("store", False)  # requests are never stored
    for path in read.unread_paths():
        left.add(path.removeprefix("."))
    return RequestFields(model, tuple(tools), limit, stream, left.counts())


def _limit(body: WireObject) -> int | None:
    """Return the first positive limit on the tokens of the answer."""
    inference, generation = body.inner("inferenceConfig"), body.inner("generationConfig")
    named = [(body, key) for key in ("max_tokens", "max_completion_tokens", "max_output_tokens")]
    for holder, key in (*named, (inference, "maxTokens"), (generation, "maxOutputTokens")):
        if most := number(holder.fields.get(key)):
            holder.take(key)
            return most
    return None


def _tools(tool: object, left: NameTally, namespace: str = "") -> Iterator[ToolSpec]:
    """Yield the client's tools of one entry; count entries of other kinds."""
    if not isinstance(tool, WireObject):
        left.add("tools[]")
        return
    kind = tool.text("type")
    functions = [*tool.each(*_LISTS), *filter(None, [tool.inner("toolSpec")])]
    if kind == "namespace":
        for inner in tool.each("tools"):
            yield from _tools(inner, left, tool.text("name"))
    elif functions or not (kind or "name" in tool.fields):
        for key in tool.fields:  # a server's tool is a key, often with an empty value
            if key not in (*_LISTS, "toolSpec"):
                tool.take(key)
                left.add(f"tools[].{key}")
        yield from (_function(each, "", namespace) for each in functions if isinstance(each, WireObject))
    elif kind in ("", "function", "custom"):
        told = tool.inner("function") or tool.inner("custom") or tool
        if isinstance(told.fields.get("name"), str):
            yield _function(told, kind, namespace)
    else:
        tool.whole()
        left.add(f"tools[] of type {kind[:40]!r}")


_LISTS = ("functionDeclarations", "function_declarations")


def _function(told: WireObject, kind: str, namespace: str) -> ToolSpec:
    name, about = flat_name(namespace, told.text("name")), told.text("description")
    schema = told.inner(*_SCHEMAS)
    if not schema and kind == "custom":
        return ToolSpec.free_form(name, about, _form(told.inner("format")), namespace)
    whole = (schema.inner("json") or schema).whole() or {"type": "object", "properties": {}}
    return ToolSpec(name, about, ingest(whole).json, namespace=namespace)


_SCHEMAS = ("parameters", "parametersJsonSchema", "parameters_json_schema", "input_schema", "inputSchema")


def _form(told: WireObject) -> Json:
    """Return the format of a free text. Chat Completions nests the grammar in an object of its own."""
    if not told:
        return TEXT
    grammar = told.inner("grammar")
    said = {key: value for key, value in told.whole().items() if key != "grammar"}
    return ingest({**said, **grammar.whole()}).json
