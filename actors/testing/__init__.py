"""Test programs that use this library: strict servers that replace providers, simulations and stress tests.

A strict server rejects every request that the real provider would reject. Each name is imported when it is first used,
so importing this package is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.strict.anthropic_server import AnthropicServer, BedrockAnthropicServer, VertexAnthropicServer
    from actors.strict.bedrock_server import BedrockServer
    from actors.strict.cache import PromptCache
    from actors.strict.compatible_server import (
        AzureServer,
        CompatibleOptions,
        CompatibleServer,
        DeepSeekServer,
        GroqServer,
        KimiServer,
        MistralServer,
        OpenRouterServer,
    )
    from actors.strict.credentials import AwsKey, OAuth
    from actors.strict.dialects import SERVERS, strict_server
    from actors.strict.faults import (
        OVERLOADED,
        QUOTA,
        RATE_LIMITED,
        SERVER_ERROR,
        Disconnect,
        ErrorInStream,
        Flood,
        Garbage,
        InjectedFault,
        InjectedFaults,
        MalformedEvent,
        Reframed,
        Stall,
        Status,
    )
    from actors.strict.gemini_server import GeminiServer
    from actors.strict.loopback import HttpRequest, LoopbackAnswer
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
        ServerSettings,
        validate,
    )
    from actors.strict.script import (
        Behaviour,
        Builtin,
        Call,
        Redacted,
        Say,
        Script,
        ScriptSource,
        Think,
        Turn,
        TurnPart,
    )
    from actors.strict.server import (
        Exchange,
        LoopbackServer,
        OpenAIServer,
        ServerLimits,
        ServerOptions,
        serve,
    )
    from actors.testing.offline_runtime import ScriptPart, answer, call, offline, say, serve_in_thread, think
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
    "Behaviour",
    "Builtin",
    "Call",
    "CompatibleOptions",
    "CompatibleProfile",
    "CompatibleServer",
    "CompatibleSettings",
    "DeepSeekServer",
    "Disconnect",
    "ErrorInStream",
    "Exchange",
    "Flood",
    "Garbage",
    "GeminiProfile",
    "GeminiServer",
    "GeminiSettings",
    "GroqServer",
    "HttpRequest",
    "InjectedFault",
    "InjectedFaults",
    "KimiServer",
    "LoopbackAnswer",
    "LoopbackServer",
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
    "ScriptPart",
    "ScriptSource",
    "ServerLimits",
    "ServerOptions",
    "ServerRefusal",
    "ServerSettings",
    "SimulationReport",
    "Stall",
    "Status",
    "StressReport",
    "Think",
    "Turn",
    "TurnPart",
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
    "strict.anthropic_server": ("AnthropicServer", "BedrockAnthropicServer", "VertexAnthropicServer"),
    "strict.bedrock_server": ("BedrockServer",),
    "strict.cache": ("PromptCache",),
    "strict.compatible_server": (
        "AzureServer",
        "CompatibleOptions",
        "CompatibleServer",
        "DeepSeekServer",
        "GroqServer",
        "KimiServer",
        "MistralServer",
        "OpenRouterServer",
    ),
    "strict.credentials": ("OAuth", "AwsKey"),
    "strict.dialects": ("SERVERS", "strict_server"),
    "strict.faults": (
        "Disconnect",
        "ErrorInStream",
        "InjectedFault",
        "InjectedFaults",
        "Flood",
        "Garbage",
        "MalformedEvent",
        "OVERLOADED",
        "QUOTA",
        "RATE_LIMITED",
        "Reframed",
        "SERVER_ERROR",
        "Stall",
        "Status",
    ),
    "strict.gemini_server": ("GeminiServer",),
    "strict.loopback": ("HttpRequest", "LoopbackAnswer"),
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
        "ServerSettings",
        "validate",
    ),
    "strict.script": (
        "Behaviour",
        "Builtin",
        "Call",
        "TurnPart",
        "Redacted",
        "Say",
        "Script",
        "ScriptSource",
        "Think",
        "Turn",
    ),
    "strict.server": ("Exchange", "LoopbackServer", "OpenAIServer", "ServerLimits", "ServerOptions", "serve"),
    "testing.offline_runtime": ("serve_in_thread", "ScriptPart", "answer", "call", "offline", "say", "think"),
    "testing.simulation": ("Odds", "SimulationReport", "simulate"),
    "testing.stressing": ("StressReport", "stress"),
}
"""Each module of `actors` with the public names that it defines."""
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # hidden from type checkers, which would otherwise accept any name

    def __getattr__(name: str) -> object:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"actors.{_MODULE_OF[name]}"), name)
