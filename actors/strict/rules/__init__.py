"""Validate raw request bodies against the rules of the strict servers, without running a server.

    refusal = validate(body, "anthropic")
    assert refusal is None, refusal.message

The mode `strict` applies all known rules, including those of old versions and of strict compatible hosts. The mode
`hosted` applies only the official host's current rules, so it accepts every body that `strict` accepts.
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
from actors.strict.rules.responses_shapes import RULES as RESPONSES_RULES
from actors.strict.rules.responses_shapes import ResponsesProfile, ResponsesSettings

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
"""The settings of a strict server. Each family has its own settings class."""

_Validator: TypeAlias = Callable[[bytes, Mode, Any], None]  # Any: each family has its own settings class


def _vendor_validator(name: str) -> _Validator:
    return lambda body, mode, settings: compatible.validate(body, name, mode, settings)


def _cloud_validator(name: str) -> _Validator:
    return lambda body, mode, settings: anthropic_hosts.validate(body, name, mode, settings)


_HOSTS: Mapping[str, tuple[ServerSettings, _Validator]] = {
    "openai_chat": (OpenAISettings(), openai_chat.validate),
    "anthropic": (AnthropicSettings(), anthropic.validate),
    **{name: (AnthropicSettings(), _cloud_validator(name)) for name in CLAUDE_HOSTS},
    "openai_responses": (ResponsesSettings(), responses.validate),
    "gemini": (GeminiSettings(), gemini.validate),
    "vertex": (GeminiSettings(vertex=True), gemini.validate),
    "gemini_2": (GeminiSettings(GeminiProfile(signatures=False, json_beside_tools=False)), gemini.validate),
    "bedrock": (BedrockSettings(), bedrock.validate),
    **{name: (CompatibleSettings(), _vendor_validator(name)) for name in HOSTS},
}

DIALECTS = tuple(_HOSTS)
"""Names of the dialects for which this package has rules."""


def validate(
    body: bytes, dialect: str, *, mode: Mode = "strict", settings: ServerSettings | None = None
) -> ServerRefusal | None:
    """Return the refusal that the provider would send for a body, or None if the provider would accept it.

    Args:
        body: The request body, as sent over the wire.
        dialect: One of `DIALECTS`.
        mode: `strict` for all known rules, `hosted` for the rules of the official host.
        settings: Settings of the class that the dialect uses. By default, any model name is accepted, with the default
            profile.

    Raises:
        ValueError: The dialect is unknown, or the settings belong to another dialect.
    """
    if dialect not in _HOSTS:
        raise ValueError(f"There are no rules for dialect {dialect!r}; use one of {', '.join(DIALECTS)}.")
    usual, walk = _HOSTS[dialect]
    if settings is not None and type(settings) is not type(usual):
        raise ValueError(
            f"Dialect {dialect!r} requires settings of type {type(usual).__name__}, not {type(settings).__name__}; "
            f"pass {type(usual).__name__} or omit the settings"
        )
    return refusal_of(lambda: walk(body, mode, settings or usual))


def validate_count(
    body: bytes, *, mode: Mode = "strict", settings: AnthropicSettings | None = None
) -> ServerRefusal | None:
    """Return the refusal that Anthropic's token count endpoint would send for a body, or None if it would accept the
    body.
    """
    return refusal_of(lambda: anthropic.validate(body, mode, settings or AnthropicSettings(), count=True))
