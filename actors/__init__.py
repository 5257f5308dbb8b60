"""Tool-calling LLM conversations that can change provider between turns without breaking.

`Runtime` hosts sessions. The other public names are in `actors.events` (stream events), `actors.log_events`,
`actors.transcripts` (pure functions), `actors.errors`, `actors.config`, `actors.telemetry`, `actors.journal`,
`actors.testing`, `actors.mcp`, `actors.hosts`, `actors.sync` and `actors.types` (for annotations). Each name of this
module is imported when it is first used, so `import actors` is fast.
"""

from importlib import import_module
from importlib.util import find_spec

__version__: str

TYPE_CHECKING = False  # type checkers treat this name as True; this avoids importing `typing`
if TYPE_CHECKING:
    from actors.core.history.compaction import Compaction, CompactionResult
    from actors.core.settings.asking import AskSettings
    from actors.core.settings.spending import Budget, Price
    from actors.core.settings.values import ToolChoice
    from actors.core.stream_events.ask_events import AskResult, SwitchOutcome
    from actors.core.values.content import Code, Media, Message, Text, Thinking, ToolCall, ToolResult
    from actors.core.values.identity import Binding
    from actors.core.values.stream import Usage
    from actors.errors import ActorsError, AskFailed
    from actors.runtime.handle import Session
    from actors.runtime.once import run
    from actors.runtime.runtime import Runtime
    from actors.runtime.subagents import handoff, subagent
    from actors.scheduler.executor import ToolFailure
    from actors.tools import Tool, ToolContext, tool
    from actors.tools.toolsets import LiveTools, ToolSource

__all__ = [
    "ActorsError",
    "AskFailed",
    "AskResult",
    "AskSettings",
    "Binding",
    "Budget",
    "Code",
    "Compaction",
    "CompactionResult",
    "LiveTools",
    "Media",
    "Message",
    "Price",
    "Runtime",
    "Session",
    "SwitchOutcome",
    "Text",
    "Thinking",
    "Tool",
    "ToolCall",
    "ToolChoice",
    "ToolContext",
    "ToolFailure",
    "ToolResult",
    "ToolSource",
    "Usage",
    "handoff",
    "run",
    "subagent",
    "tool",
]

# The public names of this package, by the submodule that defines them.
_HOMES = {
    "core.history.compaction": ("Compaction", "CompactionResult"),
    "core.settings.asking": ("AskSettings",),
    "core.settings.spending": ("Budget", "Price"),
    "core.settings.values": ("ToolChoice",),
    "core.stream_events.ask_events": ("AskResult", "SwitchOutcome"),
    "core.values.content": ("Code", "Media", "Message", "Text", "Thinking", "ToolCall", "ToolResult"),
    "core.values.identity": ("Binding",),
    "core.values.stream": ("Usage",),
    "errors": ("ActorsError", "AskFailed"),
    "runtime.handle": ("Session",),
    "runtime.once": ("run",),
    "runtime.runtime": ("Runtime",),
    "runtime.subagents": ("handoff", "subagent"),
    "scheduler.executor": ("ToolFailure",),
    "tools": ("Tool", "ToolContext", "tool"),
    "tools.toolsets": ("LiveTools", "ToolSource"),
}
_SUBMODULES = (
    "config",
    "errors",
    "events",
    "hosts",
    "journal",
    "log_events",
    "mcp",
    "telemetry",
    "testing",
    "transcripts",
    "types",
)
"""Public submodules in which `_submodule_hint` searches for a name."""
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # hidden from type checkers, which would otherwise accept every name

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            value: object = version("llm-actors")
        elif name in _MODULE_OF:
            value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_submodule_hint(name)}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted([*__all__, "__version__", *(name for name in globals() if name.startswith("__"))])

    def _submodule_hint(name: str) -> str:
        """Return a hint for an error message: the submodule that has this public name. Return "" if none has it."""
        # `from actors import sync` looks for an attribute before it imports the submodule.
        if name.startswith("_") or find_spec(f"{__name__}.{name}") is not None:
            return ""
        for module in _SUBMODULES:
            if name in import_module(f"{__name__}.{module}").__all__:
                return f"; use {__name__}.{module}.{name}"
        return ""
