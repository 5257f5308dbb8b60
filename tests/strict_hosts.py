"""Strict provider servers for every dialect. They verify signatures, and by default bind them to their prefix.

The servers also work without a socket: `answer` takes a request and returns the response that would go over the wire.
"""

from dataclasses import replace
from urllib.parse import urlsplit

from actors.adapters.request import Request
from actors.core.values.identity import Binding
from actors.strict.loopback import HttpRequest, LoopbackAnswer
from actors.strict.rules import HOSTS
from actors.strict.rules.base import CompatibleProfile
from actors.strict.server import LoopbackServer
from actors.testing import (
    AnthropicProfile,
    AnthropicServer,
    AnthropicSettings,
    AzureServer,
    BedrockAnthropicServer,
    BedrockProfile,
    BedrockServer,
    BedrockSettings,
    CompatibleServer,
    CompatibleSettings,
    GeminiProfile,
    GeminiServer,
    GeminiSettings,
    OpenAIServer,
    ResponsesProfile,
    ResponsesServer,
    ResponsesSettings,
    Script,
    VertexAnthropicServer,
)

_THINKING = ("kimi", "deepseek")
"""Vendors whose models think by default, and whose requests must then repeat the reasoning."""
VERTEX = "/v1/projects/project-1/locations/global/publishers/google"
CLAUDE_ON_VERTEX = "/v1/projects/project-1/locations/global/publishers/anthropic"


def strict_host(
    name: str, script: Script, *, host: str = "", bound: bool = True, interleaved: bool = False
) -> LoopbackServer:
    """Return the strictest server of a dialect.

    Args:
        name: Name of the dialect.
        script: The model's turns.
        host: A prefix that keeps the ids of several servers apart.
        bound: Whether signatures are bound to their prefix.
        interleaved: Whether a model may think between tool calls. Always True if signatures are not bound.
    """
    behind = AnthropicProfile(prefix_bound=bound, interleaved=interleaved or not bound)
    match name:
        case "openai_chat":
            return OpenAIServer(script, host=host)
        case "anthropic":
            return AnthropicServer(script, settings=AnthropicSettings(behind), host=host)
        case "openai_responses":
            settings = ResponsesSettings(ResponsesProfile(prefix_bound=bound))
            return ResponsesServer(script, settings=settings, host=host)
        case "gemini" | "vertex":
            return GeminiServer(script, vertex=name == "vertex", host=host)
        case "gemini_2":
            old = GeminiSettings(GeminiProfile(signatures=False))
            return GeminiServer(script, settings=old, host=host)
        case "bedrock":
            return BedrockServer(script, settings=BedrockSettings(BedrockProfile(behind)), host=host)
        case "vertex_anthropic" | "bedrock_anthropic":
            made = VertexAnthropicServer if name == "vertex_anthropic" else BedrockAnthropicServer
            return made(script, settings=AnthropicSettings(behind), host=host)
        case "azure":
            return AzureServer(script, host=host)
        case _:
            vendors = CompatibleSettings(_profile(name))
            return CompatibleServer(script, vendor=name, settings=vendors, host=host)


def _profile(name: str) -> CompatibleProfile:
    profile = HOSTS[name].profile
    if name in _THINKING:
        return replace(profile, thinking="on")
    if name in ("vllm", "open_models"):
        return replace(profile, template="alternate_around_tools")
    return profile


def endpoint(name: str, server: LoopbackServer) -> str:
    """Return the base path of a server for the dialect of this name."""
    return {"vertex": VERTEX, "vertex_anthropic": CLAUDE_ON_VERTEX}.get(name, server._base_path)


def answer_to(server: LoopbackServer, binding: Binding, request: Request) -> LoopbackAnswer:
    """Return a server's answer to a request sent through `binding`."""
    path = urlsplit(binding.endpoint + request.path).path
    return server.answer(HttpRequest("POST", path, dict(request.headers), request.body, False))
