"""Check requests to AWS Bedrock Converse against Bedrock's own rules, and then against the rules of the model's vendor.

The order is: body, unknown keys, values, tools, system. Then follow each message (shape, ids, blank text), all
documents, the sequence, the results of calls, required tool declarations, and the context window. The rules of the
model's vendor come last.

Bedrock checks its own rules, converts the request to the vendor's format, and forwards the vendor's refusals. So this
module converts the request, and checks its reasoning and the positions of its results against the rules of Anthropic
Messages.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from actors.strict.rules import anthropic
from actors.strict.rules.anthropic_thinking import sign
from actors.strict.rules.base import (
    AnthropicProfile,
    AnthropicSettings,
    Json,
    Mode,
    RuleBroken,
    dump,
    is_object,
    object_at,
)
from actors.strict.rules.bedrock_rules import RULES, BedrockProfile, BedrockSettings
from actors.strict.rules.bedrock_shapes import MESSAGE, REQUEST, WALK, MessageContext
from actors.strict.rules.reading import cached_result, key_of_check, parse, unchecked_items

_MAX_DOCUMENTS = 5
_SAMPLING = {"temperature": "temperature", "topP": "top_p", "stopSequences": "stop_sequences"}
_MIMES = {"pdf": "application/pdf", "txt": "text/plain"}


def validate(body: bytes, mode: Mode, settings: BedrockSettings) -> None:
    """Check one request body.

    Raises:
        RuleBroken: At the first broken rule.
    """
    request = _parse_body(body)
    profile = _profile_of(settings)
    WALK.check(request, REQUEST, "", profile)
    messages = request["messages"]
    for at, message in unchecked_items(messages, key_of_check("BED message", profile.media)):
        role = message.get("role") if is_object(message) else None
        WALK.check(message, MESSAGE, f"messages/{at}", MessageContext(profile, role))
    attached = [held for message in messages for held in cached_result(_attachments_of, message)]
    _check_documents([value for kind, value in attached if kind == "document"])
    _check_sequence(messages)
    if "toolConfig" not in request and any(cached_result(_uses_tools, message) for message in messages):
        raise RULES["BED-03"].refuse()
    if profile.context_tokens is not None and len(body) // 4 > profile.context_tokens:
        raise RULES["BED-12"].refuse()
    _check_attachment_count([kind for kind, _ in attached], profile.attachments)
    if profile.upstream is not None:
        check(request, mode, profile.upstream, settings)


def _parse_body(body: bytes) -> dict[str, Json]:
    try:
        request = parse(body)
    except ValueError as why:
        raise RULES["BED-S05"].refuse(why=why) from why
    parsed: dict[str, Json] = WALK.require_type(request, dict, "")
    return parsed


def _profile_of(settings: BedrockSettings) -> BedrockProfile:
    if settings.models is None:
        return settings.profile
    if settings.model not in settings.models:
        raise RULES["BED-14"].refuse()
    return settings.models[settings.model]


def _uses_tools(message: Json) -> bool:
    return any("toolUse" in block or "toolResult" in block for block in message["content"])


def _attachments_of(message: Json) -> list[tuple[str, Json]]:
    return list(_attachments(message["content"]))


def _attachments(content: list[Json]) -> Iterator[tuple[str, Json]]:
    """Yield (kind, value) for each image and document in a message, including attachments inside tool results."""
    for block in content:
        ((kind, value),) = block.items()
        if kind in ("image", "document"):
            yield kind, value
        elif kind == "toolResult":
            yield from _attachments(value["content"])


def _check_documents(documents: list[Json]) -> None:
    if len(documents) > _MAX_DOCUMENTS:
        raise RULES["BED-16"].refuse(most=_MAX_DOCUMENTS)
    if len({document["name"] for document in documents}) < len(documents):
        raise RULES["BED-15"].refuse()


def _check_attachment_count(kinds: list[str], limit: int | None) -> None:
    images, documents = kinds.count("image"), kinds.count("document")
    if limit is not None and images + documents > limit:
        raise RULES["BED-17"].refuse(images=images, documents=documents, most=limit)


def _check_sequence(messages: list[Json]) -> None:
    if not messages or messages[0]["role"] != "user":
        raise RULES["BED-07"].refuse()
    open_calls: list[str] = []
    for at, message in enumerate(messages):
        given = cached_result(_call_ids, message, "toolResult")
        if missing := [call for call in open_calls if call not in given]:
            raise RULES["BED-01"].refuse(at=at, ids=", ".join(missing))
        if len(given) > len(open_calls):
            raise RULES["BED-02"].refuse(at=at)
        open_calls = cached_result(_call_ids, message, "toolUse")
    if open_calls:
        raise RULES["BED-01"].refuse(at=len(messages), ids=", ".join(open_calls))
    if any(before["role"] == message["role"] for before, message in pairwise(messages)):
        raise RULES["BED-06"].refuse()


def _call_ids(message: Json, block_type: str) -> list[str]:
    """Return the call ids of a message's blocks of this type: `toolUse` or `toolResult`."""
    return [block[block_type]["toolUseId"] for block in message["content"] if block_type in block]


def check(request: Json, mode: Mode, profile: AnthropicProfile, settings: BedrockSettings) -> None:
    """Check a request against the vendor's rules.

    Raises:
        RuleBroken: The vendor refuses the request. The refusal contains the vendor's message (BED-10).
    """
    try:
        anthropic.check_request(to_vendor(request, settings), mode, _vendor_settings(settings, profile))
    except RuleBroken as refused:
        raise RULES["BED-10"].refuse(text=refused.refusal.message) from refused


def sign_reasoning(
    request: Json, produced: Sequence[Json], text: str, settings: BedrockSettings, mode: Mode
) -> str:
    """Return the signature of a reasoning block.

    Args:
        request: The request that the response answers, in Bedrock's format.
        produced: The blocks of the response before the reasoning block, in Bedrock's format.
        text: The text of the reasoning.
        settings: The settings of the account.
        mode: The mode of the host.
    """
    blocks = [block for made in produced for block in _to_vendor_block(made)]
    return sign(
        to_vendor(request, settings), blocks, text, _vendor_settings(settings, AnthropicProfile()), mode
    )


def _vendor_settings(settings: BedrockSettings, profile: AnthropicProfile) -> AnthropicSettings:
    return AnthropicSettings(
        profile,
        account=settings.organisation,
        secret=settings.secret,
        signatures=settings.signatures,
        betas=frozenset({"thinking-binding-controls-2026-08-01"}),
    )


def to_vendor(request: Json, settings: BedrockSettings) -> Json:
    """Return a Bedrock request converted to the format of Anthropic Messages, including cache marks."""
    inference = object_at(request, "inferenceConfig")
    body: Json = {"model": settings.model, "max_tokens": inference.get("maxTokens", 4096)}
    for own, name in _SAMPLING.items():
        if own in inference:
            body[name] = inference[own]
    body |= object_at(request, "additionalModelRequestFields")
    asked = object_at(request, "outputConfig")
    form = object_at(object_at(asked, "textFormat"), "structure").get("jsonSchema")
    config = {"effort": asked.get("effort"), "format": form and _to_vendor_format(form)}
    if any(config.values()):
        body["output_config"] = config
    if system := _to_vendor_list(request.get("system") or (), _to_vendor_block):
        body["system"] = system
    body |= _to_vendor_tools(object_at(request, "toolConfig"))
    body["messages"] = [cached_result(_to_vendor_message, message) for message in request["messages"]]
    return body


def _to_vendor_message(message: Json) -> Json:
    return {"role": message["role"], "content": _to_vendor_list(message["content"], _to_vendor_block)}


def _to_vendor_format(setting: Json) -> Json:
    """Convert the answer format. Bedrock expects the schema as a string, the vendor expects an object."""
    return {"type": "json_schema", "schema": parse(setting["schema"].encode())}


def _to_vendor_tools(config: Json) -> Json:
    tools = _to_vendor_list(config.get("tools") or (), _to_vendor_tool)
    if not tools:
        return {}
    choice = config.get("toolChoice")
    if not choice:
        return {"tools": tools}
    ((kind, value),) = choice.items()
    return {"tools": tools, "tool_choice": {"type": kind, **value}}


def _to_vendor_list(blocks: Iterable[Json], convert: Callable[[Json], Iterable[Json]]) -> list[Json]:
    """Return blocks in the vendor's format. A `cachePoint` becomes the `cache_control` key of the previous block."""
    made: list[Json] = []
    for block in blocks:
        if (mark := block.get("cachePoint")) is None:
            made += convert(block)
        elif made:
            ttl = {"ttl": mark["ttl"]} if "ttl" in mark else {}
            made[-1] = {**made[-1], "cache_control": {"type": "ephemeral", **ttl}}
    return made


def _to_vendor_tool(tool: Json) -> Iterable[Json]:
    if (spec := tool.get("toolSpec")) is not None:
        told = {"description": spec["description"]} if "description" in spec else {}
        yield {"name": spec["name"], **told, "input_schema": spec["inputSchema"]["json"]}


def _to_vendor_block(block: Json) -> Iterable[Json]:
    """Yield a block in the vendor's format. Blocks without an equivalent are omitted."""
    ((kind, value),) = block.items()
    match kind:
        case "text":
            yield _to_vendor_text_block(block)
        case "toolUse":
            yield {
                "type": "tool_use",
                "id": _to_vendor_id(value["toolUseId"]),
                "name": value["name"],
                "input": value["input"],
            }
        case "toolResult":
            failed = {"is_error": True} if value.get("status") == "error" else {}
            content = [made for part in value["content"] for made in _to_vendor_part(part)]
            yield {
                "type": "tool_result",
                "tool_use_id": _to_vendor_id(value["toolUseId"]),
                "content": content,
                **failed,
            }
        case "reasoningContent":
            yield _to_vendor_thinking_block(value)
        case "image" | "document":
            yield _to_vendor_media_block(kind, value)
        case _:
            return


def _to_vendor_part(part: Json) -> Iterable[Json]:
    """Yield a part of a tool result in the vendor's format."""
    if "json" in part:
        yield {"type": "text", "text": dump(part["json"]).decode()}
    else:
        yield from _to_vendor_block(part)


def _to_vendor_text_block(block: Json) -> Json:
    return {"type": "text", "text": block["text"]}


def _to_vendor_id(call_id: str) -> str:
    """Return a call id without the characters that the vendor does not accept."""
    return call_id.replace(".", "_2E").replace(":", "_3A")


def _to_vendor_thinking_block(value: Json) -> Json:
    if "redactedContent" in value:
        return {"type": "redacted_thinking", "data": value["redactedContent"]}
    text = value["reasoningText"]
    return {"type": "thinking", "thinking": text["text"], "signature": text.get("signature", "")}


def _to_vendor_media_block(kind: str, value: Json) -> Json:
    media_type = (
        f"image/{value['format']}" if kind == "image" else _MIMES.get(value.get("format"), "text/plain")
    )
    data = value["source"].get("bytes", "")
    return {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}}
