"""Check requests to AWS Bedrock Converse: Bedrock's own rules, and the order of all checks.

The order is: body, unknown keys, values, tools, system. After that come each message (shape, ids, blank text), all
documents, the sequence, the results of calls, required tool declarations, and the context window. The rules of the
model's vendor (`bedrock_upstream`) come last.
"""

from collections.abc import Iterator
from itertools import pairwise

from actors.strict.rules import bedrock_upstream
from actors.strict.rules.base import Json, Mode, is_object
from actors.strict.rules.bedrock_rules import RULES, BedrockProfile, BedrockSettings
from actors.strict.rules.bedrock_shapes import MESSAGE, REQUEST, WALK, MessageContext
from actors.strict.rules.reading import cached_result, key_of_check, parse, unchecked_items

_MAX_DOCUMENTS = 5


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
        bedrock_upstream.check(request, mode, profile.upstream, settings)


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
