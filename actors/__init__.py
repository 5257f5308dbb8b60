"""Tool-calling LLM conversations that change provider between turns and cannot break.

`Runtime` hosts sessions. Every other public name has one home: `actors.events` (stream events), `actors.log_events`,
`actors.transcripts` (the pure functions), `actors.errors`, `actors.config`, `actors.telemetry`, `actors.journal`,
`actors.testing`, `actors.mcp`, `actors.sync` and `actors.types` (for annotations). Names are imported when they are
first used, so importing this package is cheap.
"""

from importlib import import_module
from importlib.util import find_spec

__version__: str

TYPE_CHECKING = False  # as type checkers know it; the module `typing` is not needed for this
if TYPE_CHECKING:
    from actors.core.history.compaction import Compaction, CompactionResult
    from actors.core.settings.asking import AskSettings
    from actors.core.settings.spending import Budget, Price
    from actors.core.settings.values import ToolChoice
    from actors.core.stream_events.results import AskResult, SwitchOutcome
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

_HOMES = {
    "core.history.compaction": (
        "Compaction",
        "CompactionResult",
    ),
    "core.settings.asking": ("AskSettings",),
    "core.settings.spending": (
        "Budget",
        "Price",
    ),
    "core.settings.values": ("ToolChoice",),
    "core.stream_events.results": (
        "AskResult",
        "SwitchOutcome",
    ),
    "core.values.content": (
        "Code",
        "Media",
        "Message",
        "Text",
        "Thinking",
        "ToolCall",
        "ToolResult",
    ),
    "core.values.identity": ("Binding",),
    "core.values.stream": ("Usage",),
    "errors": (
        "ActorsError",
        "AskFailed",
    ),
    "runtime.handle": ("Session",),
    "runtime.once": ("run",),
    "runtime.runtime": ("Runtime",),
    "runtime.subagents": (
        "handoff",
        "subagent",
    ),
    "scheduler.executor": ("ToolFailure",),
    "tools": (
        "Tool",
        "ToolContext",
        "tool",
    ),
    "tools.toolsets": (
        "LiveTools",
        "ToolSource",
    ),
}
_OTHERS = (
    "config",
    "errors",
    "events",
    "journal",
    "log_events",
    "mcp",
    "telemetry",
    "testing",
    "transcripts",
    "types",
)
"""The other public modules. `actors.sync` has the names of this one."""
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker sees the imports above, and no other name

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            value: object = version("llm-actors")
        elif name in _MODULE_OF:
            value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_hint(name)}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted([*__all__, "__version__", *(name for name in globals() if name.startswith("__"))])

    def _hint(name: str) -> str:
        """Return where a public name is that this module does not have."""
        if (
            name.startswith("_") or find_spec(f"{__name__}.{name}") is not None
        ):  # the import system asks for submodules
            return ""
        for module in _OTHERS:
            if name in import_module(f"{__name__}.{module}").__all__:
                return f"; it is {__name__}.{module}.{name}"
        return ""
