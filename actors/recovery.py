"""What a crash left open, closed: every call of the turn that was in flight, and that turn."""

from actors.core.events import Reason, TurnEnded
from actors.core.feed import TurnResult
from actors.core.identity import CallId
from actors.core.publishing import interrupted
from actors.inflight import SessionRefs
from actors.ledger import Snapshot
from actors.log import LogWriter
from actors.scheduler import CloseCalls

RESTARTED = "the session's actors were restarted during the ask; see its history, and ask again"


async def recovered(log: LogWriter, refs: SessionRefs, seq: int) -> tuple[TurnResult, int]:
    """Close the turn in flight; return how its ask came out, and the log's last number, which was `seq`."""
    bound = log.state.bound
    await _close_open(log, refs)
    if bound is not None:
        seq = await log.write(TurnEnded(log.state.turns, "interrupted", RESTARTED))
    return interrupted(bound, RESTARTED), seq


async def _close_open(log: LogWriter, refs: SessionRefs) -> None:
    """Close every call that has no end."""
    history = log.state.history
    ledger = (await refs.ledger.ask(Snapshot())).ledger
    calls = history[-1].calls if len(history) else ()
    unknown = [call.id for call in calls if call.id not in ledger]
    pending = [item for item in ledger.interactions() if item.status == "pending"]
    never = (*unknown, *(item.call_id for item in pending if not item.started))
    maybe = tuple(item.call_id for item in pending if item.started)
    await _close(refs, never, "never_started")
    await _close(refs, maybe, "outcome_unknown")


async def _close(refs: SessionRefs, calls: tuple[CallId, ...], reason: Reason) -> None:
    if calls:
        await refs.scheduler.ask(CloseCalls(calls, reason))
