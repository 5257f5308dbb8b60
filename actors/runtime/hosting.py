"""Create the session host of a runtime when the runtime is entered, and collect its statistics.

The counters and gauges of `Runtime.stats` are read from the host's objects. No actor is queried.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from actors.core.data.truncate import SizeLimits
from actors.core.stats.stats import RuntimeStats, Stalls
from actors.journal.journal_actor import MAX_BATCH, JournalActor
from actors.journal.readers import Readers
from actors.journal.storage import Storage
from actors.kernel import SHARED, System
from actors.provider.advice import ask_failed_error
from actors.runtime.backends import RuntimeBackends
from actors.runtime.residency import HostedSession, Residency, machine_limits, turn_bounds
from actors.runtime.session_host import SessionHost
from actors.scheduler.children import OpenSubagent
from actors.scheduler.executor import ToolFailure, ToolLimits
from actors.scheduler.threads import THREADS
from actors.scheduler.watchdog import Quarantine
from actors.tools.toolsets import Toolsets, ToolSource

if TYPE_CHECKING:
    from actors.config import Config
    from actors.telemetry.callbacks import RuntimeTracing


def make_host(
    system: System,
    storage: Storage,
    config: "Config",
    backends: RuntimeBackends,
    quarantine: Quarantine,
    on_session_end: Callable[[HostedSession], None],
    open_subagent: OpenSubagent,
    on_tool_failure: Callable[[ToolFailure], object] | None,
    tracing: "RuntimeTracing | None",
    address: str,
) -> SessionHost:
    """Spawn the journal actor, which writes to the storage, and return a session host.

    `SessionHost` describes `on_session_end`, `open_subagent`, `on_tool_failure` and `address`.
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
        Residency(machine_limits(limits.max_active_sessions, limits.sessions, limits.memory)),
        on_session_end,
        Toolsets(system, lru_cache(None)(partial(_named_server, config))),
        open_subagent,
        partial(ask_failed_error, config=config),
        on_tool_failure,
        readers,
        tracing,
        address=address,
    )


def _named_server(config: "Config", name: str) -> ToolSource:
    """Return the toolset of the MCP server with this name in the configuration."""
    from actors.tools.mcp.configured import configured_toolset  # imported here, because few programs need it

    return configured_toolset(config, name)


def runtime_stats(host: SessionHost, open_sessions: int, refusals: int, stalls: Stalls) -> RuntimeStats:
    """Return the counters and gauges of a runtime.

    Args:
        host: The host of the runtime's sessions.
        open_sessions: The number of open sessions.
        refusals: The number of requests that providers rejected because of their structure.
        stalls: Counts how often and how long the event loop was blocked.
    """
    meters, storage, residency = host.backends.meters, host.storage, host.residency
    journal = meters.journal.stats(
        storage.durability, storage.lease, storage.sizes, host.journal.waiting, MAX_BATCH, host.system.now()
    )
    counted = (
        host.backends.stats,
        open_sessions,
        len(residency.active),
        residency.held.total,
        refusals,
        host.quarantine.by_tool(),
        meters.slow_handlers,
        stalls,
        journal,
    )
    of_host = (
        residency.limits.memory,
        residency.reuse.stats,
        host.loop_lag,
        *meters.session_activity,
        THREADS.waiting,
    )
    budgets, learned = host.backends.budgets.stats, host.backends.learned.stats()
    return RuntimeStats(*counted, budgets, learned, *of_host, is_draining=host.is_draining)
