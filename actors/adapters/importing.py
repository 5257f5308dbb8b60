"""Import a provider's wire transcript, complete or broken, as messages.

`actors.transcripts.from_wire` calls `read_transcript`. If the caller names a dialect, the transcript is rejected only
if it has a feature that only one other family has. If the caller does not name a dialect, the family is guessed. A
wrong guess could turn the model's text into the user's, so weaker hints are considered as well, every message must have
the guessed family's message format, and a transcript that fits no family, or several, is rejected. The family's
transcript reader (`Codec.reader`) then reads the messages.

`read_declarations` reads the other fields of a request body, such as the tools, the token limit and the model. It reads
only fields that `actors.transcripts.encode` can write again, and counts the remaining fields by path. A provider's own
tools are counted, too, because they must not become functions of the client.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from actors.adapters.formats import first_misfit, has_only_text
from actors.adapters.request import TEXT, ToolSpec
from actors.adapters.wire import (
    Fields,
    WireObject,
    as_array,
    as_object,
    as_plain_data,
    as_string,
    whole_number,
)
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
from actors.core.transcript.transcript import flat_name
from actors.core.values.content import Message
from actors.core.values.identity import Binding
from actors.core.values.intake import NameCounter, ReportBuilder
from actors.errors import TranscriptError

MESSAGE_KEYS = ("messages", "input", "contents")  # keys of a request body that may contain the transcript


class _FamilyHint(NamedTuple):
    """A feature of a transcript that suggests one wire family.

    Args:
        evidence: The location and name of the feature, for error messages, such as `messages[0] has 'parts'`.
        is_unique: Whether no other family can have the feature.
    """

    family: Family
    evidence: str
    is_unique: bool = True


_DIALECTS: Mapping[Family, Dialect] = {
    each.family: each for each in (OPENAI_CHAT, ANTHROPIC, OPENAI_RESPONSES, GEMINI, BEDROCK)
}
_BLOCKS: Mapping[str, tuple[Family, bool]] = {
    **dict.fromkeys(("tool_use", "redacted_thinking", "server_tool_use"), ("anthropic", True)),
    "tool_result": ("anthropic", False),  # a result whose call is missing may come from another host
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
"""Formats of other programs, by the keys that the document or each message has. The error message names the program."""


def recognise_dialect(transcript: object, named_dialect: Dialect | None) -> tuple[Dialect, str]:
    """Return a transcript's dialect and the evidence for it. This is the named dialect, with the evidence "", or, if no
    dialect is named, the only dialect that fits.

    Raises:
        TranscriptError: The transcript clearly does not belong to the named dialect. If no dialect is named, it fits no
            dialect, or several.
    """
    hints, unique_hints = list[_FamilyHint](), dict[Family, _FamilyHint]()
    for hint in _find_hints(transcript):
        if named_dialect is not None and hint.is_unique and hint.family == named_dialect.family:
            return named_dialect, ""  # this hint confirms the named dialect, so other hints do not matter
        hints.append(hint)
        if hint.is_unique:
            unique_hints.setdefault(hint.family, hint)
    looks = [f"{_DIALECTS[hint.family].name} ({hint.evidence})" for hint in unique_hints.values()]
    if named_dialect is not None:
        if unique_hints:
            raise TranscriptError(
                f"The transcript looks like {looks[0]}, not like {named_dialect.name}; correct the named dialect"
            )
        if named_dialect.family == "gemini" and (place := _location_of_content(transcript)):
            raise TranscriptError(
                f"The transcript is not in the dialect {named_dialect.name}: {place} has 'content' instead of 'parts'"
            )
        return named_dialect, ""
    if len(looks) > 1:
        raise TranscriptError(f"The transcript looks like {' and '.join(looks)}; {_NAME_DIALECT}")
    return _guess_dialect(transcript, list(unique_hints.values()) or hints)


def reject_foreign_format(transcript: object, named_dialect: Dialect | None) -> None:
    """Reject a document in another tool's format. If a dialect is named, messages with roles are accepted.

    Raises:
        TranscriptError: The document has another tool's format. The error message names that tool.
    """
    if named_dialect is not None and any("role" in message for _, message in _located_messages(transcript)):
        return
    document, messages = as_object(transcript), [message for _, message in _located_messages(transcript)]
    for tool, shapes in _FOREIGN:
        for keys in shapes:
            in_all = bool(messages) and all(keys <= message.keys() for message in messages)
            if in_all or keys <= document.keys():
                raise TranscriptError(
                    f"The transcript is in the format of {tool}, which cannot be imported; {_PASS_MESSAGES}"
                )


_PASS_MESSAGES = f"pass messages in one of these dialects (--from): {', '.join(PROFILES)}"
_NAME_DIALECT = f"name its dialect (--from), one of: {', '.join(PROFILES)}"


def _guess_dialect(transcript: object, hints: Sequence[_FamilyHint]) -> tuple[Dialect, str]:
    """Return the only dialect that a transcript fits, with the evidence.

    Raises:
        TranscriptError: The transcript fits no dialect, or several.
    """
    placed = list(_located_messages(transcript))
    messages = [message for _, message in placed]
    families: dict[Family, _FamilyHint] = {hint.family: hint for hint in reversed(hints)}
    fits: list[_FamilyHint] = []
    for family, hint in families.items():
        at = first_misfit(family, messages)
        if at is None:
            fits.append(hint)
        elif hint.is_unique:
            name, place = _DIALECTS[family].name, placed[at][0]
            raise TranscriptError(f"{hint.evidence}, but {place} is not a message of {name}; {_NAME_DIALECT}")
    if len(fits) == 1:
        return _DIALECTS[fits[0].family], fits[0].evidence
    if not fits and all(map(has_only_text, messages)) and first_misfit("openai_chat", messages) is None:
        return OPENAI_CHAT, "roles and words alone"
    several = " and ".join(_DIALECTS[hint.family].name for hint in fits)
    found = f"features of {several}" if several else _describe_ambiguity(placed)
    raise TranscriptError(f"The format of the transcript is ambiguous: it has {found}; {_NAME_DIALECT}")


def _describe_ambiguity(located_messages: Sequence[tuple[str, Fields]]) -> str:
    """Describe why a transcript's dialect is ambiguous. The description cites the first message that contains more than
    a role and text.
    """
    odd = (each for each in located_messages if not has_only_text(each[1]))
    if (place := next(odd, None)) is None:
        at = first_misfit("openai_chat", [message for _, message in located_messages]) or 0
        return f"the role {str(located_messages[at][1].get('role'))[:40]!r} in {located_messages[at][0]}"
    keys = ", ".join(repr(str(key)[:40]) for key in list(place[1])[:8])
    return f"{keys or 'no keys'} in {place[0]}"


def _find_hints(transcript: object) -> Iterator[_FamilyHint]:
    yield from _body_hints(as_object(transcript))
    for place, message in _located_messages(transcript):
        yield from _message_hints(message, place)


def _located_messages(transcript: object) -> Iterator[tuple[str, Fields]]:
    body = as_object(transcript)
    container = next((key for key in reversed(MESSAGE_KEYS) if key in body), "messages")
    for at, value in enumerate(as_array(body.get(container, transcript))):
        yield f"{container}[{at}]", as_object(as_plain_data(value))


def _location_of_content(transcript: object) -> str | None:
    """Return the location of the first message that has `content`, or None."""
    return next((place for place, message in _located_messages(transcript) if message.get("content")), None)


def _body_hints(body: Fields) -> Iterator[_FamilyHint]:
    if "contents" in body:
        yield _FamilyHint("gemini", "it has 'contents'")
    elif "input" in body and "messages" not in body:
        yield _FamilyHint("responses", "it has 'input'")
    for key in ("toolConfig", "inferenceConfig"):
        if key in body and "messages" in body:
            yield _FamilyHint("converse", f"it has '{key}'")
    if "system" in body:
        yield _FamilyHint("anthropic", "it has 'system' next to its messages", is_unique=False)


def _message_hints(message: Fields, location: str) -> Iterator[_FamilyHint]:
    role, kind = as_string(message.get("role")), as_string(message.get("type"))
    if isinstance(message.get("parts"), list | tuple):
        yield _FamilyHint("gemini", f"{location} has 'parts'")
    if not role and (kind in _ITEMS or kind.endswith("_call")):
        yield _FamilyHint("responses", f"{location} is a {kind[:40]} item")
    elif role in ("tool", "function") and "content" in message:
        yield _FamilyHint(
            "openai_chat", f"{location} has the role '{role}'", is_unique="tool_call_id" in message
        )
    elif role and message.get("tool_calls"):
        yield _FamilyHint("openai_chat", f"{location} has 'tool_calls'")
    for at, value in enumerate(as_array(message.get("content"))):
        yield from _block_hints(as_object(as_plain_data(value)), f"{location}.content[{at}]")


def _block_hints(block: Fields, location: str) -> Iterator[_FamilyHint]:
    kind = as_string(block.get("type"))
    if kind in _BLOCKS:
        family, is_unique = _BLOCKS[kind]
        yield _FamilyHint(family, f"{location} is a {kind} block", is_unique)
    elif kind == "thinking" and block.get("signature"):
        yield _FamilyHint("anthropic", f"{location} is signed thinking")
    elif kind in ("image", "document") and as_object(block.get("source")).get("type"):
        yield _FamilyHint("anthropic", f"{location} is an {kind} with a source")
    elif not kind and (key := next((key for key in _CONVERSE if key in block), None)):
        yield _FamilyHint("converse", f"{location} is a {key} block")
    elif [*block] == ["text"]:
        yield _FamilyHint("converse", f"{location} is a text without a type", is_unique=False)


SYSTEM_PROMPT_KEYS = ("system", "instructions", "systemInstruction", "system_instruction")
"""Keys of the system prompt in a request body."""


def read_transcript(
    transcript: object, name: str | None
) -> tuple[list[tuple[str, Message]], ReportBuilder, str | None]:
    """Read a wire transcript. Return its messages with their locations, the report, and the system prompt or None.

    Args:
        transcript: The parsed list of messages (`messages`, `input` or `contents`), or a complete request body.
        name: The dialect of the transcript. By default, it is the only dialect that fits, and the report names it.

    The model's messages have the origin `imported`, so their signatures are never sent to a provider.

    Raises:
        TranscriptError: The value is not a transcript, or clearly does not belong to the named dialect. If no dialect
            is named, it fits no dialect, or several.
        UnknownTarget: The dialect is unknown.
    """
    from actors.adapters.codec import codec

    named, body = None if name is None else dialect(name), WireObject(transcript)
    reject_foreign_format(transcript, named)
    messages = _message_list(transcript, body)
    profile, evidence = recognise_dialect(transcript, named)
    reading = codec(profile.family).reader(Binding("imported", profile.name))
    if evidence:
        reading.note_oddity("read as %s: %s", profile.name, evidence)
    reading.add_instructions(body, *SYSTEM_PROMPT_KEYS)
    reading.read(messages)
    for path in body.unread_paths():
        reading.report.left_out.add(path.removeprefix("."))
    return reading.finish()


def _message_list(transcript: object, body: WireObject) -> Sequence[object]:
    """Return the messages of a transcript or request body.

    `body` wraps `transcript`, and records which keys were read.
    """
    if isinstance(transcript, Mapping):
        held = next((key for key in MESSAGE_KEYS if key in transcript), None)
        if held is None:
            raise TranscriptError(
                f"The object is not a transcript, because it has no 'messages'; {_PASS_MESSAGES}"
            )
        transcript = body.read_value(held)
        if held == "input" and isinstance(transcript, str):
            transcript = [{"role": "user", "content": transcript}]
    if not is_array(transcript):
        raise TranscriptError(
            f"A transcript must be a list of messages, not {type(transcript).__name__}; pass the list of messages"
        )
    if transcript and not any(isinstance(as_plain_data(message), dict) for message in transcript):
        count = len(transcript)
        raise TranscriptError(
            f"The list is not a transcript: none of its {count} items is an object; {_PASS_MESSAGES}"
        )
    return transcript


class RequestFields(NamedTuple):
    """The fields of a request body other than its transcript. `model` is "" if it is missing.

    `tools` are the client's tools. `left_out` counts the fields that are not imported, by path.
    """

    model: str
    tools: tuple[ToolSpec, ...]
    max_tokens: int | None
    stream: bool
    left_out: tuple[tuple[str, int], ...]


def read_declarations(body: object) -> RequestFields:
    """Return the fields of a request body other than its transcript. For a list of messages, all fields are empty."""
    read, left = WireObject(body), NameCounter()
    for key in (*MESSAGE_KEYS, *SYSTEM_PROMPT_KEYS):  # `read_transcript` reads these keys
        read.read_value(key)
    tools: list[ToolSpec] = []
    for holder in (read, read.read_object("toolConfig")):
        for tool in holder.read_list("tools"):
            tools += _client_tools(tool, left)
    model, limit, stream = read.read_text("model"), _token_limit(read), read.has_value("stream", True)
    read.has_value("store", False)  # our requests are never stored either, so nothing is lost
    for path in read.unread_paths():
        left.add(path.removeprefix("."))
    return RequestFields(model, tuple(tools), limit, stream, left.counts())


def _token_limit(body: WireObject) -> int | None:
    """Return the answer's token limit: the first positive value in the fields that any family uses for it; None without
    a limit.
    """
    inference, generation = body.read_object("inferenceConfig"), body.read_object("generationConfig")
    named = [(body, key) for key in ("max_tokens", "max_completion_tokens", "max_output_tokens")]
    for holder, key in (*named, (inference, "maxTokens"), (generation, "maxOutputTokens")):
        if most := whole_number(holder.fields.get(key)):
            holder.read_value(key)
            return most
    return None


def _client_tools(tool: object, skipped: NameCounter, namespace: str = "") -> Iterator[ToolSpec]:
    """Yield the client's tools that one entry of a tool list declares. `skipped` counts entries of other kinds."""
    if not isinstance(tool, WireObject):
        skipped.add("tools[]")
        return
    kind = tool.read_text("type")
    functions = [*tool.read_list(*_LISTS), *filter(None, [tool.read_object("toolSpec")])]
    if kind == "namespace":
        for inner in tool.read_list("tools"):
            yield from _client_tools(inner, skipped, tool.read_text("name"))
    elif functions or not (kind or "name" in tool.fields):
        for key in tool.fields:  # Google's own tools are keys, often with an empty value
            if key not in (*_LISTS, "toolSpec"):
                tool.read_value(key)
                skipped.add(f"tools[].{key}")
        yield from (_function_tool(each, "", namespace) for each in functions if isinstance(each, WireObject))
    elif kind in ("", "function", "custom"):
        told = tool.read_object("function") or tool.read_object("custom") or tool
        if isinstance(told.fields.get("name"), str):
            yield _function_tool(told, kind, namespace)
    else:
        tool.read_all()
        skipped.add(f"tools[] of type {kind[:40]!r}")


_LISTS = ("functionDeclarations", "function_declarations")


def _function_tool(declaration: WireObject, kind: str, namespace: str) -> ToolSpec:
    name, about = flat_name(namespace, declaration.read_text("name")), declaration.read_text("description")
    schema = declaration.read_object(*_SCHEMAS)
    if not schema and kind == "custom":
        return ToolSpec.free_form(name, about, _text_format(declaration.read_object("format")), namespace)
    whole = (schema.read_object("json") or schema).read_all() or {"type": "object", "properties": {}}
    return ToolSpec(name, about, ingest(whole).json, namespace=namespace)


_SCHEMAS = ("parameters", "parametersJsonSchema", "parameters_json_schema", "input_schema", "inputSchema")


def _text_format(declared: WireObject) -> Json:
    """Return the format of a tool's free text. The object in which Chat Completions nests a grammar is removed."""
    if not declared:
        return TEXT
    grammar = declared.read_object("grammar")
    said = {key: value for key, value in declared.read_all().items() if key != "grammar"}
    return ingest({**said, **grammar.read_all()}).json
