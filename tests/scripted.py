"""Run one session over the strict server of a dialect, whose model plays a script.

    async with scripted("anthropic", Turn(Call("read", {"path": "a"})), Turn(Say("Done.")), tools=[read]) as (
        host, runtime, session,
    ):
        assert (await session.ask("Go.")).text == "Done."

Use it for a test of one session, in any dialect. A test with several backends or pools uses
`tests.runtime_support.runtime_with`, on which this is built. Both compare each session with the fold of its log at
the end.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from actors.config import BackendLimits, RuntimeLimits
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.strict.server import LoopbackServer
from actors.testing import Script, Turn
from tests.runtime_support import NO_RETRIES, runtime_with
from tests.strict_hosts import strict_host


class Scripted(NamedTuple):
    """A session, its runtime and the server of its backend, which is named after its dialect."""

    host: LoopbackServer
    runtime: Runtime
    session: Session


@asynccontextmanager
async def scripted(
    host: LoopbackServer | str,
    *turns: Turn,
    tools: Sequence[Any] = (),  # Any: a tool, or the source of tools
    system: str = "",
    is_streamed: bool = True,
    limits: RuntimeLimits | None = None,
    backend: BackendLimits = NO_RETRIES,
    fields: Mapping[str, object] | None = None,
) -> AsyncIterator[Scripted]:
    """Open a session, and check at the end that the server refused nothing.

    Args:
        host: A server, or the name of a dialect, whose strictest server then plays `turns`.
        is_streamed: Whether the backend streams its answers.
        backend: The limits of the backend, which by default retries nothing.
        fields: Other fields of the backend's settings.
    """
    server = strict_host(host, Script(turns)) if isinstance(host, str) else host
    served = {server.dialect: server}
    async with runtime_with(
        served, seconds=60, limits=limits, backend=backend, stream=is_streamed, fields=fields
    ) as runtime:
        session = await runtime.open(server.dialect, tools=tools, system=system)
        yield Scripted(server, runtime, session)
    assert server.refusals == []
