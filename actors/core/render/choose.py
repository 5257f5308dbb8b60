"""Pass 3, choose: one completion for each tool call.

In:  attributed messages with unique call ids, and any number of results for a call, anywhere.
Out: the same messages with at most one result for each call made in them, and no other results.

A call that was sealed keeps its synthetic result; else its first real completion stands, from the ledger or,
where the ledger does not know it, from the blocks (REQ-915-048). What is left over is never guessed into a
pair and never lost:

    the same again, or a second different one   dropped, and noted; the ledger's word goes before a block's
    a real result that came after the seal      a text ahead of the next human message, and its media
    a result of a call nobody knows             likewise, labelled
    a result of a call only the ledger knows    gets its call restored
"""

from dataclasses import dataclass, field

from actors.core.content import Block, Media, Message, Text, ToolCall, ToolResult
from actors.core.diagnostics import Notes
from actors.core.identity import RUNTIME, CallId
from actors.core.jsonio import unquote
from actors.core.ledger import Interaction, Ledger
from actors.core.table import Table
from actors.core.transcript import Orphan, Standing


@dataclass(slots=True)
class _Choice:
    """What has been decided while one tail is read."""

    ledger: Ledger
    shown: Table[CallId, bool]
    notes: Notes
    effective: dict[CallId, ToolResult]
    calls: dict[CallId, ToolCall]
    placed: set[CallId] = field(default_factory=set)
    late: dict[CallId, ToolResult] = field(default_factory=dict)
    waiting: list[Text | Media] = field(default_factory=list)
    told: frozenset[Orphan] = frozenset()
    orphans: set[Orphan] = field(default_factory=set)


def choose(
    tail: list[Message],
    ledger: Ledger,
    standing: Standing,
    notes: Notes,
) -> tuple[list[Message], Standing]:
    """Return `tail` with at most one result a call, and what the lane must remember of the choice.

    Args:
        tail: Attributed messages with unique call ids, oldest first.
        ledger: The truth, where it knows the call.
        standing: Calls already sent in this epoch, texts still waiting, late results and orphans already told.
        notes: Receives dedupe decisions and findings.
    """
    calls = {call.id: call for message in tail if message.speaker == "model" for call in message.calls}
    quiet = not calls and not standing.carried and standing.told == len(ledger.late)
    if quiet and not any(message.speaker == "tool" for message in tail):
        return tail, standing
    choice = _Choice(
        ledger, standing.shown, notes, _effective(tail, calls, ledger), calls, told=standing.orphans
    )
    choice.waiting.extend(standing.carried)
    for call_id in ledger.late[standing.told :]:
        if standing.shown.get(call_id, call_id not in calls):  # shown, or its call was compacted away
            _told_late(call_id, choice)
    chosen = _read(tail, choice)
    chosen.extend(_unplaced(choice))
    if choice.orphans:
        chosen.extend(_announced(choice))
    return chosen, standing._replace(
        carried=tuple(choice.waiting),
        told=len(ledger.late),
        orphans=standing.orphans | choice.orphans,
        shown=standing.shown.update(dict.fromkeys(choice.late, False)),
    )


def _read(tail: list[Message], choice: _Choice) -> list[Message]:
    """Return the tail with its results decided and its waiting texts announced."""
    chosen: list[Message] = []
    for message in tail:
        if message.speaker == "tool":
            chosen.extend(_results(message, choice))
            continue
        if message.speaker == "human":
            chosen.extend(_announced(choice))
        chosen.append(message)
        if choice.ledger.late:
            for call in message.calls:
                _told_late(call.id, choice)
    return chosen


def _told_late(call_id: CallId, choice: _Choice) -> None:
    """Let a late result that the ledger knows wait for the next human message."""
    known = choice.ledger.get(call_id)
    if known is not None and known.late is not None:
        _late(known.late, choice)


def _effective(
    tail: list[Message], calls: dict[CallId, ToolCall], ledger: Ledger
) -> dict[CallId, ToolResult]:
    """Return the effective completion of each call in the tail that has a real, unsealed one."""
    effective: dict[CallId, ToolResult] = {}
    sealed: set[CallId] = set()
    for call_id in calls:
        if ledger.is_sealed(call_id):
            sealed.add(call_id)
        elif (completion := ledger.completion(call_id)) is not None:
            effective[call_id] = completion
    for message in tail:
        if message.speaker == "tool":
            for result in message.results:
                call_id = result.call_id
                if call_id in calls and call_id not in sealed and result.status != "pending":
                    effective.setdefault(call_id, result)
    return effective


def _results(message: Message, choice: _Choice) -> list[Message]:
    """Return what becomes of one message of results."""
    kept: list[Block] = []
    restored: list[Message] = []
    for result in message.results:
        if result.call_id in choice.calls:
            _of_this_tail(result, kept, choice)
        elif result.call_id in choice.shown:
            _of_an_earlier_request(result, choice)
        elif result.status != "pending":
            restored.extend(_of_no_visible_call(result, choice))
    if kept:
        restored.insert(0, Message("tool", kept, message.turn, message.origin))
    return restored


def _of_this_tail(result: ToolResult, kept: list[Block], choice: _Choice) -> None:
    call_id = result.call_id
    effective = choice.effective.get(call_id)
    if effective is None:
        if result.status != "pending":
            _late(result, choice)
    elif call_id not in choice.placed:
        choice.placed.add(call_id)
        kept.append(effective)
        if not _same(result, effective) and result.status != "pending":
            choice.notes.dedupe.append((call_id, "conflicting_duplicate"))
    elif result.status != "pending":
        same = _same(result, effective)
        choice.notes.dedupe.append((call_id, "duplicate" if same else "conflicting_duplicate"))


def _of_an_earlier_request(result: ToolResult, choice: _Choice) -> None:
    if result.status == "pending":
        return
    if choice.shown.get(result.call_id):
        _late(result, choice)
    else:
        choice.notes.dedupe.append((result.call_id, "already_answered"))


def _of_no_visible_call(result: ToolResult, choice: _Choice) -> list[Message]:
    """Restore the call from the ledger; where it does not know the call either, keep the content as text."""
    known = choice.ledger.get(result.call_id)
    if result.call_id in choice.late:  # its call was compacted away, and the ledger told it already
        _late(result, choice)
        return []
    if known is None or known.tool is None:
        _orphan(result, choice)
        return []
    choice.notes.found("restored_call", "canonical", result.call_id)
    call = _restored(known)
    choice.calls[call.id] = call
    if known.sealed is not None:
        _late(result, choice)
        return [Message("model", (call,))]
    effective = known.completion or result
    choice.effective[call.id] = effective
    choice.placed.add(call.id)
    return [Message("model", (call,)), Message("tool", (effective,))]


def _orphan(result: ToolResult, choice: _Choice) -> None:
    choice.notes.found("orphan_result", "canonical", result.call_id)
    orphan = (result.call_id, result.content_json, result.error_json, result.media)
    if orphan in choice.told or orphan in choice.orphans:
        choice.notes.dedupe.append((result.call_id, "duplicate"))
        return
    choice.orphans.add(orphan)
    choice.waiting += _labelled("A tool result without its call", result)


def _late(result: ToolResult, choice: _Choice) -> None:
    call_id = result.call_id
    if (told := choice.late.get(call_id)) is not None:
        same = _same(result, told)
        choice.notes.dedupe.append((call_id, "duplicate" if same else "conflicting_duplicate"))
        return
    choice.notes.dedupe.append((call_id, "late"))
    call = choice.calls.get(call_id)
    known = choice.ledger.get(call_id)
    name = call.name if call is not None else (known.tool if known is not None else None)
    if known is not None and known.late is not None:
        result = known.late
    choice.late[call_id] = result
    choice.waiting += _labelled(f"Late result of {name or 'a tool call'}", result)


def _unplaced(choice: _Choice) -> list[Message]:
    """Return results that only the ledger has; `place` will move them to their calls."""
    blocks = [result for call_id, result in choice.effective.items() if call_id not in choice.placed]
    return [Message("tool", blocks)] if blocks else []


def _announced(choice: _Choice) -> list[Message]:
    if not choice.waiting:
        return []
    message = Message("human", tuple(choice.waiting), origin=RUNTIME)
    choice.waiting.clear()
    return [message]


def _labelled(label: str, result: ToolResult) -> list[Text | Media]:
    failed = ", which failed" if result.status == "error" else ""
    return [Text(f"[{label}{failed}: {unquote(result.shown)}]"), *result.media]


def _restored(known: Interaction) -> ToolCall:
    assert known.tool is not None
    return ToolCall(known.call_id, known.tool, json=known.arguments)


def _same(one: ToolResult, other: ToolResult) -> bool:
    return (one.content_json, one.error_json, one.media) == (
        other.content_json,
        other.error_json,
        other.media,
    )
