"""Validate raw request bodies against the rules of the strict servers, without running a server.

    refusal = validate(body, "anthropic")
    assert refusal is None, refusal.message

The mode `strict` applies all known rules, including those of old versions and of strict compatible hosts. The mode
`hosted` applies only the official host's current rules, so it accepts every body that `strict` accepts.

Claude on Vertex AI and on Bedrock's InvokeModel API has the rules of `anthropic`, with two differences. First, the
request's path contains the model and, if the body has no `stream`, determines whether the answer is streamed. Second,
the body contains the API version.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from actors.strict.rules import anthropic, bedrock, gemini, openai_chat, responses
from actors.strict.rules.anthropic_rules import RULES as ANTHROPIC_RULES
from actors.strict.rules.anthropic_thinking import sign
from actors.strict.rules.base import (
    AnthropicProfile,
    AnthropicSettings,
    CompatibleProfile,
    CompatibleSettings,
    Json,
    Mode,
    OpenAIProfile,
    OpenAISettings,
    ServerRefusal,
    ServerRule,
    refusal_of,
)
from actors.strict.rules.bedrock_rules import RULES as BEDROCK_RULES
from actors.strict.rules.bedrock_rules import BedrockProfile, BedrockSettings
from actors.strict.rules.gemini_rules import RULES as GEMINI_RULES
from actors.strict.rules.gemini_rules import GeminiProfile, GeminiSettings
from actors.strict.rules.host import VendorHost
from actors.strict.rules.mistral import MISTRAL
from actors.strict.rules.openai_messages import RULES as OPENAI_CHAT_RULES
from actors.strict.rules.openrouter import BEHIND_GATEWAY, with_upstream_rules
from actors.strict.rules.reasoning_vendors import DEEPSEEK, KIMI
from actors.strict.rules.responses_shapes import RULES as RESPONSES_RULES
from actors.strict.rules.responses_shapes import ResponsesProfile, ResponsesSettings
from actors.strict.rules.self_hosted import LLAMA_CPP, OLLAMA, OPEN_MODELS, VLLM
from actors.strict.rules.vendors import AZURE, GLM, GROQ, MINIMAX, OPENAI_COMPATIBLE, QWEN, XAI

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

_OWN_WALKS = (MISTRAL, KIMI, DEEPSEEK)
_SAME_WALK = (OPENAI_COMPATIBLE, XAI, QWEN, GLM, MINIMAX, GROQ, VLLM, OPEN_MODELS, AZURE, LLAMA_CPP, OLLAMA)
_DIRECT: dict[str, VendorHost] = {host.name: host for host in (*_OWN_WALKS, *_SAME_WALK)}
HOSTS: dict[str, VendorHost] = {
    **_DIRECT,
    "openrouter": with_upstream_rules({**_DIRECT, BEHIND_GATEWAY.name: BEHIND_GATEWAY}),
}
"""The rules and features of each vendor, by the name of its dialect."""
COMPATIBLE_RULES: dict[str, dict[str, ServerRule]] = {name: dict(host.rules) for name, host in HOSTS.items()}
"""The rules of each vendor, by dialect name and rule id."""
NEWEST = "2026-10-21"
"""The API version that Anthropic's client libraries for both platforms send since version 2."""
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


def validate_compatible(body: bytes, dialect: str, mode: Mode, settings: CompatibleSettings) -> None:
    """Check one request body against one vendor's rules.

    Raises:
        RuleBroken: At the first broken rule, with the vendor's error message.
    """
    openai_chat.validate(body, mode, settings, HOSTS[dialect])


@dataclass(frozen=True, slots=True)
class ClaudeHost:
    """The request rules of a cloud platform that hosts Claude.

    Args:
        version: The platform's own `anthropic_version`. Requests may use Anthropic's newest version instead.
        refused: Keys that Anthropic's API accepts but this platform rejects.
    """

    version: str
    refused: frozenset[str]


CLAUDE_HOSTS: Mapping[str, ClaudeHost] = {
    "vertex_anthropic": ClaudeHost("vertex-2023-10-16", frozenset({"model"})),
    "bedrock_anthropic": ClaudeHost("bedrock-2023-05-31", frozenset({"model", "stream"})),
}
"""The cloud platforms, by the name of their dialect."""


def validate_claude(
    body: bytes, dialect: str, mode: Mode, settings: AnthropicSettings, model: str = "claude"
) -> None:
    """Check one request to Claude on a cloud platform. The model's name comes from the request's path.

    Raises:
        RuleBroken: At the first broken rule.
    """
    request, host = anthropic.parse_request(body), CLAUDE_HOSTS[dialect]
    if (version := request.get("anthropic_version")) is None:
        raise ANTHROPIC_RULES["ANT-S01"].refuse(path="anthropic_version")
    if version not in (host.version, NEWEST):
        values = f"'{host.version}' or '{NEWEST}'"
        raise ANTHROPIC_RULES["ANT-S03"].refuse(path="anthropic_version", values=values)
    for key in request:
        if key in host.refused:
            raise ANTHROPIC_RULES["ANT-28"].refuse(path=key)
    anthropic.check_request(to_anthropic_request(request, model), mode, settings, size=len(body))


def to_anthropic_request(request: Json, model: str) -> Json:
    """Convert a cloud platform's request into the form for Anthropic's own host, with the model in the body."""
    kept = {
        key: value for key, value in request.items() if key not in ("anthropic_version", "anthropic_beta")
    }
    return {"model": model, **kept}


def _vendor_validator(name: str) -> _Validator:
    return lambda body, mode, settings: validate_compatible(body, name, mode, settings)


def _cloud_validator(name: str) -> _Validator:
    return lambda body, mode, settings: validate_claude(body, name, mode, settings)


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
    """Return the refusal that Anthropic's token count endpoint would send for a body, or None if the body is valid."""
    return refusal_of(lambda: anthropic.validate(body, mode, settings or AnthropicSettings(), count=True))
