"""Check requests to the gateway OpenRouter against its own rules and the rules of its upstream.

Theory of operation. OpenRouter ignores unknown keys, and forwards only the keys that its upstream accepts. The rules of
the upstream apply to the forwarded request. Entries of `reasoning_details` have simulated signatures, which are bound
to the upstream, the text, and the entry's position in the list. A stream cuts a detail into fragments with the same
index, and this module merges them. Ids may have any length, because the gateway creates ids of 50 characters.
"""

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import replace

from actors.strict.rules import openai_chat
from actors.strict.rules.anthropic import cacheable_blocks, check_breakpoints, check_marked_texts
from actors.strict.rules.anthropic_rules import RULES as ANTHROPIC
from actors.strict.rules.anthropic_shapes import check_cache_mark
from actors.strict.rules.base import (
    CompatibleProfile,
    CompatibleSettings,
    Json,
    RuleBroken,
    ServerRefusal,
    ServerRule,
    dump,
    is_array,
    is_object,
    rules_by_id,
)
from actors.strict.rules.host import RequestContext, VendorHost, accept_anything
from actors.strict.rules.openai_chat import KEYS, OPENAI, without_answer_rules
from actors.strict.rules.openai_messages import MESSAGE_KEYS, PARTS
from actors.strict.rules.prompts import to_anthropic_format

RULES = rules_by_id(
    ServerRule("ORT-01", "No endpoints found that support tool use", status=404),
    ServerRule(
        "ORT-02",
        "This endpoint's maximum context length is {limit} tokens. However, you requested about {tokens} "
        "tokens. Please reduce the length of either one, or use the middle-out transform.",
    ),
    replace(ANTHROPIC["ANT-42"], id="ORT-03"),
    replace(ANTHROPIC["ANT-41"], id="ORT-04"),
    replace(ANTHROPIC["ANT-32"], id="ORT-05"),
    replace(ANTHROPIC["ANT-33"], id="ORT-06"),
    replace(ANTHROPIC["ANT-34-ttl"], id="ORT-07"),
    replace(ANTHROPIC["ANT-S03"], id="ORT-08"),
)
_UPSTREAM_RULES = frozenset({"ORT-03", "ORT-04", "ORT-05", "ORT-06", "ORT-07", "ORT-08"})
_MARKS = {"ANT-32": "ORT-05", "ANT-33": "ORT-06", "ANT-34-ttl": "ORT-07"}


_OWN_TOOLS = re.compile(
    r"openrouter:\w+|web_search(_preview)?(_\d{4}_\d{2}_\d{2})?|image_generation|file_search|mcp"
)
_TOOL_SETTINGS = frozenset({"tools", "tool_choice", "parallel_tool_calls"})
_CALL_KEYS = frozenset({"id", "type", "function", "custom"})
_VIDEO = "video_url"


def sign(text: str, index: int, settings: CompatibleSettings) -> str:
    """Return the signature of one reasoning detail.

    Args:
        text: The text of the complete detail.
        index: The index of the detail among the details of its message.
        settings: The settings of the gateway, with its upstream and secret.
    """
    payload = dump([settings.upstream, index, hashlib.sha256(text.encode()).hexdigest()[:16]])
    return base64.b64encode(_signature_mac(payload, settings) + payload).decode()


def _signature_mac(payload: bytes, settings: CompatibleSettings) -> bytes:
    return hmac.new(settings.secret, payload, hashlib.sha256).digest()


def _open_signature(signature: Json, settings: CompatibleSettings) -> list[Json] | None:
    """Return the upstream, the index and the text's digest that a signature contains; None if it is invalid."""
    try:
        raw = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError, TypeError):
        return None
    if not hmac.compare_digest(raw[:32], _signature_mac(raw[32:], settings)):
        return None
    opened: list[Json] = json.loads(raw[32:])
    return opened


def merge_fragments(details: list[Json]) -> list[dict[str, Json]]:
    """Return the complete reasoning details, with successive fragments of the same index merged."""
    whole: list[dict[str, Json]] = []
    for detail in details:
        last = whole[-1] if whole else None
        if last and "signature" not in last and "index" in detail and last.get("index") == detail["index"]:
            text = (last.get("text") or "") + (detail.get("text") or "")
            last.update({**detail, "text": text})
        else:
            whole.append({key: value for key, value in detail.items() if key != "signature" or value})
    return whole


def _check_details(request: Json, context: RequestContext) -> None:
    settings = context.settings
    if not isinstance(settings, CompatibleSettings) or settings.signatures == "trust":
        return
    messages = request["messages"]
    latest = max((at for at, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    for at, message in enumerate(messages):
        details = message.get("reasoning_details")
        if message["role"] != "assistant" or not is_array(details):
            continue
        for place, detail in enumerate(merge_fragments([item for item in details if is_object(item)])):
            _check_detail(detail, (at, place), settings, is_latest=at == latest)


def _check_detail(
    detail: dict[str, Json], position: tuple[int, int], settings: CompatibleSettings, *, is_latest: bool
) -> None:
    """Check the signature of a reasoning detail. `position` contains the index of the message and the index of the
    detail.
    """
    signature = detail.get("signature") or detail.get("data")
    if signature is None:
        return
    at, place = position
    text = str(detail.get("text") or "")
    opened = _open_signature(signature, settings)
    if opened is None or opened[0] != settings.upstream:
        raise RULES["ORT-03"].refuse(at=at, block=place)
    if opened[1:] != [place, hashlib.sha256(text.encode()).hexdigest()[:16]]:
        raise RULES["ORT-04" if is_latest else "ORT-03"].refuse(at=at, block=place)


def goes_to_anthropic(request: Json, settings: CompatibleSettings) -> bool:
    """Return True if the gateway sends a request to an Anthropic model.

    The vendor in the model's name decides. If the name contains no vendor, the upstream decides.
    """
    vendor, named, _ = request["model"].rpartition("/")
    return vendor == "anthropic" if named else settings.upstream == "Anthropic"


def _check_marks(request: Json, context: RequestContext) -> None:
    settings = context.settings
    if not isinstance(settings, CompatibleSettings) or not goes_to_anthropic(request, settings):
        return
    passed_on = to_anthropic_format(request)
    try:
        for path, block in cacheable_blocks(passed_on):
            check_cache_mark(block, path)
        for message in passed_on["messages"]:
            check_marked_texts(message)
        check_breakpoints(passed_on)
    except RuleBroken as refused:
        refusal = refused.refusal
        raise RuleBroken(replace(refusal, rule=_MARKS.get(refusal.rule, "ORT-08"))) from None


def _check_tools(request: Json, context: RequestContext) -> None:
    if request.get("tools") and not context.model_profile.tools:
        raise RULES["ORT-01"].refuse()


def with_upstream_rules(hosts: Mapping[str, VendorHost]) -> VendorHost:
    """Return OpenRouter as a host that applies the rules of its upstream's vendor in addition to its own.

    `hosts` contains the vendors' hosts by name.
    """

    def check_upstream(request: Json, context: RequestContext) -> None:
        settings = context.settings
        name = settings.upstream_vendor if isinstance(settings, CompatibleSettings) else "openai_chat"
        host = _UNKNOWN_UPSTREAM if name == "openai_chat" and _is_of_another_vendor(request) else hosts[name]
        inner = replace(context, host=host, profile=replace(context.profile, id_length=None))
        try:
            openai_chat.check_request(_to_upstream(request, host), inner, 0)
        except RuleBroken as refused:
            refusal = replace(refused.refusal, detail={"vendor": name, "error": refused.refusal.detail})
            raise RuleBroken(refusal, refused.values) from None

    return replace(OPENROUTER, checks=(_check_tools, check_upstream, _check_details, _check_marks))


def _is_of_another_vendor(request: Json) -> bool:
    """Return True if the model's name belongs to a vendor other than OpenAI."""
    vendor, named, _ = request["model"].rpartition("/")
    return bool(named) and vendor != "openai"


def _to_upstream(request: Json, host: VendorHost) -> Json:
    """Return a request as the gateway would send it to the upstream, without cache marks."""
    messages = [
        {
            key: _without_gateway_keys(key, value)
            for key, value in message.items()
            if key in host.message_keys.get(message["role"], message)
        }
        for message in request["messages"]
    ]
    kept = {key: value for key, value in request.items() if key in host.keys}
    tools = [_without_mark(tool) for tool in request.get("tools") or () if not OPENROUTER.runs_tool(tool)]
    kept = {key: value for key, value in kept.items() if tools or key not in _TOOL_SETTINGS}
    return {**kept, **({"tools": tools} if tools else {}), "messages": messages}


def _without_gateway_keys(key: str, value: Json) -> Json:
    """Return a message's value under `key` as the gateway forwards it.

    Keys of calls and parts that only the gateway accepts are removed, and a video becomes the text `(a video)`.
    """
    if not is_array(value):
        return value
    if key == "tool_calls":
        return [{name: call[name] for name in call if name in _CALL_KEYS} for call in value]
    return [
        _without_mark({"type": "text", "text": "(a video)"} if _is_video(part) else part) for part in value
    ]


def _is_video(part: Json) -> bool:
    return is_object(part) and part.get("type") == _VIDEO


def _without_mark(part: Json) -> Json:
    if not is_object(part):
        return part
    inner = {key: value for key, value in part.items() if key != "cache_control"}
    return {key: _without_mark(value) if key == "function" else value for key, value in inner.items()}


def _mark_upstream_refusal(
    refusal: ServerRefusal, request: Json, values: Mapping[str, object]
) -> ServerRefusal:
    """Add the upstream's vendor to the refusal, if the refusal concerns reasoning or cache marks for that upstream."""
    return replace(refusal, detail={"vendor": "anthropic"}) if refusal.rule in _UPSTREAM_RULES else refusal


_UNKNOWN_UPSTREAM: VendorHost = replace(without_answer_rules(OPENAI), schema=accept_anything)
"""An upstream that is known to enforce only the family's rules. Its rules about schemas are unknown."""

BEHIND_GATEWAY: VendorHost = replace(OPENAI)
"""OpenAI as an upstream, without the rules of specific models, because the gateway sends their requests to another API
of OpenAI (OAC-20)."""

OPENROUTER: VendorHost = replace(
    without_answer_rules(OPENAI),
    name="openrouter",
    rules=RULES,
    replacement_rules={"OAC-15": "ORT-02"},
    keys=KEYS
    | {"provider", "reasoning", "models", "transforms", "plugins", "usage", "top_k", "include_reasoning"},
    unknown_keys="ignore",
    message_keys={role: keys | {"reasoning", "reasoning_details"} for role, keys in MESSAGE_KEYS.items()},
    parts=PARTS
    | {role: frozenset({"text", "image_url"}) for role in ("tool", "system", "developer")}
    | {"user": PARTS["user"] | {_VIDEO}},
    schema=accept_anything,  # schemas are checked by the upstream's rules
    own_tools=_OWN_TOOLS,
    tool_keys=frozenset({"cache_control"}),
    identity=accept_anything,
    sequence=accept_anything,
    profile=CompatibleProfile(id_length=None),
    finish=_mark_upstream_refusal,
)
