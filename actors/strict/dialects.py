"""Create the strict server for a dialect, given the dialect's name.

    async with serve(strict_server("mistral"), strict_server("bedrock")) as (mistral, bedrock):
        ...

The server classes in `actors.testing` have more options; `strict_server` accepts the options that all of them share.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Unpack

from actors.strict.anthropic_server import AnthropicServer, BedrockAnthropicServer, VertexAnthropicServer
from actors.strict.bedrock_server import BedrockServer
from actors.strict.compatible_server import AzureServer, CompatibleServer, GroqServer, OpenRouterServer
from actors.strict.gemini_server import GeminiServer
from actors.strict.responses_server import ResponsesServer
from actors.strict.rules import DIALECTS, GeminiProfile, GeminiSettings
from actors.strict.script import ScriptSource
from actors.strict.server import LoopbackServer, OpenAIServer, ServerOptions

_SERVER_CLASSES: Mapping[str, Callable[..., LoopbackServer]] = {
    "openai_chat": OpenAIServer,
    "anthropic": AnthropicServer,
    "vertex_anthropic": VertexAnthropicServer,
    "bedrock_anthropic": BedrockAnthropicServer,
    "openai_responses": ResponsesServer,
    "gemini": GeminiServer,
    "vertex": partial(GeminiServer, vertex=True),
    "gemini_2": partial(GeminiServer, settings=GeminiSettings(GeminiProfile(signatures=False))),
    "bedrock": BedrockServer,
    "openrouter": OpenRouterServer,
    "groq": GroqServer,
    "azure": AzureServer,
}

SERVERS = DIALECTS
"""Names of the dialects that have a strict server."""


def strict_server(
    dialect: str, script: ScriptSource = None, **options: Unpack[ServerOptions]
) -> LoopbackServer:
    """Return a new strict server for a dialect. Run it with `serve`.

    Args:
        dialect: One of `SERVERS`.
        script: The model's turns, or a function from the request to a turn. By default, the model always answers `ok`.

    Raises:
        ValueError: The dialect has no strict server.
    """
    if dialect not in SERVERS:
        raise ValueError(
            f"There is no strict server for dialect {dialect!r}; use one of {', '.join(SERVERS)}"
        )
    made = _SERVER_CLASSES.get(dialect) or partial(CompatibleServer, vendor=dialect)
    return made(script, **options)
