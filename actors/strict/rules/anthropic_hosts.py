"""Check requests to Claude on Vertex AI and on Bedrock's InvokeModel API.

The path of a request contains the model. If the body has no `stream`, the path determines whether the answer is
streamed. The body contains the API version. All other rules are in `anthropic`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from actors.strict.rules import anthropic
from actors.strict.rules.anthropic_rules import RULES
from actors.strict.rules.base import AnthropicSettings, Json, Mode

NEWEST = "2026-10-21"
"""The API version that Anthropic's client libraries for both platforms send since version 2."""


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


def validate(
    body: bytes, dialect: str, mode: Mode, settings: AnthropicSettings, model: str = "claude"
) -> None:
    """Check one request body. The model's name comes from the request's path.

    Raises:
        RuleBroken: At the first broken rule.
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
    anthropic.check_request(to_anthropic_request(request, model), mode, settings, size=len(body))


def to_anthropic_request(request: Json, model: str) -> Json:
    """Convert a cloud platform's request into the form for Anthropic's own host, with the model in the body."""
    kept = {
        key: value for key, value in request.items() if key not in ("anthropic_version", "anthropic_beta")
    }
    return {"model": model, **kept}
