"""The strict servers' judgement without the servers: raw body in, the provider's refusal or None out.

    refusal = validate(body, "anthropic")
    assert refusal is None, refusal.message

`strict` is the union of all known rules, old wordings and strict copies included; `hosted` is what the
official host takes today. Whatever `strict` accepts, `hosted` accepts.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from actors.strict.rules import (
    anthropic,
    anthropic_hosts,
    bedrock,
    compatible,
    gemini,
    openai_chat,
    responses,
)
from actors.strict.rules.anthropic_hosts import CLAUDE_HOSTS
from actors.strict.rules.anthropic_rules import RULES as ANTHROPIC_RULES
from actors.strict.rules.anthropic_thinking import sign
from actors.strict.rules.base import (
    AnthropicProfile,
    AnthropicSettings,
    CompatibleProfile,
    CompatibleSettings,
    Mode,
    OpenAIProfile,
    OpenAISettings,
    ServerRefusal,
    ServerRule,
    refusal_of,
)
from actors.strict.rules.bedrock_rules import RULES as BEDROCK_RULES
from actors.strict.rules.bedrock_rules import BedrockProfile, BedrockSettings
from actors.strict.rules.compatible import COMPATIBLE_RULES, HOSTS
from actors.strict.rules.gemini_rules import RULES as GEMINI_RULES
from actors.strict.rules.gemini_rules import GeminiProfile, GeminiSettings
from actors.strict.rules.openai_messages import RULES as OPENAI_CHAT_RULES
from actors.strict.rules.responses_rules import RULES as RESPONSES_RULES
from actors.strict.rules.responses_rules import ResponsesProfile, ResponsesSettings

__all__ = [
    "ANTHROPIC_RULES",
    "BEDROCK_RULES",
    "COMPATIBLE_RULES",
    "DIALECTS",
    "GEMINI_RULES",
    "OPENAI_CHAT_RULES",
    "RESPONSES_RULES",
    "AnthropicProfile",
    "AnthropicSettings",
    "BedrockProfile",
    "BedrockSettings",
    "CompatibleProfile",
    "CompatibleSettings",
    "GeminiProfile",
    "GeminiSettings",
    "Mode",
    "OpenAIProfile",
    "OpenAISettings",
    "ResponsesProfile",
    "ResponsesSettings",
    "ServerRefusal",
    "ServerRule",
    "ServerSettings",
    "sign",
    "validate",
    "validate_count",
]

ServerSettings: TypeAlias = (
    OpenAISettings
    | AnthropicSettings
    | ResponsesSettings
    | GeminiSettings
    | BedrockSettings
    | CompatibleSettings
)
"""What a host takes, in the words of its family."""

_Walk: TypeAlias = Callable[[bytes, Mode, Any], None]  # Any: each takes its own settings


def _vendor(name: str) -> _Walk:
    return lambda body, mode, settings: compatible.validate(body, name, mode, settings)


def _cloud(name: str) -> _Walk:
    return lambda body, mode, settings: anthropic_hosts.validate(body, name, mode, settings)


_HOSTS: Mapping[str, tuple[ServerSettings, _Walk]] = {
    "openai_chat": (OpenAISettings(), openai_chat.validate),
    "anthropic": (AnthropicSettings(), anthropic.validate),
    **{name: (AnthropicSettings(), _cloud(name)) for name in CLAUDE_HOSTS},
    "openai_responses": (ResponsesSettings(), responses.validate),
    "gemini": (GeminiSettings(), gemini.validate),
    "vertex": (GeminiSettings(vertex=True), gemini.validate),
    "gemini_2": (GeminiSettings(GeminiProfile(signatures=False, json_beside_tools=False)), gemini.validate),
    "bedrock": (BedrockSettings(), bedrock.validate),
    **{name: (CompatibleSettings(), _vendor(name)) for name in HOSTS},
}

DIALECTS = tuple(_HOSTS)
"""Names of the dialects that have rules."""


def validate(
    body: bytes, dialect: str, *, mode: Mode = "strict", settings: ServerSettings | None = None
) -> ServerRefusal | None:
    """Return what the provider would answer to `body` if it refused it, else None.

    Args:
        body: The request body as it would go over the wire.
        dialect: One of `DIALECTS`.
        settings: Of the dialect's own type; by default any model name, with the default profile.

    Raises:
        ValueError: Another dialect, or settings of another one.
    """
    if dialect not in _HOSTS:
        raise ValueError(f"No rules for dialect {dialect!r}; there are {', '.join(DIALECTS)}.")
    usual, walk = _HOSTS[dialect]
    if settings is not None and type(settings) is not type(usual):
        raise ValueError(
            f"Dialect {dialect!r} takes {type(usual).__name__}, not {type(settings).__name__}; give those, or none."
        )
    return refusal_of(lambda: walk(body, mode, settings or usual))


def validate_count(
    body: bytes, *, mode: Mode = "strict", settings: AnthropicSettings | None = None
) -> ServerRefusal | None:
    """Return what Anthropic's token count would answer to `body` if it refused it, else None."""
    return refusal_of(lambda: anthropic.validate(body, mode, settings or AnthropicSettings(), count=True))
