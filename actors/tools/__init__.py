"""Tools: functions a model may call, described once and frozen.

`@tool` reads a function's signature and docstring and makes the JSON Schema the provider is shown; the same
schema judges the model's arguments before the function runs, and pydantic then turns them into the types the
function asks for. `Tool.from_schema` takes a schema as it is. A `Toolset` is what a session offers.

Nothing is run here: the scheduler awaits async functions and gives the others a worker thread. pydantic and
the validator are imported when the first tool is defined.
"""

from actors.core.log.events import Effects
from actors.tools.context import ToolContext
from actors.tools.options import Approval, ApprovalRule, ToolOptions, default_approval
from actors.tools.tool import Tool, tool
from actors.tools.toolset import Toolset

__all__ = [
    "Approval",
    "ApprovalRule",
    "Effects",
    "Tool",
    "ToolContext",
    "ToolOptions",
    "Toolset",
    "default_approval",
    "tool",
]
