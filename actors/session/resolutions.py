"""Check and record the results and decisions that callers pass for a turn that waits.

In:  the mappings of `Session.ask(results=, approvals=)`, by call id.
Out: their events in the log, all in one append, or an error and no event.

Types are checked here, because a log record with a value of a wrong type could not be decoded again.

Results of external calls are recorded even if no turn waits for them any more. The ledger decides whether a result is
late, a duplicate or already known. The log shows which calls were external, even if the session no longer has the tool.
"""

from collections.abc import Collection, Mapping
from contextvars import Context as Variables
from typing import Any, Final, TypeVar, get_args

from actors.core.data.jsonio import JsonValue
from actors.core.data.truncate import SizeLimits
from actors.core.ledger import Ledger
from actors.core.log.call_events import Failed, Returned
from actors.core.log.events import ApprovalDecided, TurnPaused, Verdict
from actors.core.session.awaiting import approved_calls, pending_calls, publisher_at
from actors.core.stream_events.results import ApprovalDecision, Approvals, CallResults, PendingCall
from actors.core.turn.batch import denial
from actors.core.values.content import ToolCall
from actors.core.values.identity import CallId
from actors.errors import ConfigError, DecisionRefused, NotAwaited, SessionError
from actors.journal.live_events import LiveEvents
from actors.journal.log import Generation, LogWriter
from actors.journal.pages import LogPages
from actors.scheduler.calls import external_ends
from actors.scheduler.scheduler_actor import CheckCall, EndCalls
from actors.session.commands import ResolutionRecorded
from actors.session.inflight import SessionRefs
from actors.session.pending import Decision, HostCall, Resolutions, Resolve
from actors.session.session_ledger import SessionLedger
from actors.tools import Tool

V = TypeVar("V")

_CHOICE: Final = "An ask takes a message, or results= and approvals= for the ask that waits"


def check_choice(
    message: object,
    results: object,
    approvals: object,
    settings: Collection[str] = (),
    output: object = None,
    key: object = None,
) -> None:
    """Check that an ask has either a message, or results and decisions without settings.

    Raises:
        ConfigError: The ask has both or neither, or settings together with results or decisions.
    """
    resolves = results is not None or approvals is not None
    if message is None and not resolves:
        raise ConfigError(f"{_CHOICE}; this has neither")
    if message is not None and resolves:
        raise ConfigError(f"{_CHOICE}; this has both")
    others = {"output": output, "key": key}
    extra = [*settings, *(name for name, value in others.items() if value is not None)]
    if resolves and extra:
        named = ", ".join(f"{name}=" for name in extra)
        raise ConfigError(f"A waiting ask keeps its settings, so results= and approvals= allow no {named}")


def resolutions(results: CallResults | None, approvals: Approvals | None, limits: SizeLimits) -> Resolutions:
    """Convert the results and decisions that a caller passes to the form in which they are recorded.

    Raises:
        NotAwaited: An argument is not a mapping by call id, or both are empty.
        DecisionRefused: A decision has a wrong type.
        ConfigError: A call has both a result and a decision.
    """
    ended = _by_call_id("results= takes a mapping of call ids to results, such as {call.id: 21}", results)
    decided = _by_call_id(
        'approvals= takes a mapping of call ids to decisions, such as {call.id: ApprovalDecision("allow")}',
        approvals,
    )
    if not (ended or decided):
        raise NotAwaited("results= and approvals= are empty; pass at least one result or decision by call id")
    if both := ended.keys() & decided.keys():
        raise ConfigError(f"Call {min(both)!r} has a result and a decision; pass one of them")
    decisions = [_decision(call_id, given) for call_id, given in decided.items()]
    return Resolutions(external_ends(ended, limits), tuple(decisions))


def _by_call_id(expected: str, mapping: Mapping[Any, V] | None) -> dict[str, V]:  # Any: a `str` or a `CallId`
    if mapping is None:
        return {}
    given: object = mapping  # a caller may pass anything
    if not isinstance(given, Mapping):
        raise NotAwaited(f"{expected}; this is of type {type(given).__name__}")
    if not all(isinstance(call_id, str) for call_id in mapping):
        raise NotAwaited(f"{expected}; one of these ids is not a string")
    return dict(mapping)


def _decision(call_id: str, given: ApprovalDecision) -> Decision:
    decision: object = given  # a caller may pass anything
    if not isinstance(decision, ApprovalDecision):
        raise DecisionRefused(
            f"approvals= takes an ApprovalDecision for call {call_id!r}, not {type(decision).__name__}"
        )
    reason: object = decision.reason
    arguments: object = decision.arguments
    if decision.verdict not in get_args(Verdict):
        raise DecisionRefused(f"A decision is 'allow' or 'deny', not {decision.verdict!r}")
    if not isinstance(reason, str):
        raise DecisionRefused(f"reason= takes a string, not {type(reason).__name__}")
    if not isinstance(arguments, Mapping | None):
        raise DecisionRefused(f"arguments= takes a mapping, not {type(arguments).__name__}")
    json = None if arguments is None else ToolCall("", "", dict(arguments)).json
    return Decision(CallId(call_id), decision.verdict, reason, json, decision.digest)


def host_call(
    session: str,
    tools: Mapping[str, Tool[..., Any]],  # Any: any function
    name: str,
    arguments: Mapping[str, JsonValue] | None,
) -> HostCall:
    """Return a tool call by the program, for `Session.call_tool`.

    Raises:
        SessionError: The session has no tool of this name, the tool is external, or the arguments are not a mapping.
    """
    given: object = arguments
    if not isinstance(given, Mapping | None):
        raise SessionError(f"call_tool() takes arguments by their names, not a {type(given).__name__}")
    tool = tools.get(name)
    if tool is None or tool.is_external:
        what = "has no body" if tool else f"is not among {', '.join(tools) or 'none'}"
        raise SessionError(f"Session {session!r} cannot run tool {str(name)[:80]!r}: it {what}")
    return HostCall(name, ToolCall("", "", dict(arguments or {})).json)


async def record(
    log: LogWriter, refs: SessionRefs, ledger: SessionLedger, resolve: Resolve, generation: Generation
) -> ResolutionRecorded:
    """Record results and decisions; return the calls that the turn still waits for, or the error."""
    try:
        seq = await _record(log, refs, ledger, resolve, generation.live)
    except SessionError as error:
        return ResolutionRecorded(generation.number, error=error)
    known, state = await ledger.query(), log.state
    return ResolutionRecorded(
        generation.number, pending_calls(state, known), approved_calls(state, known), seq
    )


async def _record(
    log: LogWriter, refs: SessionRefs, ledger: SessionLedger, resolve: Resolve, live: LiveEvents
) -> int:
    """Check all results and decisions, then record them; return the number of the last event.

    Raises:
        NotAwaited: A call of them was never handed out, or waits for something else. Nothing is recorded.
        DecisionRefused: A decision is about arguments that its call does not have, or its own arguments are invalid.
            Nothing is recorded.
    """
    known = await ledger.query()
    awaited = {each.call.id: each for each in pending_calls(log.state, known)}
    if log.state.pause is not None and live.is_idle:
        live.begin(resolve.sink, publisher_at(log.state, known))
    given = resolve.resolutions
    await _check_handed_out(log, refs, given.ends, awaited, known)
    for decision in given.decisions:
        await _check_bound(refs, decision, _awaited_call(decision, awaited), resolve.variables)
    return await _write(log, refs, given, awaited)


async def _write(
    log: LogWriter, refs: SessionRefs, given: Resolutions, awaited: Mapping[CallId, PendingCall]
) -> int:
    """Log decisions and the ends of calls in one append; return the number of its last event.

    The ledger logs the ends, and the events that the session holds are logged in the same append. So the decisions are
    held, except the last one if there are no ends.
    """
    decided = [_event(decision, awaited[decision.call_id]) for decision in given.decisions]
    denials = [denial(awaited[each.call_id].call, each.reason) for each in decided if each.verdict == "deny"]
    ends = (*denials, *given.ends)
    for event in decided if ends else decided[:-1]:
        log.hold(event)
    if ends:
        return (await refs.scheduler.ask(EndCalls(ends))).seq
    return await log.write(decided[-1])


def _event(decision: Decision, found: PendingCall) -> ApprovalDecided:
    return ApprovalDecided(
        found.call.id,
        found.call.name,
        found.digest,
        decision.verdict,
        decision.reason,
        decision.arguments,
    )


async def _check_handed_out(
    log: LogWriter,
    refs: SessionRefs,
    ends: tuple[Returned | Failed, ...],
    awaited: Mapping[CallId, PendingCall],
    ledger: Ledger,
) -> None:
    """Check that every result is for an external call. Search the log for calls that the turn does not wait for."""
    for end in ends:
        if end.call_id in awaited and awaited[end.call_id].kind == "approval":
            raise NotAwaited(
                f"Call {end.call_id!r} waits for a decision, not for a result; pass it in approvals="
            )
    late = {end.call_id for end in ends if end.call_id not in awaited}
    if not late:
        return
    if all(call_id in ledger for call_id in late):
        async for page in LogPages(refs.journal, log.state.session, urgent=True):
            late -= {
                each for event in page.events if isinstance(event, TurnPaused) for each in event.external
            }
    if late:
        raise NotAwaited(
            f"Call {min(late)!r} is not an external call of this session; pending calls: {_call_ids(awaited)}"
        )


def _awaited_call(decision: Decision, awaited: Mapping[CallId, PendingCall]) -> PendingCall:
    """Return the pending call that a decision answers.

    Raises:
        NotAwaited: The turn does not wait for the call, or the call is external and cannot be allowed to run here.
    """
    found = awaited.get(decision.call_id)
    if found is None:
        raise NotAwaited(
            f"The turn does not wait for call {decision.call_id!r}; pending calls: {_call_ids(awaited)}"
        )
    if found.kind == "external" and decision.verdict == "allow":
        raise NotAwaited(f"Call {decision.call_id!r} waits for its result; pass it in results=")
    return found


async def _check_bound(
    refs: SessionRefs, decision: Decision, found: PendingCall, variables: Variables
) -> None:
    """Reject a decision about arguments that are not those of the call, and a decision with invalid new arguments."""
    if decision.digest not in (None, found.digest):
        raise DecisionRefused(
            f"The decision is about arguments {decision.digest}, but call {found.call.id!r} has {found.digest}; "
            "review the call again"
        )
    if decision.arguments is not None:
        edited = found.call.with_arguments(decision.arguments)
        if errors := await refs.scheduler.ask(CheckCall(edited, variables)):
            wrong = ", ".join(error.path or "arguments" for error in errors)
            raise DecisionRefused(
                f"Invalid arguments for call {found.call.id!r} at {wrong}; correct these fields"
            )


def _call_ids(awaited: Mapping[CallId, PendingCall]) -> str:
    return ", ".join(awaited) or "none"
