"""Log the runtime's events: ids, names and counts only, without content or keys.

All packages call these functions; each function logs one event. docs/reference/logging.md lists the events:

    error      requires action: a fault of this package or of the program's code, a journal that cannot write
    warning    the runtime continues with a restriction, or without a requested feature
    info       normal operation: a retry, a tool that raised, a rejected ask
    debug      tracebacks, including the messages of errors

No function here raises: an event that cannot be logged is lost. The program's logging configuration decides where
events go (`actors.telemetry.emission`).
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial, wraps
from itertools import islice, zip_longest
from typing import ParamSpec, TypeVar

from actors.core.stats.stats import ReuseStats
from actors.core.stream_events.results import AskResult
from actors.core.transcript.diagnostics import Refusal
from actors.core.values.identity import Binding
from actors.core.values.progress import Cause
from actors.errors import ActorsError, Fault
from actors.kernel.host_code import Listener, call_host
from actors.telemetry.emission import TOOLS, emit, is_wanted, printable, trace_of

MOST = 50
"""Maximum entries of a list in an event."""

P = ParamSpec("P")
T = TypeVar("T")


def never_raising(log: Callable[P, None]) -> Callable[P, None]:
    """Decorate a logging function so that it never raises: the program's handlers and processors may raise anything.

    The first failure of each exception type is reported on standard error.
    """

    @wraps(log)
    def safe(*args: P.args, **kwargs: P.kwargs) -> None:
        call_host(partial(log, *args, **kwargs), _on_log_failure)

    return safe


def _on_log_failure(error: BaseException) -> None:
    call_host(partial(_report_lost_event, type(error).__name__), lambda _: None)


@lru_cache(maxsize=16)
def _report_lost_event(error: str) -> None:
    if (stream := sys.stderr) is not None:
        print(f"actors: a log event is lost, because logging it raised {printable(error)}", file=stream)


@never_raising
def actor_crashed(actor: str, error: BaseException) -> None:
    """Log that an actor's handler or child raised; its supervisor reacts afterwards.

    The event has the place but no traceback: some renderers print local variables with tracebacks, and those contain
        keys.
    """
    emit("error", "actor_crashed", actor=actor, error=_describe(error), place=_place(error))


@never_raising
def host_code_failed(what: str, error: BaseException, then: str) -> None:
    """Log that a function of the program raised when the runtime called it, and the consequence.

    The error's message is not logged, because it may quote the function's arguments.
    """
    emit("error", "host_code_failed", what=what, error=_describe(error), place=_place(error), then=then)


def listener(name: str) -> Listener:
    """Return a caller for the program's callbacks that stops calling them after the first exception."""
    return Listener(partial(host_code_failed, name, then="switched off"))


def guard(name: str, callback: Callable[[T], object]) -> Callable[[T], object]:
    """Return a callback of the program that never raises, and that is disabled after its first exception."""
    safe = listener(name)
    return lambda event: safe.call(lambda: callback(event))


def _place(error: BaseException) -> str:
    """Return the file and line that raised an error."""
    place, step = "unknown", error.__traceback__
    while step is not None:
        place = f"{step.tb_frame.f_code.co_filename}:{step.tb_lineno}"
        step = step.tb_next
    return place


def _kind(error: BaseException) -> str:
    return type(error).__name__


def _describe(error: BaseException) -> str:
    """Return an error's type, and for this package's errors also the message: other messages may quote content."""
    kind = _kind(error)
    return f"{kind}: {error}"[:500] if isinstance(error, ActorsError) else kind


@never_raising
def tool_failed(session: str, call_id: str, tool: str, error: BaseException) -> None:
    """Log that a tool raised, which is normal: the model receives the error. The message is only in the traceback."""
    if is_wanted("info", TOOLS):
        kind, place = _kind(error), _place(error)
        emit(
            "info",
            "tool_failed",
            logger=TOOLS,
            session=session,
            call=call_id,
            tool=tool,
            error=kind,
            place=place,
        )
    if is_wanted("debug", TOOLS):
        trace = trace_of(error)
        emit("debug", "tool_traceback", logger=TOOLS, trace=trace, session=session, call=call_id, tool=tool)


@never_raising
def tool_spoiled(session: str, tool: str, error: BaseException) -> None:
    """Log that a tool left its task unusable, for example with an open task group."""
    advice = "a task group or cancel scope was left open; keep what outlives a call in a task of your own"
    emit(
        "warning",
        "tool_spoiled",
        logger=TOOLS,
        session=session,
        tool=tool,
        error=_kind(error),
        advice=advice,
    )


@never_raising
def memory_short(reuse: ReuseStats) -> None:
    """Log that many sessions must be rebuilt from their logs when they are used again. Logged once."""
    advice = "sessions that take turns do not fit limits.memory; raise it, or spread them over more processes"
    emit("warning", "memory_short", hits=reuse.hits, rebuilds=reuse.rebuilds, advice=advice)


@never_raising
def collector_untuned(sessions: int) -> None:
    """Log that the garbage collector takes avoidable time. Logged at most once."""
    advice = "Runtime(gc='tuned') if this process is mainly for sessions, or gc.set_threshold of your own"
    emit("warning", "collector_untuned", count=sessions, advice=advice)


@never_raising
def toolset_lost(toolset: str, error: BaseException | None, seconds: float) -> None:
    """Log that a toolset is disconnected or could not be reopened, and the seconds until the next attempt."""
    kind = "none" if error is None else _describe(error)
    emit("warning", "toolset_lost", toolset=toolset, error=kind, next_try=round(seconds, 1))


@never_raising
def journal_unavailable(why: str) -> None:
    """Log that the journal cannot write. Logged once per failure; `journal_available` follows."""
    advice = "fix the cause; sessions then continue from their logs, without a restart"
    emit("error", "journal_unavailable", why=why, advice=advice)


@never_raising
def journal_available(seconds: float) -> None:
    """Log that the journal can write again."""
    emit("warning", "journal_available", seconds=round(seconds, 1))


@never_raising
def journal_damaged(why: str, copy: str | None = None) -> None:
    """Log that a journal is damaged; `copy` is the copy of a file that was opened without its last events."""
    if copy is None:
        emit(
            "error",
            "journal_damaged",
            why=why,
            advice="restore a copy, or save what can be read: `actors sessions fsck`",
        )
    else:
        advice = (
            "it goes on without the events after the damage; look at the copy with `actors sessions fsck`"
        )
        emit("error", "journal_damaged", why=why, copy=copy, advice=advice)


@never_raising
def journal_unclosed(error: BaseException) -> None:
    """Log that the journal could not be closed properly when its runtime was left."""
    emit("warning", "journal_unclosed", error=_describe(error))


@never_raising
def events_lost(session: str, first: int, last: int) -> None:
    """Log that the journal's storage has lost acknowledged events of a session."""
    advice = "a failover to a server that lagged, or a restored copy; make replication synchronous"
    emit("error", "events_lost", session=session, first=first, last=last, advice=advice)


@never_raising
def retention_deleted(sessions: int) -> None:
    """Log that sessions have expired."""
    emit("info", "retention_deleted", count=sessions)


@never_raising
def retention_waits(sessions: Sequence[str], count: int, seconds: int) -> None:
    """Log sessions that seem to have expired, while the clock has not been observed for long enough to delete them.

    Args:
        sessions: Some of their ids.
        count: The number of sessions.
        seconds: Seconds of observation that are missing before they are deleted.
    """
    advice = (
        "if the clock is right, `actors sessions delete --older-than DATE` deletes them now; if not, set it"
    )
    emit(
        "warning",
        "retention_waits",
        sessions=list(sessions[:MOST]),
        count=count,
        seconds=seconds,
        advice=advice,
    )


@never_raising
def deleted_data_remains(places: Sequence[str], reasons: Sequence[str]) -> None:
    """Log the places that still hold data of deleted sessions after a sweep, and why it could not be removed."""
    emit(
        "warning",
        "deleted_data_remains",
        places=list(places[:MOST]),
        count=len(places),
        reasons=list(dict.fromkeys(reasons))[:MOST],
    )


@never_raising
def retention_failed(error: BaseException) -> None:
    """Log that data could not be deleted. The deletion is retried."""
    emit("warning", "retention_failed", error=_describe(error))


@never_raising
def tool_left_out(toolset: str, tool: str, error: ActorsError) -> None:
    """Log that a toolset's tool was dropped, and why."""
    emit("warning", "tool_left_out", toolset=toolset, tool=tool[:200], error=_describe(error))


@never_raising
def tools_held(session: str, why: str) -> None:
    """Log that tools which changed within a turn are only declared by the next ask, and why."""
    emit("info", "tools_held", session=session, why=why)


@never_raising
def answer_refused(toolset: str, error: ActorsError) -> None:
    """Log that a message of a tool server was not read, and why."""
    emit("warning", "answer_refused", toolset=toolset, error=_describe(error))


@never_raising
def toolset_unclosed(toolset: str, error: BaseException) -> None:
    """Log that a toolset raised when it was closed, or did not close in time."""
    emit("warning", "toolset_unclosed", toolset=toolset, error=_describe(error))


@never_raising
def toolset_stuck(toolset: str) -> None:
    """Log that a toolset is still running after its closing was cancelled. The runtime no longer waits for it."""
    emit("warning", "toolset_stuck", toolset=toolset)


@never_raising
def tool_barred(tool: str, calls: int) -> None:
    """Log that a tool is disabled for now, because too many of its abandoned calls are still running."""
    advice = (
        "it swallows its cancellation or blocks its thread; calls of it are refused until some have ended"
    )
    emit("warning", "tool_barred", logger=TOOLS, tool=tool, running=calls, advice=advice)


@never_raising
def loop_stalled(session: str, call_id: str, tool: str, seconds: float, place: str) -> None:
    """Log that a tool blocks the event loop, and where. Called in another thread."""
    advice = "an async tool must not block: await, or make it a plain function, which runs in a thread"
    emit(
        "warning",
        "loop_stalled",
        logger=TOOLS,
        session=session,
        call=call_id,
        tool=tool,
        seconds=round(seconds, 1),
        place=place,
        advice=advice,
    )


@never_raising
def tools_running(names: Sequence[str]) -> None:
    """Log the tools that are still running after the runtime was left and that could not be stopped."""
    if names:
        emit("warning", "tools_running", logger=TOOLS, tools=_some_names(sorted(set(names))))


@never_raising
def never_left() -> None:
    """Log that the event loop ended before its runtime was left."""
    emit("warning", "runtime_never_left", advice="enter it with 'async with', or call __aexit__")


@never_raising
def slow_handler(actor: str, message: str, seconds: float) -> None:
    """Log that a handler blocked all other actors. This is normal on a busy machine, so the level is info."""
    emit("info", "slow_handler", actor=actor, command=message, seconds=round(seconds, 3))


@never_raising
def media_refused(session: str, binding: Binding, cause: Cause) -> None:
    """Log that a provider rejected attachments: notes replace them in that lane from now on."""
    emit("warning", "media_refused", session=session, binding=str(binding), http_status=cause.status)


@never_raising
def parameter_refused(binding: Binding, parameter: str, *, is_value: bool) -> None:
    """Log that a provider rejects an optional parameter, or its value, for this binding.

    Logged once: the parameter is omitted from now on. The provider's message is in `runtime.stats().learned`.
    """
    what = "value" if is_value else "parameter"
    emit("warning", "parameter_refused", binding=str(binding), parameter=parameter, what=what)


@never_raising
def ask_failed(session: str, result: AskResult, advise: Callable[[AskResult], str]) -> None:
    """Log that an ask failed. Messages of providers are only in the result."""
    cause = result.attempts[-1].cause if result.attempts else None
    emit(
        "warning",
        "ask_failed",
        session=session,
        backend=result.binding.backend,
        model=result.binding.model,
        kind=None if cause is None else cause.kind,
        http_status=None if cause is None else cause.status,
        attempts=len(result.attempts),
        rounds=result.rounds,
        advice=advise(result),
    )


@never_raising
def ask_interrupted(session: str, result: AskResult) -> None:
    """Log that an ask was ended by a restart of its session's actors or of its process."""
    served = result.binding
    emit("info", "ask_interrupted", session=session, backend=served.backend, model=served.model)


@never_raising
def ask_refused(session: str, error: ActorsError) -> None:
    """Log that an ask was rejected, or waited too long; its caller receives the same error."""
    emit("info", "ask_refused", session=session, error=_describe(error))


@never_raising
def request_failed(session: str, binding: Binding, cause: Cause, error: str, wait: float | None) -> None:
    """Log that a request failed; `wait` is the seconds until it is retried, None if it is not."""
    status = cause.status
    if wait is None:
        emit(
            "info",
            "request_failed",
            session=session,
            backend=binding.backend,
            model=binding.model,
            kind=cause.kind,
            http_status=status,
            error=error,
        )
    else:
        emit(
            "info",
            "request_retried",
            session=session,
            backend=binding.backend,
            model=binding.model,
            kind=cause.kind,
            http_status=status,
            error=error,
            wait=round(wait, 3),
        )


@never_raising
def ask_failed_over(session: str, binding: Binding, cause: Cause | None, following: str) -> None:
    """Log that the next backend of a pool continues an ask, because a turn on this backend failed."""
    emit(
        "info",
        "ask_failed_over",
        session=session,
        backend=binding.backend,
        model=binding.model,
        kind=None if cause is None else cause.kind,
        http_status=None if cause is None else cause.status,
        following=following,
    )


@never_raising
def circuit_opened(backend: str, seconds: float, failures: int) -> None:
    """Log that a backend's circuit breaker opened.

    Either too many consecutive requests failed, or the provider requested a long wait.
    """
    emit("warning", "circuit_opened", backend=backend, seconds=round(seconds, 1), failures=failures)


@never_raising
def circuit_closed(backend: str) -> None:
    """Log that a backend has answered, so that its circuit is closed again."""
    emit("warning", "circuit_closed", backend=backend)


@never_raising
def session_taken_over(session: str, host: str) -> None:
    """Log that this host continues a session of another host whose lease has expired."""
    emit("info", "session_taken_over", session=session, host=host)


@never_raising
def session_fenced(session: str, error: ActorsError) -> None:
    """Log that a session has ended here, because another host took it over or the journal lost it."""
    emit("warning", "session_fenced", session=session, error=_describe(error))


@never_raising
def transcript_refused(refusal: Refusal) -> None:
    """Log that a provider or the judge rejected a transcript for its structure, which is a bug of this package.

    Calls are written as `canonical id=wire id`, and long lists are cut. A provider's message may quote the request, so
    `why` is only logged for the judge; `runtime.refusals` has both.
    """
    report = refusal.report
    sent_as = zip_longest(
        report.calls, report.emitted_calls, fillvalue=""
    )  # the conservative render emits no calls
    emit(
        "error",
        "transcript_refused",
        session=refusal.session,
        binding=str(refusal.binding),
        by=refusal.by,
        why=refusal.why if refusal.by == "judge" else "",
        dialect=report.dialect,
        faults=_some_names([_describe_fault(fault) for fault in report.faults]),
        calls=_some_names([f"{known}={sent}" if sent else known for known, sent in sent_as]),
        results=_some_names(report.emitted_results),
        synthetic=_some_names([f"{call_id}: {reason}" for call_id, reason in report.synthetic]),
        dedupe=_some_names([f"{call_id}: {reason}" for call_id, reason in report.dedupe]),
    )


def _describe_fault(fault: Fault) -> str:
    words = [fault.fault_class, fault.rule or "no known rule", *_some_names(fault.call_ids)]
    return " ".join(words)


def _some_names(values: Sequence[str]) -> list[str]:
    more = [f"and {len(values) - MOST} more"] if len(values) > MOST else []
    return [*values[:MOST], *more]


@never_raising
def withheld(round_: str, reasons: Sequence[str]) -> None:
    """Log that a provider hid parts of a request from its model: reasoning that does not fit, a bug of this package."""
    emit("error", "input_withheld", round=round_, reasons=_some_names(sorted(set(reasons))))


@never_raising
def left_out(round_: str, counts: Mapping[str, int]) -> None:
    """Log the parts of an answer that the history does not contain, by the provider's names for them."""
    emit("info", "answer_left_out", round=round_, kinds=dict(islice(counts.items(), MOST)))
