"""Render a conversation for a provider and build its request."""

from actors.adapters.adapter import adapter
from actors.adapters.request import Settings, ToolSpec
from actors.core.data.jsonio import Json
from actors.core.dialects.profiles import dialect
from actors.core.history.history import History
from actors.core.lanes.lane import Lane, Rendered, advance, empty_lane
from actors.core.ledger import Ledger
from actors.core.render import RenderTarget
from tests.scenarios.canon import made_by

_TOOLS = (ToolSpec("read", "Read.", Json(b'{"type":"object","properties":{"n":{"type":"integer"}}}')),)


def send_conversation(
    said: History,
    ledger: Ledger,
    name: str,
    lane: Lane | None = None,
    *,
    tools: bool = True,
    manual: bool = False,
) -> tuple[Rendered, bytes]:
    """Render a conversation for a provider as a session would.

    Args:
        name: The dialect; its reader is the binding `made_by(name)`.
        lane: The lane of earlier requests, if any.
        tools: Whether tools are declared.
        manual: Whether thinking with a budget is requested.
    """
    profile = dialect(name)
    encoding = adapter(profile)
    reader = RenderTarget(made_by(name), "native", manual)
    rendered = advance(lane or empty_lane(profile), said, ledger, profile, encoding.encoder, reader)
    settings = Settings(
        model="m",
        tools=_TOOLS if tools else (),
        max_tokens=4096,
        thinking="manual" if manual else "default",
        thinking_tokens=1024 if manual else None,
    )
    return rendered, encoding.request(rendered._segments, settings, rendered._facts).body
