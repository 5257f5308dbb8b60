"""Export sessions to JSON lines and import them again without loss.

`JournalAdmin` and `actors sessions export` and `import` use this module.

The first line describes the session. Each other line is one record of its log: its number (`seq`), the stream events
that it produces (`events`, in the format of `run --json`), and the record itself in base64 (`record`). The sessions of
subagents, and of their subagents, follow in the same format. The first line of the file lists the ids of all these
sessions (`below`). An import reads only the records. It rejects a file that was truncated or changed, or in which a
record cannot follow the preceding ones. A log that this process wrote needs no such check.
"""

import hashlib
from base64 import b64decode, b64encode
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from msgspec import MsgspecError, json

from actors.core.data.record import replace
from actors.core.history.history import end_of
from actors.core.log import events
from actors.core.log.call_events import CallEventBase
from actors.core.log.codec import decode_event, encode_event
from actors.core.log.events import LogEvent, Opened
from actors.core.session.publishing import Publisher
from actors.core.session.state import SessionState, build_id, split_id
from actors.core.stream_events.event_json import event_json
from actors.core.values.identity import CallId
from actors.errors import JournalError, TranscriptError

VERSION: Final = 1
"""The version of the file format."""
Line = dict[str, Any]  # Any: `JsonValue` would need casts
Log: TypeAlias = list[LogEvent]


class ExportFile:
    """The export of a session and its subagents, built from their logs event by event."""

    def __init__(self) -> None:
        self._logs: dict[str, _LogExport] = {}

    def add(self, session: str, event: LogEvent) -> int:
        """Add the next event of a session's log, and return the size of the event's line in bytes.

        The first session that is added is the exported session. All other sessions are its subagents.
        """
        log = self._logs.get(session) or self._logs.setdefault(session, _LogExport())
        return log.add(event)

    def content(self) -> bytes:
        """Return the bytes of the complete file."""
        first, *below = self._logs
        lines = list[bytes]()
        for session, log in self._logs.items():
            lines += (log.first_line(session, below if session == first else []), *log.lines)
        return b"\n".join((*lines, b""))


class _LogExport:
    """The lines of one session in an export file."""

    def __init__(self) -> None:
        self.lines = list[bytes]()
        self._publisher, self._digest = Publisher(), hashlib.sha256()

    def add(self, event: LogEvent) -> int:
        """Add the line of the next event, and return its size in bytes."""
        published = [event_json(each) for each in self._publisher.publish(event)]
        record = b64encode(encode_event(event)).decode()
        line = json.encode({"seq": self._publisher.seq, "events": published, "record": record})
        self.lines.append(line)
        self._digest.update(line)
        self._digest.update(b"\n")
        return len(line)

    def first_line(self, session: str, subagents: Sequence[str]) -> bytes:
        """Return the line before the log's events, which describes the session and lists its `subagents` by id."""
        opening: Line = {
            "actors": "session",
            "v": VERSION,
            "session": session,
            "records": len(self.lines),
            "sha256": self._digest.hexdigest(),
            **({"below": subagents} if subagents else {}),
        }
        return json.encode(opening)


def import_logs(content: bytes | str) -> list[Log]:
    """Parse an export file. Return the log of the exported session, followed by the logs of its subagents.

    Raises:
        TranscriptError: The file is not an export, is truncated or changed, or contains an invalid log. The message
            names the line.
    """
    lines = deque(line for line in enumerate(_decode_file(content).split("\n"), 1) if line[1].strip())
    if not lines:
        raise TranscriptError("The file is empty; pass a file that `actors sessions export` wrote")
    announced = _parse_object(*lines[0]).get("below", [])
    logs = [_pop_log(lines)]
    while lines:
        logs.append(_pop_log(lines))
    if (found := [log[0].session for log in logs[1:] if isinstance(log[0], Opened)]) != announced:
        raise TranscriptError(
            f"line 1 lists the subagents {announced}, but the file contains {found}; export the session again"
        )
    return logs


def _pop_log(lines: deque[tuple[int, str]]) -> Log:
    """Remove the lines of one session from the front of `lines`, and return its log."""
    first_line_number, line = lines.popleft()
    opening = _parse_object(first_line_number, line)
    if opening.get("actors") != "session":
        raise TranscriptError(f"line {first_line_number}: expected the first line of an exported session")
    if opening.get("v") != VERSION:
        raise TranscriptError(
            f"line {first_line_number}: format version {opening.get('v')!r} is not supported; expected {VERSION}"
        )
    records, lines_read = list[tuple[int, bytes]](), list[bytes]()
    while lines and len(records) != opening.get("records"):
        line_number, line = lines.popleft()
        records.append((line_number, _parse_record(line_number, line, len(records) + 1)))
        lines_read.append(line.strip().encode("utf-8", "replace"))
    if len(records) != opening.get("records"):
        raise TranscriptError(
            f"line {first_line_number}: expected {opening.get('records')!r} records, found {len(records)}; "
            "the file is truncated"
        )
    events = list(_decode_records(first_line_number, records))
    if _lines_digest(lines_read) != opening.get("sha256"):
        raise TranscriptError(
            f"line {first_line_number}: the records were changed after the export: their sha256 differs"
        )
    if isinstance(first := events[0], Opened) and opening.get("session") != first.session:
        raise TranscriptError(
            f"line {first_line_number}: the session id differs from the id {first.session!r} in the log; "
            "to rename the session, pass an id to the import"
        )
    return events


def assign_ids(logs: Sequence[Log], name: str | None = None) -> list[tuple[str, Log]]:
    """Pair each log of a file with the id under which to store it. `name` replaces the first session's id.

    The subagents of each call are numbered from 1 without gaps, because deletion looks them up in that order.

    Raises:
        TranscriptError: A log belongs to no subagent of an earlier session in the file.
    """
    first = _opening_event(logs[0])
    names, numbers = {first.key: first.session if name is None else name}, Counter[tuple[str, str]]()
    found = [(names[first.key], _rename_log(logs[0], names[first.key]))]
    for log in logs[1:]:
        opened = _opening_event(log)
        call = split_id(opened.session)[1]
        if opened.parent_key not in names or not call:
            raise TranscriptError(
                f"{opened.session[:80]!r} is not a subagent of {first.session!r} or of one of its subagents"
            )
        numbers[opened.parent_key, call] += 1
        names[opened.key] = build_id(names[opened.parent_key], call, numbers[opened.parent_key, call])
        found.append((names[opened.key], _rename_log(log, names[opened.key])))
    return found


def _rename_log(log: Log, name: str) -> Log:
    return [replace(_opening_event(log), session=name), *log[1:]]


def _opening_event(log: Log) -> Opened:
    assert isinstance(log[0], Opened)
    return log[0]


def _decode_file(content: bytes | str) -> str:
    if not isinstance(content, str | bytes | bytearray):
        raise TranscriptError(f"An exported session must be bytes or a string, not {type(content).__name__}")
    try:
        if isinstance(content, bytes | bytearray):
            return content.decode()
        content.encode()  # fails if the string contains lone surrogates
        return content
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise TranscriptError(f"The file is not UTF-8: {error.reason} at byte {error.start}") from None


def _parse_object(line_number: int, line: str) -> Line:
    try:
        return json.decode(line, type=Line)
    except MsgspecError as error:
        raise TranscriptError(f"line {line_number}: not a JSON object: {error}") from None


def _parse_record(line_number: int, line: str, seq: int) -> bytes:
    fields = _parse_object(line_number, line)
    if fields.get("seq") != seq:
        raise TranscriptError(f"line {line_number}: expected record {seq}, found {fields.get('seq')!r}")
    try:
        return b64decode(fields.get("record", ""), validate=True)
    except (TypeError, ValueError):
        raise TranscriptError(f"line {line_number}: the value of 'record' is not valid base64") from None


def _decode_records(first_line_number: int, records: Iterable[tuple[int, bytes]]) -> Iterator[LogEvent]:
    """Yield the events of the records, after checking that each event may follow the preceding ones."""
    state = SessionState()
    for line_number, record in records:
        try:
            event = decode_event(record)
        except JournalError as error:
            raise TranscriptError(f"line {line_number}: {error}") from None
        if (why := order_violation(state, event)) is not None:
            raise TranscriptError(f"line {line_number}: {why}")
        state = state.apply(event)
        yield event
    if not state.session:
        raise TranscriptError(
            f"line {first_line_number}: the log is empty, but it must begin with an 'opened' event"
        )


def _lines_digest(lines: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line + b"\n")
    return digest.hexdigest()


def order_violation(state: SessionState, event: LogEvent) -> str | None:
    """Return the reason why `event` cannot follow the log that led to `state`; None if it can."""
    if state.closed:
        return "the log continues after 'closed', which must be its last event"
    if bool(state.session) is isinstance(event, events.Opened):
        return "'opened' must be the first event of the log and occur only once"
    match event:
        case events.AskStarted(ask=ask) if ask != state.asks + 1:
            return f"ask {ask} begins, but the next ask must have the number {state.asks + 1}"
        case events.TurnStarted(turn=turn) if state.bound is not None or turn != state.turns + 1:
            return f"turn {turn} begins after turn {state.turns}{'' if state.bound is None else ', which is open'}"
        case events.RequestSent(turn=turn) | events.RoundEnded(turn=turn) | events.TurnPaused(turn=turn):
            return _turn_violation(state, turn)
        case events.TurnResumed(turn=turn) if state.pause is None:
            return f"turn {turn} resumes, but no turn is paused"
        case events.TurnEnded(turn=turn):
            return _turn_violation(state, turn)
        case events.Compacted(start=start, stop=stop) if not 0 <= start < stop <= state.history.length:
            return f"a summary replaces messages {start} to {stop}, but the history has {state.history.length} messages"
        case events.Rewound(turn=turn):
            return _rewind_violation(state, turn)
        case CallEventBase(call_id=call_id) if not _is_known(state, call_id):
            return f"no model message contains the call {call_id!r}"
        case _:
            return None


def _turn_violation(state: SessionState, turn: int) -> str | None:
    if state.bound is None or turn != state.turns:
        current = "no turn" if state.bound is None else f"turn {state.turns}"
        return f"an event belongs to turn {turn}, but {current} is open"
    return None


def _rewind_violation(state: SessionState, turn: int) -> str | None:
    if state.bound is not None:
        return f"the history was rewound while turn {state.turns} was open"
    if end_of(state.ends, turn) is None:
        return f"the history was rewound to the end of turn {turn}, but it does not contain that turn"
    return None


def _is_known(state: SessionState, call_id: CallId) -> bool:
    last = state.history[-1].calls if state.history.length else ()
    return call_id in state.ledger or any(call.id == call_id for call in last)
