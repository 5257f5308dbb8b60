"""Claude on Vertex AI and on Bedrock's InvokeModel: what their bodies have in place of Anthropic's own.

The path names the model, and whether the answer is a stream where the body does not. The body names the version. All
other rules are those of `anthropic`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from actors.strict.rules import anthropic
from actors.strict.rules.anthropic_rules import RULES
from actors.strict.rules.base import AnthropicSettings, Json, Mode

NEWEST = "2026-10-21"
"""What Anthropic's own clients of both clouds name since version 2."""


@dataclass(frozen=True, slots=True)
class ClaudeHost:
    """One cloud.

    Args:
        version: The cloud's own `anthropic_version`; a body may name Anthropic's newest in its place.
        refused: Keys of Anthropic's own host that a body may not have.
    """

    version: str
    refused: frozenset[str]


CLAUDE_HOSTS: Mapping[str, ClaudeHost] = {
    "vertex_anthropic": ClaudeHost("vertex-2023-10-16", frozenset({"model"})),
    "bedrock_anthropic": ClaudeHost("bedrock-2023-05-31", frozenset({"model", "stream"})),
}
"""The clouds, by the name of their dialect."""


def validate(
    body: bytes, dialect: str, mode: Mode, settings: AnthropicSettings, model: str = "claude"
) -> None:
    """Walk one request body to a model that the path names.

    Raises:
        RuleBroken: At the first rule that is broken.
    """
    request, host = anthropic.parse_request(body), CLAUDE_HOSTS[dialect]
    if (version := request.get("anthropic_version")) is None:
        raise RULES["ANT-S01"].refuse(path="anthropic_version")
    if version not in (host.version, NEWEST):
        values = f"'{host.version}' or '{NEWEST}'"
        raise RULES["ANT-S03"].refuse(path="anthropic_version", values=values)
    for key in request:
        if key in host.refused:
            raise RULES["ANT-28"].refuse(path=key)
    anthropic.judge(own_form(request, model), mode, settings, size=len(body))


def own_form(request: Json, model: str) -> Json:
    """Return a request as Anthropic's own host takes it."""
    kept = {
        key: value for key, value in request.items() if key not in ("anthropic_version", "anthropic_beta")
    }
    return {"model": model, **kept}
