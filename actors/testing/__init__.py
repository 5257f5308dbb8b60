"""For tests and demonstrations: strict loopback servers that refuse what the real providers refuse.

Names are imported when they are first used, so importing this package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.testing.anthropic_server import AnthropicServer
    from actors.testing.bedrock_server import BedrockServer
    from actors.testing.cache import PromptCache
    from actors.testing.claude_servers import BedrockAnthropicServer, VertexAnthropicServer
    from actors.testing.compatible_server import (
        AzureServer,
        CompatibleServer,
        DeepSeekServer,
        GroqServer,
        KimiServer,
        MistralServer,
        OpenRouterServer,
    )
    from actors.testing.dialects import SERVERS, strict_server
    from actors.testing.faults import (
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
    from actors.testing.gemini_server import GeminiServer
    from actors.testing.in_thread import serve_in_thread
    from actors.testing.oauth import OAuth
    from actors.testing.responses_server import ResponsesServer
    from actors.testing.rules import (
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
    from actors.testing.script import Builtin, Call, Redacted, Say, Script, Think, Turn
    from actors.testing.server import Exchange, OpenAIServer, ServerLimits, serve
    from actors.testing.sigv4 import AwsKey
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
    "serve",
    "serve_in_thread",
    "simulate",
    "stress",
    "strict_server",
    "validate",
]

_MODULES = {
    "faults": ("OVERLOADED", "QUOTA", "RATE_LIMITED", "SERVER_ERROR", "Disconnect", "ErrorInStream"),
    "rules": ("AnthropicProfile", "AnthropicSettings", "OpenAIProfile", "OpenAISettings", "ServerRefusal"),
    "script": ("Builtin", "Call", "Redacted", "Say", "Script", "Think", "Turn"),
    "server": ("Exchange", "ServerLimits", "OpenAIServer", "serve"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
_HOMES |= {
    "CompatibleProfile": "rules",
    "CompatibleSettings": "rules",
    "CompatibleServer": "compatible_server",
}
_HOMES |= dict.fromkeys(("BedrockAnthropicServer", "VertexAnthropicServer"), "claude_servers")
_HOMES |= {"AzureServer": "compatible_server"}
_HOMES |= dict.fromkeys(
    ("DeepSeekServer", "GroqServer", "KimiServer", "MistralServer", "OpenRouterServer"), "compatible_server"
)
_HOMES |= {"Fault": "faults", "Garbage": "faults", "MalformedEvent": "faults", "Stall": "faults"}
_HOMES |= dict.fromkeys(("Flood", "Reframed"), "faults")
_HOMES |= {"GeminiProfile": "rules", "GeminiServer": "gemini_server", "GeminiSettings": "rules"}
_HOMES |= {"AnthropicServer": "anthropic_server", "OAuth": "oauth", "PromptCache": "cache"}
_HOMES |= {"AwsKey": "sigv4", "BedrockServer": "bedrock_server"}
_HOMES |= {"BedrockProfile": "rules", "BedrockSettings": "rules"}
_HOMES |= {"serve_in_thread": "in_thread"}
_HOMES |= {"SERVERS": "dialects", "strict_server": "dialects"}
_HOMES |= {"Status": "faults", "validate": "rules"}
_HOMES |= dict.fromkeys(("Odds", "SimulationReport", "simulate"), "simulation")
_HOMES |= dict.fromkeys(("StressReport", "stress"), "stressing")
_HOMES |= {"ResponsesProfile": "rules", "ResponsesSettings": "rules", "ResponsesServer": "responses_server"}


if not TYPE_CHECKING:  # a type checker sees the imports above, and no other name

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
