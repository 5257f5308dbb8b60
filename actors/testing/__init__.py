"""For tests and demonstrations: strict loopback servers that refuse what the real providers refuse.

Names are imported when they are first used, so importing this package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.testing.faults import (
        OVERLOADED,
        QUOTA,
        RATE_LIMITED,
        SERVER_ERROR,
        Disconnect,
        ErrorInStream,
        Fault,
        Garbage,
        MalformedEvent,
        Stall,
        Status,
    )
    from actors.testing.rules import (
        AnthropicProfile,
        AnthropicSettings,
        OpenAIProfile,
        OpenAISettings,
        Refusal,
        validate,
    )
    from actors.testing.script import Call, Redacted, Say, Script, Think, Turn
    from actors.testing.server import AnthropicServer, Exchange, Limits, OpenAIServer, serve

__all__ = [
    "OVERLOADED",
    "QUOTA",
    "RATE_LIMITED",
    "SERVER_ERROR",
    "AnthropicProfile",
    "AnthropicServer",
    "AnthropicSettings",
    "Call",
    "Disconnect",
    "ErrorInStream",
    "Exchange",
    "Fault",
    "Garbage",
    "Limits",
    "MalformedEvent",
    "OpenAIProfile",
    "OpenAIServer",
    "OpenAISettings",
    "Redacted",
    "Refusal",
    "Say",
    "Script",
    "Stall",
    "Status",
    "Think",
    "Turn",
    "serve",
    "validate",
]

_MODULES = {
    "faults": ("OVERLOADED", "QUOTA", "RATE_LIMITED", "SERVER_ERROR", "Disconnect", "ErrorInStream"),
    "rules": ("AnthropicProfile", "AnthropicSettings", "OpenAIProfile", "OpenAISettings", "Refusal"),
    "script": ("Call", "Redacted", "Say", "Script", "Think", "Turn"),
    "server": ("AnthropicServer", "Exchange", "Limits", "OpenAIServer", "serve"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
_HOMES |= {"Fault": "faults", "Garbage": "faults", "MalformedEvent": "faults", "Stall": "faults"}
_HOMES |= {"Status": "faults", "validate": "rules"}


if not TYPE_CHECKING:  # a type checker sees the imports above, and no other name

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
