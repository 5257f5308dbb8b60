"""Check the reasoning that turns with calls must contain.

Kimi and DeepSeek refuse an assistant message with calls that lacks `reasoning_content` while thinking is on.
Their hosts require the field; copies and relays require text in it, so the strict mode does too. Google's copy
of the API requires the signature of a model's first call in `extra_content`, as its own API does in the part.
"""

from actors.strict.rules import gemini_signatures
from actors.strict.rules.base import CompatibleSettings, Json, is_object, object_at
from actors.strict.rules.gemini_rules import RULES, SENTINELS, GeminiSettings
from actors.strict.rules.host import RequestContext, thinks
from actors.strict.rules.reading import parse


def check_present(request: Json, context: RequestContext) -> None:
    """Refuse a turn with calls and without reasoning, if the host has a rule for it and thinking is on."""
    rule = context.host.reasoning
    if rule is None or not thinks(request, context.model):
        return
    messages: list[Json] = request["messages"]
    turns = [at for at, message in enumerate(messages) if message.get("tool_calls")]
    if context.mode == "hosted" and context.host.reasoning_scope == "open":
        turns = turns[-1:] if messages[-1]["role"] == "tool" else []
    for at in turns:
        text = messages[at].get("reasoning_content")
        if not isinstance(text, str) or (context.mode == "strict" and not text.strip()):
            raise context.host.rules[rule].refuse(f"messages[{at}].reasoning_content", at=at)


def check_signed(request: Json, context: RequestContext) -> None:
    """Refuse a first call without a signature, and any call with a wrong one."""
    if not context.model.signed_calls or not isinstance(context.settings, CompatibleSettings):
        return
    for at, message in enumerate(request["messages"]):
        for number, call in enumerate(message.get("tool_calls") or ()):
            given = object_at(object_at(call, "extra_content"), "google").get("thought_signature")
            if not number and not given:
                raise RULES["GEM-04"].refuse(name=call.get("function", {}).get("name"), position=at + 1)
            own = signature(call, request["model"], context.settings)
            if (
                context.settings.signatures == "verify"
                and given
                and given != own
                and (number or given not in SENTINELS)
            ):
                raise RULES["GEM-05"].refuse()


def signature(call: Json, model: str, settings: CompatibleSettings) -> str:
    """Return the signature of a call of this model."""
    try:
        given = parse(call["function"]["arguments"].encode())
    except (KeyError, ValueError):  # a call of another kind, or invalid arguments
        given = dict[str, Json]()
    arguments: dict[str, Json] = given if is_object(given) else {}
    part = {"functionCall": {"args": arguments}}
    return gemini_signatures.sign(part, GeminiSettings(model=model, secret=settings.secret))
