"""For tests and demonstrations: strict loopback servers that refuse what the real providers refuse.

Names are imported when they are first used, so importing this package costs nothing.
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
    "strict.faults": ("OVERLOADED", "QUOTA", "RATE_LIMITED", "SERVER_ERROR", "Disconnect", "ErrorInStream"),
    "strict.rules": (
        "AnthropicProfile",
        "AnthropicSettings",
        "OpenAIProfile",
        "OpenAISettings",
        "ServerRefusal",
    ),
    "strict.script": ("Builtin", "Call", "Redacted", "Say", "Script", "Think", "Turn"),
    "strict.server": ("Exchange", "ServerLimits", "OpenAIServer", "serve"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
_HOMES |= {
    "CompatibleProfile": "strict.rules",
    "CompatibleSettings": "strict.rules",
    "CompatibleServer": "strict.compatible_server",
}
_HOMES |= dict.fromkeys(("BedrockAnthropicServer", "VertexAnthropicServer"), "strict.claude_servers")
_HOMES |= {"AzureServer": "strict.compatible_server"}
_HOMES |= dict.fromkeys(
    ("DeepSeekServer", "GroqServer", "KimiServer", "MistralServer", "OpenRouterServer"),
    "strict.compatible_server",
)
_HOMES |= {
    "Fault": "strict.faults",
    "Garbage": "strict.faults",
    "MalformedEvent": "strict.faults",
    "Stall": "strict.faults",
}
_HOMES |= dict.fromkeys(("Flood", "Reframed"), "strict.faults")
_HOMES |= {
    "GeminiProfile": "strict.rules",
    "GeminiServer": "strict.gemini_server",
    "GeminiSettings": "strict.rules",
}
_HOMES |= {
    "AnthropicServer": "strict.anthropic_server",
    "OAuth": "strict.oauth",
    "PromptCache": "strict.cache",
}
_HOMES |= {"AwsKey": "strict.sigv4", "BedrockServer": "strict.bedrock_server"}
_HOMES |= {"BedrockProfile": "strict.rules", "BedrockSettings": "strict.rules"}
_HOMES |= {"serve_in_thread": "testing.in_thread"}
_HOMES |= {"SERVERS": "strict.dialects", "strict_server": "strict.dialects"}
_HOMES |= {"Status": "strict.faults", "validate": "strict.rules"}
_HOMES |= dict.fromkeys(("Odds", "SimulationReport", "simulate"), "testing.simulation")
_HOMES |= dict.fromkeys(("StressReport", "stress"), "testing.stressing")
_HOMES |= {
    "ResponsesProfile": "strict.rules",
    "ResponsesSettings": "strict.rules",
    "ResponsesServer": "strict.responses_server",
}


if not TYPE_CHECKING:  # a type checker sees the imports above, and no other name

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"actors.{_HOMES[name]}"), name)
