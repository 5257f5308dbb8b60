"""Check and record the results and decisions that callers pass for a waiting turn.

In:  the mappings by call id that callers pass to `Session.ask(results=, approvals=)`.
Out: the events of all results and decisions, logged in one append. After an error, nothing is logged.

The types are checked before logging, because a log record with a value of a wrong type could not be decoded.

Results of external calls are recorded even if no turn waits for them any more. The ledger decides whether such a result
is late, a duplicate or already known. The log shows which calls were external, even if the session no longer has their
tools.
"""

from collections.abc import Collection, Mapping
from contextvars import Context as Variables
from typing import Any, TypeVar, get_args

from actors.core.data.jsonio import JsonValue
from actors.core.data.truncate import SizeLimits
from actors.core.ledger import Ledger
from actors.core.log.call_events import Failed, Returned
from actors.core.log.events import ApprovalDecided, TurnPaused, Verdict
from actors.core.session.open_asks import approved_calls, pending_calls, publisher_at
from actors.core.stream_events.ask_events import ApprovalDecision, Approvals, CallResults, PendingCall
from actors.core.turn.batch import denial
from actors.core.values.content import ToolCall
from actors.core.values.identity import CallId
from actors.errors import ConfigError, DecisionRefused, NotAwaited, SessionError
from actors.journal.commands import LiveEvents
from actors.journal.log import Generation, LogWriter
from actors.journal.pages import LogPages
from actors.scheduler.calls import external_ends
from actors.scheduler.scheduler_actor import CheckCall, EndCalls
from actors.session.commands import ResolutionRecorded
from actors.session.inflight import SessionLedger, SessionRefs
from actors.session.pending import Decision, HostCall, Resolutions, Resolve
from actors.tools import Tool

V = TypeVar("V")


def check_ask_arguments(
    message: object,
    results: object,
    approvals: object,
    settings: Collection[str] = (),
    output: object = None,
    key: object = None,
) -> None:
    """Check that an ask has either a message, or results and decisions without settings.

    Raises:
        ConfigError: The ask has a message together with results or decisions, or none of them, or it has settings
            together with results or decisions.
    """
    resolves = results is not None or approvals is not None
    if message is None and not resolves:
        raise ConfigError("ask() without a message needs results= or approvals= for the waiting ask")
    if message is not None and resolves:
        raise ConfigError(
            "ask() with a message allows no results= or approvals=; pass them in a separate call"
        )
    others = {"output": output, "key": key}
    extra = [*settings, *(name for name, value in others.items() if value is not None)]
    if resolves and extra:
        names = ", ".join(f"{name}=" for name in extra)
        raise ConfigError(
            f"{names} cannot be combined with results= or approvals=, because a waiting ask keeps its settings"
        )


def resolutions(results: CallResults | None, approvals: Approvals | None, limits: SizeLimits) -> Resolutions:
    """Check and convert the results and decisions that a caller passes, so that they can be logged.

    Raises:
        NotAwaited: An argument is not a mapping by call id, or both are empty.
        DecisionRefused: A decision has a wrong type.
        ConfigError: A call has both a result and a decision.
    """
    ended = _by_call_id("results= must map call ids to results, such as {call.id: 21}", results)
    decided = _by_call_id(
        'approvals= must map call ids to decisions, such as {call.id: ApprovalDecision("allow")}',
        approvals,
    )
    if not (ended or decided):
        raise NotAwaited("results= and approvals= are empty; pass at least one result or decision by call id")
    if both := ended.keys() & decided.keys():
        raise ConfigError(f"Call {min(both)!r} has both a result and a decision; pass only one of them")
    decisions = [_convert_decision(call_id, given) for call_id, given in decided.items()]
    return Resolutions(external_ends(ended, limits), tuple(decisions))


def _by_call_id(
    error_start: str, mapping: Mapping[Any, V] | None
) -> dict[str, V]:  # Any: key types are invariant
    """Return the mapping as a dict. The dict is empty for None.

    `error_start` is the start of the error message for a value of another type.
    """
    if mapping is None:
        return {}
    given: object = mapping  # `object`, because a caller may pass a value of any type
    if not isinstance(given, Mapping):
        raise NotAwaited(f"{error_start}; a value of type {type(given).__name__} was passed")
    if not all(isinstance(call_id, str) for call_id in mapping):
        raise NotAwaited(f"{error_start}; a key of the mapping is not a string")
    return dict(mapping)


def _convert_decision(call_id: str, raw_decision: ApprovalDecision) -> Decision:
    """Check the types of a caller's decision, and convert the decision for the log."""
    decision: object = raw_decision  # `object`, because a caller may pass a value of any type
    if not isinstance(decision, ApprovalDecision):
        raise DecisionRefused(
            f"approvals= must contain an ApprovalDecision for call {call_id!r}, not {type(decision).__name__}"
        )
    reason: object = decision.reason
    arguments: object = decision.arguments
    if decision.verdict not in get_args(Verdict):
        raise DecisionRefused(
            f"The verdict for call {call_id!r} must be 'allow' or 'deny', not {decision.verdict!r}"
        )
    if not isinstance(reason, str):
        raise DecisionRefused(
            f"reason= of the decision for call {call_id!r} must be a string, not {type(reason).__name__}"
        )
    if not isinstance(arguments, Mapping | None):
        raise DecisionRefused(
            f"arguments= of the decision for call {call_id!r} must be a mapping, not {type(arguments).__name__}"
        )
    json = None if arguments is None else ToolCall("", "", dict(arguments)).json
    return Decision(CallId(call_id), decision.verdict, reason, json, decision.digest)


def build_host_call(
    session: str,
    tools: Mapping[str, Tool[..., Any]],  # Any: tools have functions of any type
    name: str,
    arguments: Mapping[str, JsonValue] | None,
) -> HostCall:
    """Check the arguments of `Session.call_tool`, and return the call.

    Raises:
        SessionError: The session has no tool of this name, the tool is external, or the arguments are not a mapping.
    """
    given: object = arguments
    if not isinstance(given, Mapping | None):
        raise SessionError(
            f"arguments of call_tool() must be a mapping of names to values, not {type(given).__name__}"
        )
    asked: object = name  # callers may pass any value
    tool = tools.get(asked) if isinstance(asked, str) else None
    if tool is None or tool.is_external:
        why = "the tool is external" if tool else f"the session's tools are {', '.join(tools) or 'none'}"
        raise SessionError(f"Session {session!r} cannot run tool {str(name)[:80]!r}: {why}")
    return HostCall(name, ToolCall("", "", dict(arguments or {})).json)


async def record(
    log: LogWriter, refs: SessionRefs, ledger: SessionLedger, resolve: Resolve, generation: Generation
) -> ResolutionRecorded:
    """Record results and decisions. The returned command contains the calls that are still pending, or the error."""
    try:
        seq = await _check_and_write(log, refs, ledger, resolve, generation.live)
    except SessionError as error:
        return ResolutionRecorded(generation.number, error=error)
    known, state = await ledger.query(), log.state
    return ResolutionRecorded(
        generation.number, pending_calls(state, known), approved_calls(state, known), seq
    )


async def _check_and_write(
    log: LogWriter, refs: SessionRefs, ledger: SessionLedger, resolve: Resolve, live: LiveEvents
) -> int:
    """Check all results and decisions, then record them. Return the number of the last event.

    If the check fails, nothing is recorded.

    Raises:
        NotAwaited: A result belongs to no external call, a decision belongs to no pending call, or a decision allows an
            external call.
        DecisionRefused: A decision has the digest of other arguments, or its new arguments are invalid.
    """
    known = await ledger.query()
    awaited = {each.call.id: each for each in pending_calls(log.state, known)}
    if log.state.pause is not None and live.is_idle:
        live.begin(resolve.sink, publisher_at(log.state, known))
    given = resolve.resolutions
    await _check_external_results(log, refs, given.ends, awaited, known)
    for decision in given.decisions:
        await _check_decision(refs, decision, _awaited_call(decision, awaited), resolve.variables)
    return await _write_resolutions(log, refs, given, awaited)


async def _write_resolutions(
    log: LogWriter, refs: SessionRefs, resolved: Resolutions, awaited: Mapping[CallId, PendingCall]
) -> int:
    """Log decisions and the ends of calls in one append. Return the number of the last event.

    If there are ends of calls, the session holds the decisions until the ledger logs them together with these ends.
    Otherwise, the session logs the decisions directly.
    """
    decided = [_decision_event(decision, awaited[decision.call_id]) for decision in resolved.decisions]
    denials = [denial(awaited[each.call_id].call, each.reason) for each in decided if each.verdict == "deny"]
    ends = (*denials, *resolved.ends)
    for event in decided if ends else decided[:-1]:
        log.hold(event)
    if ends:
        return (await refs.scheduler.ask(EndCalls(ends))).seq
    return await log.write(decided[-1])


def _decision_event(decision: Decision, pending_call: PendingCall) -> ApprovalDecided:
    """Return the log event of a decision about a pending call."""
    return ApprovalDecided(
        pending_call.call.id,
        pending_call.call.name,
        pending_call.digest,
        decision.verdict,
        decision.reason,
        decision.arguments,
    )


async def _check_external_results(
    log: LogWriter,
    refs: SessionRefs,
    ends: tuple[Returned | Failed, ...],
    awaited: Mapping[CallId, PendingCall],
    ledger: Ledger,
) -> None:
    """Check that every result belongs to an external call.

    If the turn does not wait for a call, the log shows whether the call is external.
    """
    for end in ends:
        if end.call_id in awaited and awaited[end.call_id].kind == "approval":
            raise NotAwaited(
                f"Call {end.call_id!r} waits for a decision, not for a result; pass the decision in approvals="
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
            f"Call {min(late)!r} is not an external call of this session; the pending calls are: {_call_ids(awaited)}"
        )


def _awaited_call(decision: Decision, awaited: Mapping[CallId, PendingCall]) -> PendingCall:
    """Return the pending call to which a decision applies.

    Raises:
        NotAwaited: The turn does not wait for the call, or the decision allows an external call, which cannot run here.
    """
    pending_call = awaited.get(decision.call_id)
    if pending_call is None:
        raise NotAwaited(
            f"The turn does not wait for call {decision.call_id!r}; the pending calls are: {_call_ids(awaited)}"
        )
    if pending_call.kind == "external" and decision.verdict == "allow":
        raise NotAwaited(
            f"Call {decision.call_id!r} waits for a result, not for a decision; pass the result in results="
        )
    return pending_call


async def _check_decision(
    refs: SessionRefs, decision: Decision, pending_call: PendingCall, variables: Variables
) -> None:
    """Reject a decision if its digest does not match the call, or if its new arguments are invalid."""
    if decision.digest not in (None, pending_call.digest):
        raise DecisionRefused(
            f"The decision for call {pending_call.call.id!r} has digest {decision.digest}, but the call has digest "
            f"{pending_call.digest}; review the call again"
        )
    if decision.arguments is not None:
        edited = pending_call.call.with_arguments(decision.arguments)
        if errors := await refs.scheduler.ask(CheckCall(edited, variables)):
            wrong = ", ".join(error.path or "arguments" for error in errors)
            raise DecisionRefused(
                f"Invalid arguments for call {pending_call.call.id!r} at {wrong}; correct these fields"
            )


def _call_ids(awaited: Mapping[CallId, PendingCall]) -> str:
    """Return the ids of the pending calls for an error message, separated by commas. Without calls, return "none"."""
    return ", ".join(awaited) or "none"
