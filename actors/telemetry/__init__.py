"""What the runtime says about itself: structured log events. Ids, names and counts only; no content, no keys.

What a tool raises goes to the logger `actors.tools`, as it is: that is the program's own code, and its traceback is
what its author needs.

Nothing here raises: a log event that cannot be written is lost, and what was logged about goes on.

Events are structured by structlog and handed to the standard library's logger `actors`,
which is not configured here: that is the program's business. Both are imported at the first event.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial, wraps
from itertools import zip_longest
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from actors.core.diagnostics import Refusal
from actors.core.stats import ReuseStats
from actors.errors import ActorsError, Fault
from actors.kernel.host_code import Listener, call_host

if TYPE_CHECKING:
    import logging

    from structlog.typing import FilteringBoundLogger

MOST = 50
"""Entries of a list that an event holds."""

P = ParamSpec("P")
T = TypeVar("T")


def never_raising(log: Callable[P, None]) -> Callable[P, None]:
    """Have a function log what it can: the handlers and processors of the program's logging may raise anything.

    The first time that an error of some kind does, standard error says so.
    """

    @wraps(log)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        call_host(partial(log, *args, **kwargs), _unlogged)

    return guarded


def _unlogged(error: BaseException) -> None:
    call_host(partial(_complain, type(error).__name__), lambda _: None)


@lru_cache(maxsize=16)
def _complain(error: str) -> None:
    if (stream := sys.stderr) is not None:
        print(f"actors: a log event is lost, because logging it raised {error}", file=stream)


@never_raising
def crashed(actor: str, error: BaseException) -> None:
    """Log that an actor's handler or child raised; its supervisor is about to act on it.

    The place is logged, and no traceback: some renderers print local variables with it, and those hold keys.
    """
    _logger().error("actor_crashed", actor=actor, error=_words(error), place=_place(error))


@never_raising
def host_code_failed(what: str, error: BaseException, then: str) -> None:
    """Log that a function of the program's raised where the runtime called it, and what came of that.

    Its text is not logged, since it may quote what the function was given.
    """
    _logger().error("host_code_failed", what=what, error=_words(error), place=_place(error), then=then)


def listener(name: str) -> Listener:
    """Return what calls functions of the program's that are told what happens, until one of them raises."""
    return Listener(partial(host_code_failed, name, then="switched off"))


def guard(name: str, callback: Callable[[T], object]) -> Callable[[T], object]:
    """Return a callback of the program that never raises, and does nothing more once it has raised."""
    guarded = listener(name)
    return lambda event: guarded.call(lambda: callback(event))


def _place(error: BaseException) -> str:
    """Return where an error was raised."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "unknown"


def _words(error: BaseException) -> str:
    """Return an error's type, and its text where it is ours: others' may quote what they were working on."""
    kind = type(error).__name__
    return f"{kind}: {error}"[:500] if isinstance(error, ActorsError) else kind


@never_raising
def tool_failed(session: str, call_id: str, tool: str, error: BaseException) -> None:
    """Log what a tool raised, with its traceback: it is the program's own code. Logger `actors.tools`."""
    import logging
    import traceback

    kind = type(error).__name__
    text = f"event='tool_failed' session={session!r} call={call_id!r} tool={tool!r} error={kind!r}"
    logger, raised = _tools(), (type(error), error, error.__traceback__)
    if logger.isEnabledFor(logging.ERROR):
        record = logger.makeRecord(logger.name, logging.ERROR, __file__, 0, text, (), raised)
        trace = "".join(traceback.format_exception(error))
        record.exc_text = trace.encode(errors="backslashreplace").decode()  # a lone surrogate breaks handlers
        logger.handle(record)


@never_raising
def tool_spoiled(session: str, tool: str, error: BaseException) -> None:
    """Log that a tool left its task unusable, as by a task group that it never left. Logger `actors.tools`."""
    kind = type(error).__name__
    advice = "a task group or cancel scope was left open; keep what outlives a call in a task of your own"
    _tools().warning(
        f"event='tool_spoiled' session={session!r} tool={tool!r} error={kind!r} advice={advice!r}"
    )


@never_raising
def memory_short(reuse: ReuseStats) -> None:
    """Log that many sessions that are used again have to be made of their logs. It is said once."""
    advice = "sessions that take turns do not fit limits.memory; raise it, or spread them over more processes"
    _logger().warning("memory_short", hits=reuse.hits, rebuilds=reuse.rebuilds, advice=advice)


@never_raising
def collector_untuned(sessions: int) -> None:
    """Log that the garbage collector takes time that could be saved. It is said once, at most."""
    advice = "Runtime(gc='tuned') if this process is mainly for sessions, or gc.set_threshold of your own"
    _logger().warning("collector_untuned", sessions=sessions, advice=advice)


@never_raising
def toolset_lost(toolset: str, error: BaseException | None, seconds: float) -> None:
    """Log that a toolset is not connected any more, or not yet again, and when the next try is."""
    kind = "none" if error is None else _words(error)
    _logger().warning("toolset_lost", toolset=toolset, error=kind, next_try=round(seconds, 1))


@never_raising
def journal_unavailable(why: str) -> None:
    """Log that the journal cannot write. It is said once, and again when it can."""
    advice = "mend the cause; sessions go on from their logs then, without a restart"
    _logger().error("journal_unavailable", why=why, advice=advice)


@never_raising
def journal_available(seconds: float) -> None:
    """Log that the journal can write again."""
    _logger().warning("journal_available", seconds=round(seconds, 1))


@never_raising
def journal_damaged(why: str, copy: str | None = None) -> None:
    """Log that a journal is damaged; `copy`: of a file that is opened without its last events."""
    if copy is None:
        _logger().error(
            "journal_damaged", why=why, advice="restore a copy, or save what can be read: `actors fsck`"
        )
    else:
        advice = "it goes on without the events after the damage; look at the copy with `actors fsck`"
        _logger().error("journal_damaged", why=why, copy=copy, advice=advice)


@never_raising
def journal_unclosed(error: BaseException) -> None:
    """Log that the journal could not be closed in order when its runtime was left."""
    _logger().warning("journal_unclosed", error=_words(error))


@never_raising
def events_lost(session: str, first: int, last: int) -> None:
    """Log that the journal's storage went back behind what it had acknowledged of a session."""
    advice = "a failover to a server that lagged, or a restored copy; make replication synchronous"
    _logger().error("events_lost", session=session, first=first, last=last, advice=advice)


@never_raising
def retention_deleted(sessions: int) -> None:
    """Log that sessions have expired."""
    _logger().info("retention_deleted", sessions=sessions)


@never_raising
def retention_waits(sessions: Sequence[str], count: int, seconds: int) -> None:
    """Log sessions that seem to have expired, by a clock that was not observed for long enough to delete them.

    Args:
        sessions: Some of their ids.
        count: How many there are.
        seconds: Of time that this host has to be observed for, until they are deleted.
    """
    advice = (
        "if the clock is right, `actors sessions delete --older-than DATE` deletes them now; if not, set it"
    )
    _logger().warning(
        "retention_waits", sessions=list(sessions[:MOST]), count=count, seconds=seconds, advice=advice
    )


@never_raising
def retention_failed(error: BaseException) -> None:
    """Log that something could not be deleted. It is tried again."""
    _logger().warning("retention_failed", error=_words(error))


@never_raising
def tool_left_out(toolset: str, tool: str, error: ActorsError) -> None:
    """Log that a tool of a toolset is not offered, and why."""
    _logger().warning("tool_left_out", toolset=toolset, tool=tool[:200], error=_words(error))


@never_raising
def answer_refused(toolset: str, error: ActorsError) -> None:
    """Log that a message of a tool server was not read, and why."""
    _logger().warning("answer_refused", toolset=toolset, error=_words(error))


@never_raising
def toolset_unclosed(toolset: str, error: BaseException) -> None:
    """Log that a toolset raised when it was closed, or did not close in time."""
    _logger().warning("toolset_unclosed", toolset=toolset, error=_words(error))


@never_raising
def toolset_stuck(toolset: str) -> None:
    """Log that a toolset goes on though its closing was cancelled. Nothing waits for it any more."""
    _logger().warning("toolset_stuck", toolset=toolset)


@never_raising
def tool_barred(tool: str, calls: int) -> None:
    """Log that a tool gets no further calls for now: so many run on that were closed. Logger `actors.tools`."""
    advice = (
        "it swallows its cancellation or blocks its thread; calls of it are refused until some have ended"
    )
    _tools().warning(f"event='tool_barred' tool={tool!r} running={calls} advice={advice!r}")


@never_raising
def loop_stalled(session: str, call_id: str, tool: str, seconds: float, place: str) -> None:
    """Log that a tool holds up the event loop, and where it is. Logger `actors.tools`. Called in another thread."""
    advice = "an async tool must not block: await, or make it a plain function, which runs in a thread"
    _tools().warning(
        f"event='loop_stalled' session={session!r} call={call_id!r} tool={tool!r} seconds={seconds:.1f} "
        f"place={place!r} advice={advice!r}"
    )


@never_raising
def tools_running(names: Sequence[str]) -> None:
    """Log that tools still run after the runtime was left, which could not end them. Logger `actors.tools`."""
    if names:
        _tools().warning(f"event='tools_running' tools={sorted(set(names))!r}")


@never_raising
def never_left() -> None:
    """Log that the event loop ended, and took a runtime along that was entered and never left."""
    _logger().warning("runtime_never_left", advice="enter it with 'async with', or call __aexit__")


@never_raising
def slow(actor: str, message: str, seconds: float) -> None:
    """Log that an actor's handler held up all others: this is normal on a busy machine, so the level is info."""
    _logger().info("slow_handler", actor=actor, message=message, seconds=round(seconds, 3))


@never_raising
def media_refused(session: str, binding: str, why: str) -> None:
    """Log that a provider refused attachments: notes stand for them in that lane from now on."""
    _logger().warning("media_refused", session=session, binding=binding, why=why)


@never_raising
def parameter_refused(binding: str, parameter: str, why: str, *, is_value: bool) -> None:
    """Log that a provider refused an optional parameter, or its value. It is logged once: it is left out from now on.

    `binding` is that of the request; no other leaves the parameter out.
    """
    what = "value" if is_value else "parameter"
    _logger().warning("parameter_refused", binding=binding, parameter=parameter, what=what, why=why)


@never_raising
def refused(refusal: Refusal) -> None:
    """Log that a provider or the judge refused a transcript for its structure: our bug, with what was done for it.

    Calls stand as `canonical id=id on the wire`, and of long lists the first entries.
    """
    report = refusal.report
    sent_as = zip_longest(
        report.calls, report.emitted_calls, fillvalue=""
    )  # the conservative render sends none
    _logger().error(
        "transcript_refused",
        session=refusal.session,
        binding=str(refusal.binding),
        by=refusal.by,
        why=refusal.why,
        dialect=report.dialect,
        faults=_some([_about(fault) for fault in report.faults]),
        calls=_some([f"{known}={sent}" if sent else known for known, sent in sent_as]),
        results=_some(report.emitted_results),
        synthetic=_some([f"{call_id}: {reason}" for call_id, reason in report.synthetic]),
        dedupe=_some([f"{call_id}: {reason}" for call_id, reason in report.dedupe]),
    )


def _about(fault: Fault) -> str:
    words = [fault.fault_class, fault.rule or "no known rule", *_some(fault.call_ids)]
    return " ".join(words)


def _some(values: Sequence[str]) -> list[str]:
    more = [f"and {len(values) - MOST} more"] if len(values) > MOST else []
    return [*values[:MOST], *more]


@never_raising
def withheld(round_: str, reasons: Sequence[str]) -> None:
    """Log that a provider hid parts of a request from its model: reasoning that does not fit, our bug."""
    _logger().error("input_withheld", round=round_, reasons=sorted(set(reasons)))


@never_raising
def left_out(round_: str, counts: Mapping[str, int]) -> None:
    """Log what an answer held that the history does not, by the provider's word for it."""
    _logger().info("answer_left_out", round=round_, kinds=dict(counts))


def _tools() -> "logging.Logger":
    import logging

    return logging.getLogger("actors.tools")


def _logger() -> "FilteringBoundLogger":
    import logging

    import structlog

    processors = [structlog.processors.KeyValueRenderer(key_order=["event"])]
    logger: FilteringBoundLogger = structlog.wrap_logger(
        logging.getLogger("actors"), processors, wrapper_class=structlog.make_filtering_bound_logger(0)
    )
    return logger
