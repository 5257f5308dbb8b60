"""Tools for tests and demonstrations: strict servers, simulation and stress tests.

A strict server refuses what the real provider refuses. Names are imported when they are first used, so importing this
package costs little.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.strict.anthropic_server import AnthropicServer
    from actors.strict.bedrock_server import BedrockServer
    from actors.strict.cache import PromptCache
    from actors.strict.claude_servers import BedrockAnthropicServer, VertexAnthropicServer
    from actors.strict.compatible_server import (
        AzureServer,
        CompatibleServer,
        DeepSeekServer,
        GroqServer,
        KimiServer,
        MistralServer,
        OpenRouterServer,
    )
    from actors.strict.dialects import SERVERS, strict_server
    from actors.strict.faults import (
        OVERLOADED,
        QUOTA,
        RATE_LIMITED,
        SERVER_ERROR,
        Disconnect,
        ErrorInStream,
        Fault,
        Flood,
        Garbage,
        MalformedEvent,
        Reframed,
        Stall,
        Status,
    )
    from actors.strict.gemini_server import GeminiServer
    from actors.strict.oauth import OAuth
    from actors.strict.responses_server import ResponsesServer
    from actors.strict.rules import (
        AnthropicProfile,
        AnthropicSettings,
        BedrockProfile,
        BedrockSettings,
        CompatibleProfile,
        CompatibleSettings,
        GeminiProfile,
        GeminiSettings,
        OpenAIProfile,
        OpenAISettings,
        ResponsesProfile,
        ResponsesSettings,
        ServerRefusal,
        validate,
    )
    from actors.strict.script import Builtin, Call, Redacted, Say, Script, Think, Turn
    from actors.strict.server import Exchange, OpenAIServer, ServerLimits, serve
    from actors.strict.sigv4 import AwsKey
    from actors.testing.in_thread import serve_in_thread
    from actors.testing.offline_runtime import answer, call, offline, say, think
    from actors.testing.simulation import Odds, SimulationReport, simulate
    from actors.testing.stressing import StressReport, stress

__all__ = [
    "OVERLOADED",
    "QUOTA",
    "RATE_LIMITED",
    "SERVERS",
    "SERVER_ERROR",
    "AnthropicProfile",
    "AnthropicServer",
    "AnthropicSettings",
    "AwsKey",
    "AzureServer",
    "BedrockAnthropicServer",
    "BedrockProfile",
    "BedrockServer",
    "BedrockSettings",
    "Builtin",
    "Call",
    "CompatibleProfile",
    "CompatibleServer",
    "CompatibleSettings",
    "DeepSeekServer",
    "Disconnect",
    "ErrorInStream",
    "Exchange",
    "Fault",
    "Flood",
    "Garbage",
    "GeminiProfile",
    "GeminiServer",
    "GeminiSettings",
    "GroqServer",
    "KimiServer",
    "MalformedEvent",
    "MistralServer",
    "OAuth",
    "Odds",
    "OpenAIProfile",
    "OpenAIServer",
    "OpenAISettings",
    "OpenRouterServer",
    "PromptCache",
    "Redacted",
    "Reframed",
    "ResponsesProfile",
    "ResponsesServer",
    "ResponsesSettings",
    "Say",
    "Script",
    "ServerLimits",
    "ServerRefusal",
    "SimulationReport",
    "Stall",
    "Status",
    "StressReport",
    "Think",
    "Turn",
    "VertexAnthropicServer",
    "answer",
    "call",
    "offline",
    "say",
    "serve",
    "serve_in_thread",
    "simulate",
    "stress",
    "strict_server",
    "think",
    "validate",
]

_HOMES = {
    "strict.anthropic_server": ("AnthropicServer",),
    "strict.bedrock_server": ("BedrockServer",),
    "strict.cache": ("PromptCache",),
    "strict.claude_servers": ("BedrockAnthropicServer", "VertexAnthropicServer"),
    "strict.compatible_server": (
        "AzureServer",
        "CompatibleServer",
        "DeepSeekServer",
        "GroqServer",
        "KimiServer",
        "MistralServer",
        "OpenRouterServer",
    ),
    "strict.dialects": ("SERVERS", "strict_server"),
    "strict.faults": (
        "OVERLOADED",
        "QUOTA",
        "RATE_LIMITED",
        "SERVER_ERROR",
        "Disconnect",
        "ErrorInStream",
        "Fault",
        "Flood",
        "Garbage",
        "MalformedEvent",
        "Reframed",
        "Stall",
        "Status",
    ),
    "strict.gemini_server": ("GeminiServer",),
    "strict.oauth": ("OAuth",),
    "strict.responses_server": ("ResponsesServer",),
    "strict.rules": (
        "AnthropicProfile",
        "AnthropicSettings",
        "BedrockProfile",
        "BedrockSettings",
        "CompatibleProfile",
        "CompatibleSettings",
        "GeminiProfile",
        "GeminiSettings",
        "OpenAIProfile",
        "OpenAISettings",
        "ResponsesProfile",
        "ResponsesSettings",
        "ServerRefusal",
        "validate",
    ),
    "strict.script": ("Builtin", "Call", "Redacted", "Say", "Script", "Think", "Turn"),
    "strict.server": ("Exchange", "OpenAIServer", "ServerLimits", "serve"),
    "strict.sigv4": ("AwsKey",),
    "testing.in_thread": ("serve_in_thread",),
    "testing.offline_runtime": ("answer", "call", "offline", "say", "think"),
    "testing.simulation": ("Odds", "SimulationReport", "simulate"),
    "testing.stressing": ("StressReport", "stress"),
}
"""The public names, by the module that defines them."""
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker sees the imports above, and no other name

    def __getattr__(name: str) -> object:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"actors.{_MODULE_OF[name]}"), name)
