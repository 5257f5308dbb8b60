"""Log the runtime's events, with ids, names and counts, but without content or keys.

All packages call these functions. Each function logs one event; docs/reference/logging.md lists the events:

    error      requires action: a bug in this package or in the program, or a journal that cannot write
    warning    the runtime continues with a restriction, or without a requested feature
    info       normal operation: a retry, a tool that raised, a rejected ask
    debug      tracebacks, including the messages of errors

No function here raises: an event that cannot be logged is dropped. The program's logging configuration decides where
events go (`actors.telemetry.emission`).
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice, zip_longest
from typing import TYPE_CHECKING

from actors.telemetry.emission import (
    MAX_ENTRIES,
    TOOLS,
    describe_error,
    describe_fault,
    emit,
    error_type,
    format_traceback,
    is_level_enabled,
    limit_names,
    never_raising,
    raise_location,
)

if TYPE_CHECKING:  # every package imports this module
    from actors.core.stats.stats import ReuseStats
    from actors.core.stream_events.ask_events import AskResult
    from actors.core.transcript.diagnostics import Refusal
    from actors.core.values.identity import Binding
    from actors.core.values.progress import Cause
    from actors.errors import ActorsError


@never_raising
def actor_crashed(actor: str, error: BaseException) -> None:
    """Log that an actor's handler or child raised an error, before the actor's supervisor reacts.

    The event contains the file and line of the error, but no traceback. Some log renderers print local variables with a
    traceback, and these variables may contain keys.
    """
    emit("error", "actor_crashed", actor=actor, error=describe_error(error), place=raise_location(error))


@never_raising
def host_code_failed(function: str, error: BaseException, consequence: str) -> None:
    """Log that a function of the program raised an error when the runtime called it.

    The error's message is not logged, because it may quote the function's arguments.

    Args:
        function: Name of the function.
        error: The error.
        consequence: What the runtime does as a result, such as `switched off`.
    """
    emit(
        "error",
        "host_code_failed",
        what=function,
        error=describe_error(error),
        place=raise_location(error),
        then=consequence,
    )


@never_raising
def tool_failed(session: str, call_id: str, tool: str, error: BaseException) -> None:
    """Log that a tool raised an error, which the model receives as the result.

    The error's message may quote content, so it appears only in the traceback, at level debug.
    """
    if is_level_enabled("info", TOOLS):
        kind, place = error_type(error), raise_location(error)
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
    if is_level_enabled("debug", TOOLS):
        trace = format_traceback(error)
        emit("debug", "tool_traceback", logger=TOOLS, trace=trace, session=session, call=call_id, tool=tool)


@never_raising
def tool_spoiled(session: str, tool: str, error: BaseException) -> None:
    """Log that a tool corrupted its task, for example because it left a task group open."""
    advice = (
        "the tool left a task group or cancel scope open; run work that outlives a call in a separate task"
    )
    emit(
        "warning",
        "tool_spoiled",
        logger=TOOLS,
        session=session,
        tool=tool,
        error=error_type(error),
        advice=advice,
    )


@never_raising
def memory_short(reuse: "ReuseStats") -> None:
    """Log that many sessions are rebuilt from their logs, because memory is too small to keep them. Logged once."""
    advice = "raise limits.memory so that more sessions fit, or distribute the sessions over more processes"
    emit("warning", "memory_short", hits=reuse.hits, rebuilds=reuse.rebuilds, advice=advice)


@never_raising
def collector_untuned(sessions: int) -> None:
    """Log that Python's garbage collector takes time that the setting `gc="tuned"` could save. Logged at most once."""
    advice = (
        "pass gc='tuned' to Runtime if this process mainly runs sessions, or call gc.set_threshold yourself"
    )
    emit("warning", "collector_untuned", count=sessions, advice=advice)


@never_raising
def toolset_lost(toolset: str, error: BaseException | None, seconds: float) -> None:
    """Log that a toolset is disconnected or could not be reopened. The next attempt begins after `seconds`."""
    kind = "none" if error is None else describe_error(error)
    emit("warning", "toolset_lost", toolset=toolset, error=kind, next_try=round(seconds, 1))


@never_raising
def journal_unavailable(reason: str) -> None:
    """Log that the journal cannot write. Logged once per outage; `journal_available` logs the end of the outage."""
    advice = "fix the cause; sessions then continue from their logs, without a restart"
    emit("error", "journal_unavailable", reason=reason, advice=advice)


@never_raising
def journal_available(seconds: float) -> None:
    """Log that the journal can write again, after an outage of `seconds`."""
    emit("warning", "journal_available", seconds=round(seconds, 1))


@never_raising
def journal_damaged(reason: str, copy: str | None = None) -> None:
    """Log that a journal is damaged.

    If the damaged file is opened without its last events, `copy` is the path of a copy that was saved first.
    """
    if copy is None:
        emit(
            "error",
            "journal_damaged",
            reason=reason,
            advice="restore a copy, or save what can be read: `actors sessions fsck`",
        )
    else:
        advice = "the journal continues without the events after the damage; check the copy with `actors sessions fsck`"
        emit("error", "journal_damaged", reason=reason, copy=copy, advice=advice)


@never_raising
def journal_unclosed(error: BaseException) -> None:
    """Log that the journal raised an error when the runtime closed it."""
    emit("warning", "journal_unclosed", error=describe_error(error))


@never_raising
def events_lost(session: str, first: int, last: int) -> None:
    """Log that the journal's storage has lost acknowledged events of a session, from number `first` to `last`."""
    advice = "the database failed over to a server that lagged, or was restored; use synchronous replication"
    emit("error", "events_lost", session=session, first=first, last=last, advice=advice)


@never_raising
def retention_deleted(sessions: int) -> None:
    """Log the number of expired sessions that were deleted."""
    emit("info", "retention_deleted", count=sessions)


@never_raising
def retention_waits(sessions: Sequence[str], count: int, seconds: int) -> None:
    """Log sessions that seem expired but are kept, because the clock was not observed long enough to trust their age.

    Args:
        sessions: Ids of some of the sessions.
        count: The number of all the sessions.
        seconds: Seconds for which the clock must still be observed before the sessions are deleted.
    """
    advice = (
        "if the clock is right, delete the sessions now with `actors sessions delete --older-than DATE`; "
        "otherwise set the clock"
    )
    emit(
        "warning",
        "retention_waits",
        sessions=list(sessions[:MAX_ENTRIES]),
        count=count,
        seconds=seconds,
        advice=advice,
    )


@never_raising
def deleted_data_remains(places: Sequence[str], reasons: Sequence[str]) -> None:
    """Log the places that still contain data of deleted sessions after a sweep, and why the data was not removed."""
    emit(
        "warning",
        "deleted_data_remains",
        places=list(places[:MAX_ENTRIES]),
        count=len(places),
        reasons=list(dict.fromkeys(reasons))[:MAX_ENTRIES],
    )


@never_raising
def retention_failed(error: BaseException) -> None:
    """Log that expired data could not be deleted. The deletion is retried later."""
    emit("warning", "retention_failed", error=describe_error(error))


@never_raising
def tool_left_out(toolset: str, tool: str, error: "ActorsError") -> None:
    """Log that a toolset's tool is not declared to models, and the reason."""
    emit("warning", "tool_left_out", toolset=toolset, tool=tool[:200], error=describe_error(error))


@never_raising
def tools_held(session: str, reason: str) -> None:
    """Log that changed tools are not declared before the next ask, and why the current turn cannot declare them."""
    emit("info", "tools_held", session=session, reason=reason)


@never_raising
def answer_refused(toolset: str, error: "ActorsError") -> None:
    """Log that a message of a tool server was ignored, and the reason."""
    emit("warning", "answer_refused", toolset=toolset, error=describe_error(error))


@never_raising
def toolset_unclosed(toolset: str, error: BaseException) -> None:
    """Log that closing a toolset raised an error or took too long."""
    emit("warning", "toolset_unclosed", toolset=toolset, error=describe_error(error))


@never_raising
def toolset_stuck(toolset: str) -> None:
    """Log that a toolset still runs although its closing was cancelled. The runtime no longer waits for the toolset."""
    emit("warning", "toolset_stuck", toolset=toolset)


@never_raising
def tool_barred(tool: str, calls: int) -> None:
    """Log that new calls of a tool are rejected for now, because too many of its abandoned calls still run."""
    advice = "the tool ignores cancellation or blocks its thread; new calls are rejected until some running calls end"
    emit("warning", "tool_barred", logger=TOOLS, tool=tool, running=calls, advice=advice)


@never_raising
def loop_stalled(session: str, call_id: str, tool: str, seconds: float, location: str) -> None:
    """Log that a tool blocks the event loop, with the line at which it blocks. Called from a separate thread."""
    advice = "an async tool must not block; await instead, or use a plain function, which runs in a thread"
    emit(
        "warning",
        "loop_stalled",
        logger=TOOLS,
        session=session,
        call=call_id,
        tool=tool,
        seconds=round(seconds, 1),
        place=location,
        advice=advice,
    )


@never_raising
def request_given_up(session: str, error: "ActorsError") -> None:
    """Log that a router found no host that answered a request, and why. The client does not receive the reason."""
    emit("info", "request_given_up", session=session, error=describe_error(error))


@never_raising
def request_lost(session: str) -> None:
    """Log that a router gave up a request because several hosts did not answer after it was sent to them."""
    emit("warning", "request_lost", session=session)


@never_raising
def tools_running(names: Sequence[str]) -> None:
    """Log the tools that could not be stopped and still run after the runtime has ended."""
    if names:
        emit("warning", "tools_running", logger=TOOLS, tools=limit_names(sorted(set(names))))


@never_raising
def runtime_never_left() -> None:
    """Log that the event loop ended while its runtime was still open."""
    emit("warning", "runtime_never_left", advice="enter the runtime with 'async with', or call __aexit__")


@never_raising
def slow_handler(actor: str, message: str, seconds: float) -> None:
    """Log that a message handler blocked all other actors for `seconds`.

    Other processes on a busy machine may be the cause, so the level is info.
    """
    emit("info", "slow_handler", actor=actor, command=message, seconds=round(seconds, 3))


@never_raising
def media_refused(session: str, binding: "Binding", cause: "Cause") -> None:
    """Log that a provider rejected attachments.

    From now on, requests to the provider contain notes in place of the attachments.
    """
    emit("warning", "media_refused", session=session, binding=str(binding), http_status=cause.status)


@never_raising
def parameter_refused(binding: "Binding", parameter: str, *, is_value: bool) -> None:
    """Log that a provider rejects an optional parameter, or its value, for this binding.

    This is logged once, because later requests omit the parameter. `runtime.stats().learned` has the provider's
    message.
    """
    what = "value" if is_value else "parameter"
    emit("warning", "parameter_refused", binding=str(binding), parameter=parameter, what=what)


@never_raising
def ask_failed(session: str, result: "AskResult", advise: "Callable[[AskResult], str]") -> None:
    """Log that an ask failed, without the provider's message, which only the result contains."""
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
def ask_interrupted(session: str, result: "AskResult") -> None:
    """Log that an ask ended because its session's actors or its process restarted."""
    served = result.binding
    emit("info", "ask_interrupted", session=session, backend=served.backend, model=served.model)


@never_raising
def ask_refused(session: str, error: "ActorsError") -> None:
    """Log that an ask was rejected, or waited too long in the queue. Its caller receives the same error."""
    emit("info", "ask_refused", session=session, error=describe_error(error))


@never_raising
def request_failed(session: str, binding: "Binding", cause: "Cause", error: str, wait: float | None) -> None:
    """Log that a request failed. `wait` is the time in seconds until its retry; None if it is not retried."""
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
def ask_failed_over(session: str, binding: "Binding", cause: "Cause | None", following: str) -> None:
    """Log that a turn failed, and another backend of the pool continues the ask.

    Args:
        session: The session of the ask.
        binding: The binding of the failed turn.
        cause: The reason for the failure.
        following: Name of the backend that continues the ask.
    """
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
    """Log that a backend's circuit breaker opened for `seconds`.

    Either too many consecutive requests failed, or the provider requested a long wait.
    """
    emit("warning", "circuit_opened", backend=backend, seconds=round(seconds, 1), failures=failures)


@never_raising
def circuit_closed(backend: str) -> None:
    """Log that a backend's circuit breaker closed again, because the backend has answered."""
    emit("warning", "circuit_closed", backend=backend)


@never_raising
def session_taken_over(session: str, host: str) -> None:
    """Log that this host continues a session of another host, whose lease has expired."""
    emit("info", "session_taken_over", session=session, host=host)


@never_raising
def session_fenced(session: str, error: "ActorsError") -> None:
    """Log that a session has ended in this process, because another host took it over or the journal lost it."""
    emit("warning", "session_fenced", session=session, error=describe_error(error))


@never_raising
def transcript_refused(refusal: "Refusal") -> None:
    """Log that a provider or this package's own check (the judge) rejected a transcript because of its structure.

    The invalid structure is a bug in this package. Calls are logged as `canonical id=wire id`, and long lists are
    truncated. The judge's message is logged. The message of a provider may quote the request, so only
    `runtime.refusals` contains it.
    """
    report = refusal.report
    # A render that sends tool calls as text emits no calls, so the second list may be empty.
    sent_as = zip_longest(report.calls, report.emitted_calls, fillvalue="")
    emit(
        "error",
        "transcript_refused",
        session=refusal.session,
        binding=str(refusal.binding),
        by=refusal.by,
        reason=refusal.reason if refusal.by == "judge" else "",
        dialect=report.dialect,
        faults=limit_names([describe_fault(fault) for fault in report.faults]),
        calls=limit_names([f"{known}={sent}" if sent else known for known, sent in sent_as]),
        results=limit_names(report.emitted_results),
        synthetic=limit_names([f"{call_id}: {reason}" for call_id, reason in report.synthetic]),
        dedupe=limit_names([f"{call_id}: {reason}" for call_id, reason in report.dedupe]),
    )


@never_raising
def input_withheld(round_: str, reasons: Sequence[str]) -> None:
    """Log that a provider removed invalid reasoning from a request before its model read the request.

    The invalid reasoning is a bug in this package.
    """
    emit("error", "input_withheld", round=round_, reasons=limit_names(sorted(set(reasons))))


@never_raising
def answer_left_out(round_: str, counts: Mapping[str, int]) -> None:
    """Log how many items of an answer are missing from the history. `counts` is by the provider's types of items."""
    emit("info", "answer_left_out", round=round_, kinds=dict(islice(counts.items(), MAX_ENTRIES)))
