"""Create the host of a runtime's sessions, when the runtime is entered."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from actors.core.data.truncate import SizeLimits
from actors.journal.journal_actor import JournalActor
from actors.journal.readers import Readers
from actors.journal.storage import Storage
from actors.kernel import SHARED, System
from actors.provider.advice import ask_failed_error
from actors.runtime.backends import RuntimeBackends
from actors.runtime.limits import fitted_limits, turn_bounds
from actors.runtime.residency import HostedSession, Residency
from actors.runtime.session_host import SessionHost
from actors.scheduler.children import OpenSubagent
from actors.scheduler.executor import ToolFailure, ToolLimits
from actors.scheduler.quarantine import Quarantine
from actors.tools.toolsets import Toolsets, ToolSource

if TYPE_CHECKING:
    from actors.config import Config
    from actors.telemetry.tracing import RuntimeTracing


def make_host(
    system: System,
    storage: Storage,
    config: "Config",
    backends: RuntimeBackends,
    quarantine: Quarantine,
    ended: Callable[[HostedSession], None],
    open_subagent: OpenSubagent,
    tool_failed: Callable[[ToolFailure], object] | None,
    tracing: "RuntimeTracing | None",
) -> SessionHost:
    """Return the host of the sessions of a system, with a journal actor that writes to the storage.

    `ended`, `open_subagent` and `tool_failed`: as in `SessionHost`.
    """
    limits, readers = config.limits, Readers()
    kept = SizeLimits(max_bytes=limits.result_bytes, max_string=limits.result_bytes)
    return SessionHost(
        system,
        storage,
        system.spawn(
            partial(JournalActor, storage, readers, backends.meters.journal), "journal", depth=SHARED
        ),
        backends,
        ToolLimits(limits.max_calls_per_message, limits.tool_threads, limits.thread_wait_timeout, kept),
        quarantine,
        turn_bounds(limits),
        limits.max_queued_asks,
        Residency(fitted_limits(limits.max_active_sessions, limits.sessions, limits.memory)),
        ended,
        Toolsets(system, lru_cache(None)(partial(_named_server, config))),
        open_subagent,
        partial(ask_failed_error, config=config),
        tool_failed,
        readers,
        tracing,
    )


def _named_server(config: "Config", name: str) -> ToolSource:
    """Return the toolset of an MCP server that the configuration names."""
    from actors.tools.mcp.configured import configured_toolset  # most programs have no MCP servers

    return configured_toolset(config, name)
