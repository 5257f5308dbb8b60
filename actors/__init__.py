"""Tool-calling LLM conversations that change provider between turns and cannot break.

`Runtime` hosts sessions. The pure core is usable alone: `from_wire`, `render`, `encode`, `check`, `decode`.
Names are imported when they are first used, so importing this package costs little.
"""

from importlib import import_module

__version__: str

TYPE_CHECKING = False  # as type checkers know it; the module `typing` is not needed for this
if TYPE_CHECKING:
    from actors import sync
    from actors.adapters.codec import decode
    from actors.core.check import check
    from actors.core.dialects.dialect import Dialect
    from actors.core.dialects.profiles import dialect
    from actors.core.history.compaction import Compaction, CompactionResult
    from actors.core.history.history import History
    from actors.core.lanes.preview import Preview
    from actors.core.lanes.reproduction import Reproduction
    from actors.core.ledger import Ledger
    from actors.core.log.events import Interaction
    from actors.core.settings.asking import AskSettings
    from actors.core.settings.spending import Budget, Price
    from actors.core.settings.values import Choose
    from actors.core.stream_events.results import Applied, Deferred, TurnResult
    from actors.core.values.content import (
        Code,
        Media,
        Message,
        Native,
        Seal,
        Text,
        Thinking,
        ToolCall,
        ToolResult,
    )
    from actors.core.values.identity import Binding
    from actors.errors import ActorsError, AskFailed
    from actors.runtime.handle import Session
    from actors.runtime.once import run
    from actors.runtime.runtime import Runtime
    from actors.runtime.subagents import handoff, subagent
    from actors.scheduler.executor import ToolFailure
    from actors.tools import Tool, ToolContext, tool
    from actors.tools.toolsets import LiveTools, ToolSource
    from actors.transcripts import encode, from_wire, render

__all__ = [
    "ActorsError",
    "Applied",
    "AskFailed",
    "AskSettings",
    "Binding",
    "Budget",
    "Choose",
    "Code",
    "Compaction",
    "CompactionResult",
    "Deferred",
    "Dialect",
    "History",
    "Interaction",
    "Ledger",
    "LiveTools",
    "Media",
    "Message",
    "Native",
    "Preview",
    "Price",
    "Reproduction",
    "Runtime",
    "Seal",
    "Session",
    "Text",
    "Thinking",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolFailure",
    "ToolResult",
    "ToolSource",
    "TurnResult",
    "check",
    "decode",
    "dialect",
    "encode",
    "from_wire",
    "handoff",
    "render",
    "run",
    "subagent",
    "sync",
    "tool",
]

_HOMES = {
    "adapters.codec": ("decode",),
    "core.settings.asking": ("AskSettings",),
    "core.settings.values": ("Choose",),
    "core.check": ("check",),
    "core.values.content": (
        "Code",
        "Media",
        "Message",
        "Native",
        "Seal",
        "Text",
        "Thinking",
        "ToolCall",
        "ToolResult",
    ),
    "core.history.compaction": ("Compaction", "CompactionResult"),
    "core.dialects.dialect": ("Dialect",),
    "core.lanes.preview": ("Preview",),
    "core.dialects.profiles": ("dialect",),
    "core.stream_events.results": ("Applied", "Deferred", "TurnResult"),
    "core.history.history": ("History",),
    "core.values.identity": ("Binding",),
    "core.log.events": ("Interaction",),
    "core.ledger": ("Ledger",),
    "core.lanes.reproduction": ("Reproduction",),
    "core.settings.spending": ("Budget", "Price"),
    "errors": ("ActorsError", "AskFailed"),
    "scheduler.executor": ("ToolFailure",),
    "runtime.handle": ("Session",),
    "runtime.once": ("run",),
    "transcripts": ("encode", "from_wire", "render"),
    "runtime.runtime": ("Runtime",),
    "runtime.subagents": ("handoff", "subagent"),
    "tools": ("Tool", "ToolContext", "tool"),
    "tools.toolsets": ("LiveTools", "ToolSource"),
}
_OTHERS = ("errors", "events", "testing")
"""Modules whose public names are imported from them."""
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker sees the imports above, and no other name

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            value: object = version("llm-actors")
        elif name == "sync":
            value = import_module("actors.sync")
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
        if name.startswith("_"):
            return ""
        for module in _OTHERS:
            if hasattr(import_module(f"{__name__}.{module}"), name):
                return f"; it is {__name__}.{module}.{name}"
        return ""
