"""Collect the counters and gauges of a runtime for `Runtime.stats`. No actor is queried."""

from actors.core.stats.stats import RuntimeStats, Stalls
from actors.journal.journal_actor import BATCH
from actors.runtime.session_host import SessionHost
from actors.scheduler.threads import THREADS


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
        storage.durability, storage.lease, storage.sizes, host.journal.waiting, BATCH, host.system.now()
    )
    counted = (
        host.backends.stats,
        open_sessions,
        len(residency.active),
        residency.held.total,
        refusals,
        host.quarantine.by_tool(),
        meters.slow,
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
