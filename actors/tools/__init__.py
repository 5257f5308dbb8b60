"""Define tools: functions that a model may call, with a name, a description and an argument schema.

Sessions use this package to declare tools and to validate arguments. `@tool` builds a JSON Schema from a function's
signature and docstring. Providers receive this schema. The model's arguments are validated against the schema, and
pydantic then converts them to the function's types. `Tool.from_schema` accepts an explicit schema. A `Toolset` is an
ordered set of tools.

The scheduler runs tools: it awaits async functions, and runs sync functions in a worker thread. pydantic and the JSON
Schema validator are imported when the first tool is defined.
"""

from actors.core.log.call_events import Effects
from actors.tools.context import ToolContext
from actors.tools.tool import Approval, ApprovalRule, Tool, ToolOptions, default_approval, tool
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
