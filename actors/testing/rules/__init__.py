"""The strict servers' judgement without the servers: raw body in, the provider's refusal or None out.

    refusal = validate(body, "anthropic")
    assert refusal is None, refusal.message

`strict` is the union of all known rules, old wordings and strict copies included; `hosted` is what the
official host takes today. Whatever `strict` accepts, `hosted` accepts.
"""

from actors.testing.rules import anthropic, openai_chat
from actors.testing.rules.anthropic_rules import RULES as ANTHROPIC_RULES
from actors.testing.rules.anthropic_thinking import sign
from actors.testing.rules.base import (
    AnthropicProfile,
    AnthropicSettings,
    Mode,
    OpenAIProfile,
    OpenAISettings,
    Refusal,
    Refused,
    Rule,
)
from actors.testing.rules.openai_messages import RULES as OPENAI_CHAT_RULES

__all__ = [
    "ANTHROPIC_RULES",
    "OPENAI_CHAT_RULES",
    "AnthropicProfile",
    "AnthropicSettings",
    "Mode",
    "OpenAIProfile",
    "OpenAISettings",
    "Refusal",
    "Rule",
    "sign",
    "validate",
    "validate_count",
]

_OPENAI = OpenAISettings()
_ANTHROPIC = AnthropicSettings()


def validate(
    body: bytes,
    dialect: str,
    *,
    mode: Mode = "strict",
    settings: OpenAISettings | AnthropicSettings | None = None,
) -> Refusal | None:
    """Return what the provider would answer to `body` if it refused it, else None.

    Args:
        body: The request body as it would go over the wire.
        dialect: `openai_chat` or `anthropic`.
        settings: Of the dialect's own type; by default any model name, with the default profile.

    Raises:
        ValueError: Another dialect, or settings of the other one.
    """
    try:
        match dialect, settings:
            case "openai_chat", None | OpenAISettings():
                openai_chat.validate(body, mode, settings or _OPENAI)
            case "anthropic", None | AnthropicSettings():
                anthropic.validate(body, mode, settings or _ANTHROPIC)
            case _:
                raise ValueError(
                    f"No rules for dialect {dialect!r} with {type(settings).__name__}; "
                    "use 'openai_chat' with OpenAISettings or 'anthropic' with AnthropicSettings."
                )
    except Refused as refused:
        return refused.refusal
    return None


def validate_count(
    body: bytes, *, mode: Mode = "strict", settings: AnthropicSettings | None = None
) -> Refusal | None:
    """Return what Anthropic's token count would answer to `body` if it refused it, else None."""
    try:
        anthropic.validate(body, mode, settings or _ANTHROPIC, count=True)
    except Refused as refused:
        return refused.refusal
    return None
