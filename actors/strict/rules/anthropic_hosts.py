"""Check requests to Claude on Vertex AI and on Bedrock's InvokeModel.

The path contains the model, and the streaming flag if the body does not. The body contains the version. All
other rules are those of `anthropic`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from actors.strict.rules import anthropic
from actors.strict.rules.anthropic_rules import RULES
from actors.strict.rules.base import AnthropicSettings, Json, Mode

NEWEST = "2026-10-21"
"""The version in requests of Anthropic's clients for both clouds since version 2."""


@dataclass(frozen=True, slots=True)
class ClaudeHost:
    """A cloud that hosts Claude.

    Args:
        version: The cloud's own `anthropic_version`. Requests may also use Anthropic's newest version.
        refused: Keys that Anthropic's API accepts and this cloud rejects.
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
    """Check one request body to a model in the path.

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
    anthropic.judge(own_form(request, model), mode, settings, size=len(body))


def own_form(request: Json, model: str) -> Json:
    """Return a request in the form of Anthropic's own host."""
    kept = {
        key: value for key, value in request.items() if key not in ("anthropic_version", "anthropic_beta")
    }
    return {"model": model, **kept}
