"""Types for annotations: the aliases, protocols and small classes that appear in signatures of the public API.

    def approve(call: ToolCall) -> bool: ...

    async def connect(runtime: Runtime, tools: Sequence[ToolItem], approve: Approve) -> Session: ...

Programs without type annotations do not need this module.
"""

from actors.core.data.jsonio import Json, JsonObject, JsonValue, Quoted
from actors.core.data.persistent import Segments
from actors.core.schemas.arguments import ArgumentError
from actors.core.stream_events.ask_events import Approvals, CallResults
from actors.core.turn.batch import Approve, BoundArguments
from actors.core.values.content import Block
from actors.core.values.identity import CallId
from actors.journal.session_events import SessionEvents
from actors.provider.dumps import OnRefusal
from actors.runtime.handles import OpenSessions, SessionOpening
from actors.session.streams import TextStream
from actors.session.user_input import UserInput
from actors.tools.context import Subagent
from actors.tools.tool import ApprovalRule, ResourceRule, ToolOptions
from actors.tools.toolset import OpenedTools, ToolItem, ToolLike, ToolsetOpener
from actors.transport.contract import Response, Timeouts, Transport

__all__ = [
    "ApprovalRule",
    "Approvals",
    "Approve",
    "ArgumentError",
    "Block",
    "BoundArguments",
    "CallId",
    "CallResults",
    "Json",
    "JsonObject",
    "JsonValue",
    "OnRefusal",
    "OpenSessions",
    "OpenedTools",
    "Quoted",
    "ResourceRule",
    "Response",
    "Segments",
    "SessionEvents",
    "SessionOpening",
    "Subagent",
    "TextStream",
    "Timeouts",
    "ToolItem",
    "ToolLike",
    "ToolOptions",
    "ToolsetOpener",
    "Transport",
    "UserInput",
]
