"""What callers bring for a turn that waits: read, checked, and recorded.

What is read here has the types of the log: a record that holds others could not be read again.

Results of external calls that no turn waits for any more are recorded all the same: the ledger says what they are, a
late result, a duplicate, or nothing new. That a call was handed out once is in the log, whatever became of its tool.
"""

from collections.abc import Mapping
from contextvars import Context as Variables
from typing import Any, TypeAlias, get_args

from actors.core.data.jsonio import JsonValue
from actors.core.ledger import Ledger
from actors.core.log.events import ApprovalDecided, Failed, Returned, TurnPaused, Verdict
from actors.core.session.awaiting import approved, pending, publisher_at
from actors.core.stream_events.results import PendingCall
from actors.core.turn.batch import denied
from actors.core.values.content import ToolCall
from actors.core.values.identity import CallId
from actors.errors import DecisionRefused, NotAwaited, SessionError
from actors.journal.live_events import LiveEvents
from actors.journal.log import Generation, LogWriter
from actors.journal.pages import LogPages
from actors.scheduler.scheduler_actor import CheckCall, EndCalls
from actors.session.commands import ResolutionRecorded
from actors.session.inflight import SessionRefs
from actors.session.pending import Bring, Decision, HostCall
from actors.session.session_ledger import SessionLedger
from actors.tools import Tool

Brought: TypeAlias = tuple[Returned | Failed, ...] | Decision
"""What a program brings for a turn that waits: ends of external calls, or a decision."""


def checked_results(results: Mapping[str, object]) -> Mapping[str, object]:
    """Return results that callers bring, by the ids of their calls.

    Raises:
        NotAwaited: It is no mapping of call ids to results, or an empty one.
    """
    given: object = results  # what is written here may be anything
    if not (isinstance(given, Mapping) and given and all(isinstance(call_id, str) for call_id in given)):
        raise NotAwaited(f"Results are brought by the ids of their calls, as {{call.id: 21}}; {_what(given)}")
    return results


def host_call(
    session: str,
    tools: Mapping[str, Tool[..., Any]],  # Any: any function
    name: str,
    arguments: Mapping[str, JsonValue] | None,
) -> HostCall:
    """Return the call of a tool that the program makes itself.

    Raises:
        SessionError: The session has no such tool, or it has no body; or the arguments are not given by name.
    """
    given: object = arguments
    if not isinstance(given, Mapping | None):
        raise SessionError(f"call_tool() takes arguments by their names, not a {type(given).__name__}")
    tool = tools.get(name)
    if tool is None or tool.is_external:
        what = "has no body" if tool else f"is not among {', '.join(tools) or 'none'}"
        raise SessionError(f"Session {session!r} cannot run tool {str(name)[:80]!r}: it {what}")
    return HostCall(name, ToolCall("", "", dict(arguments or {})).json)


def _what(given: object) -> str:
    if not isinstance(given, Mapping):
        return f"this is of type {type(given).__name__}"
    return "one of these is no text" if given else "there are none"


def decision(
    call_id: str, verdict: Verdict, reason: str, arguments: Mapping[str, JsonValue] | None, digest: str | None
) -> Decision:
    """Return what somebody says about a call that asked for approval.

    Raises:
        DecisionRefused: One of these is not what it must be.
    """
    said: object = reason
    edited: object = arguments
    if verdict not in get_args(Verdict):
        raise DecisionRefused(f"A decision is 'allow' or 'deny', not {verdict!r}")
    if not isinstance(said, str):
        raise DecisionRefused(f"reason= takes a text, not {type(said).__name__}")
    if not isinstance(edited, Mapping | None):
        raise DecisionRefused(f"arguments= takes a mapping, not {type(edited).__name__}")
    json = None if arguments is None else ToolCall("", "", dict(arguments)).json
    return Decision(CallId(call_id), verdict, reason, json, digest)


async def record(
    log: LogWriter, refs: SessionRefs, ledger: SessionLedger, bring: Bring, generation: Generation
) -> ResolutionRecorded:
    """Record results or a decision, and return the state of the turn for its session, or the refusal."""
    try:
        seq = await _record(log, refs, ledger, bring, generation.live)
    except SessionError as error:
        return ResolutionRecorded(generation.number, error=error)
    known, state = await ledger.query(), log.state
    return ResolutionRecorded(generation.number, pending(state, known), approved(state, known), seq)


async def _record(
    log: LogWriter, refs: SessionRefs, ledger: SessionLedger, bring: Bring, live: LiveEvents
) -> int:
    """Record what was brought; return the number of its last event.

    Raises:
        NotAwaited: A call of it was never handed out, or waits for something else. Nothing is recorded.
        DecisionRefused: It is a decision about other arguments than the call has, or with wrong ones.
    """
    known = await ledger.query()
    waits = {each.call.id: each for each in pending(log.state, known)}
    if log.state.pause is not None and live.is_idle:
        live.begin(bring.sink, publisher_at(log.state, known))
    if isinstance(bring.brought, Decision):
        return await _decided(log, refs, bring, bring.brought, waits)
    await _check_handed_out(log, refs, bring.brought, waits, known)
    return (await refs.scheduler.ask(EndCalls(bring.brought))).seq


async def _check_handed_out(
    log: LogWriter,
    refs: SessionRefs,
    ends: tuple[Returned | Failed, ...],
    waits: Mapping[CallId, PendingCall],
    ledger: Ledger,
) -> None:
    """Refuse results of calls that were never handed out; most are awaited, and for the others the log is read."""
    for end in ends:
        if end.call_id in waits and waits[end.call_id].kind == "approval":
            raise NotAwaited(f"Call {end.call_id!r} waits for a decision, not for a result; use decide()")
    late = {end.call_id for end in ends if end.call_id not in waits}
    if not late:
        return
    if all(call_id in ledger for call_id in late):
        async for page in LogPages(refs.journal, log.state.session, urgent=True):
            late -= {
                each for event in page.events if isinstance(event, TurnPaused) for each in event.external
            }
    if late:
        raise NotAwaited(f"No external call {min(late)!r} was handed out; awaited are: {_named(waits)}")


async def _decided(
    log: LogWriter,
    refs: SessionRefs,
    bring: Bring,
    decision: Decision,
    waits: Mapping[CallId, PendingCall],
) -> int:
    found = waits.get(decision.call_id)
    if found is None or (found.kind == "external" and decision.verdict == "allow"):
        what = (
            "waits for its result; use provide()"
            if found
            else f"is not awaited; awaited are: {_named(waits)}"
        )
        raise NotAwaited(f"Call {decision.call_id!r} {what}")
    await _check_bound(refs, decision, found, bring.variables)
    call = found.call
    event = ApprovalDecided(
        call.id, call.name, found.digest, decision.verdict, decision.reason, decision.arguments
    )
    if decision.verdict == "allow":
        return await log.write(event)
    log.hold(event)
    return (await refs.scheduler.ask(EndCalls((denied(call, decision.reason),)))).seq


async def _check_bound(
    refs: SessionRefs, decision: Decision, found: PendingCall, variables: Variables
) -> None:
    """Refuse a decision about other arguments than the call has, and one that would run it with wrong ones."""
    if decision.digest not in (None, found.digest):
        raise DecisionRefused(
            f"The decision is about arguments {decision.digest}, call {found.call.id!r} has {found.digest}; look again"
        )
    if decision.arguments is not None:
        edited = found.call.with_arguments(decision.arguments)
        if errors := await refs.scheduler.ask(CheckCall(edited, variables)):
            wrong = ", ".join(error.path or "arguments" for error in errors)
            raise DecisionRefused(f"The arguments given for call {found.call.id!r} are wrong: {wrong}")


def _named(waits: Mapping[CallId, PendingCall]) -> str:
    return ", ".join(waits) or "none"
