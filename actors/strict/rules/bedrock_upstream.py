"""Apply the rules of the model's vendor to a Bedrock request.

Bedrock checks its own rules, converts the request to the vendor's format, and forwards the vendor's refusals. So this
module converts the request, and checks its reasoning and the positions of its results against the rules of Anthropic
Messages.
"""

from collections.abc import Callable, Iterable, Sequence

from actors.strict.rules import anthropic
from actors.strict.rules.anthropic_thinking import sign
from actors.strict.rules.base import (
    AnthropicProfile,
    AnthropicSettings,
    Json,
    Mode,
    RuleBroken,
    dump,
    object_at,
)
from actors.strict.rules.bedrock_rules import RULES, BedrockSettings
from actors.strict.rules.reading import cached_result, parse

_SAMPLING = {"temperature": "temperature", "topP": "top_p", "stopSequences": "stop_sequences"}
_MIMES = {"pdf": "application/pdf", "txt": "text/plain"}


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
    """Convert the answer format. Bedrock expects its schema as a string, the vendor as an object."""
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
