"""Check that turns with calls contain the reasoning that the host requires.

While thinking is on, Kimi and DeepSeek refuse an assistant message with calls that has no `reasoning_content`. On their
own hosts, the field may be empty. Compatible hosts and relays require text in it, as does the mode `strict`. Google's
version of Chat Completions requires the signature of a model's first call in `extra_content`. (Google's own API has the
signature in the part with the call.)
"""

from actors.strict.rules import gemini_signatures
from actors.strict.rules.base import CompatibleSettings, Json, is_object, object_at
from actors.strict.rules.gemini_rules import RULES, SENTINELS, GeminiSettings
from actors.strict.rules.host import RequestContext, does_model_think
from actors.strict.rules.reading import parse


def check_reasoning_present(request: Json, context: RequestContext) -> None:
    """Refuse a turn that has calls but no reasoning, if the host requires reasoning and thinking is on."""
    rule = context.host.reasoning
    if rule is None or not does_model_think(request, context.model_profile):
        return
    messages: list[Json] = request["messages"]
    turns = [at for at, message in enumerate(messages) if message.get("tool_calls")]
    if context.mode == "hosted" and context.host.reasoning_scope == "open":
        turns = turns[-1:] if messages[-1]["role"] == "tool" else []
    for at in turns:
        text = messages[at].get("reasoning_content")
        if not isinstance(text, str) or (context.mode == "strict" and not text.strip()):
            raise context.host.rules[rule].refuse(f"messages[{at}].reasoning_content", at=at)


def check_call_signatures(request: Json, context: RequestContext) -> None:
    """Refuse a message whose first call has no signature, and any call with a wrong signature."""
    if not context.model_profile.signed_calls or not isinstance(context.settings, CompatibleSettings):
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
    """Return the simulated signature for a call that the model `model` made."""
    try:
        given = parse(call["function"]["arguments"].encode())
    except (KeyError, ValueError):  # the call is not a function call, or its arguments are invalid
        given = dict[str, Json]()
    arguments: dict[str, Json] = given if is_object(given) else {}
    part = {"functionCall": {"args": arguments}}
    return gemini_signatures.sign(part, GeminiSettings(model=model, secret=settings.secret))
