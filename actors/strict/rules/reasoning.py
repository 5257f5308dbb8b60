"""Reasoning that must come back: who checks that a call turn still has it.

Kimi and DeepSeek refuse an assistant message with calls that lacks `reasoning_content` while thinking is on.
Their hosts check that the field is there; copies and relays want text in it, so the strict mode does too. Google's copy
of the API wants the signature of a model's first call in its `extra_content`, as its own API wants it in the part.
"""

from actors.strict.rules import gemini_signatures
from actors.strict.rules.base import CompatibleSettings, Json, is_object, object_at
from actors.strict.rules.gemini_rules import RULES, SENTINELS, GeminiSettings
from actors.strict.rules.host import RequestContext, thinks
from actors.strict.rules.reading import parse


def check_present(request: Json, context: RequestContext) -> None:
    """Refuse a call turn without reasoning, if the host has a rule for it and thinking is on."""
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
    """Refuse a first call without its signature, and any call with another than its own."""
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
    """Return the signature of a call of this model's."""
    try:
        given = parse(call["function"]["arguments"].encode())
    except (KeyError, ValueError):  # a call of another kind, or arguments that are not JSON
        given = dict[str, Json]()
    arguments: dict[str, Json] = given if is_object(given) else {}
    part = {"functionCall": {"args": arguments}}
    return gemini_signatures.sign(part, GeminiSettings(model=model, secret=settings.secret))
