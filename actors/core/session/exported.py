"""A session as a file: JSON lines, for people and programs to read, and to be imported again without loss.

The first line is about the session. Each other line is one record of its log: its number (`seq`), what a reader of the
session is shown of it (`events`, as `run --json` prints them), and the record itself in base64 (`record`). Behind it
come those of its subagents, and of theirs, in the same form; the first line names them (`below`). An import reads the
records alone, and takes no file that was cut or changed, and no record that cannot stand where it stands.
"""

import hashlib
from base64 import b64decode, b64encode
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from msgspec import MsgspecError, json

from actors.core.data.record import replace
from actors.core.log.codec import decode_event, encode_event
from actors.core.log.events import LogEvent, Opened
from actors.core.session.below import joined_below, split_below
from actors.core.session.order import disorder
from actors.core.session.publishing import Publisher
from actors.core.session.state import SessionState
from actors.core.stream_events.event_json import event_json
from actors.errors import JournalError, TranscriptError

VERSION: Final = 1
"""Of the file's form."""

Line = dict[str, Any]  # Any: JSON values
Log: TypeAlias = list[LogEvent]


def exported(logs: Sequence[tuple[str, Log]]) -> bytes:
    """Return a session's log as a file, and those below it behind; each with its id."""
    file = ExportedFile()
    for session, log in logs:
        for event in log:
            file.take(session, event)
    return file.content()


class ExportedFile:
    """A file of a session and those below it, made of their logs piece by piece."""

    def __init__(self) -> None:
        self._logs: dict[str, _ExportedLog] = {}

    def take(self, session: str, event: LogEvent) -> int:
        """Add the next event of a log; return the size of its line in bytes. The first log is the session's own."""
        log = self._logs.get(session) or self._logs.setdefault(session, _ExportedLog())
        return log.take(event)

    def content(self) -> bytes:
        """Return the whole file."""
        first, *below = self._logs
        lines = list[bytes]()
        for session, log in self._logs.items():
            lines += (log.opening(session, below if session == first else []), *log.lines)
        return b"\n".join((*lines, b""))


class _ExportedLog:
    def __init__(self) -> None:
        self.lines = list[bytes]()
        self._publisher, self._digest = Publisher(), hashlib.sha256()

    def take(self, event: LogEvent) -> int:
        published = [event_json(each) for each in self._publisher.published(event)]
        record = b64encode(encode_event(event)).decode()
        line = json.encode({"seq": self._publisher.seq, "events": published, "record": record})
        self.lines.append(line)
        self._digest.update(line)
        self._digest.update(b"\n")
        return len(line)

    def opening(self, session: str, below: Sequence[str]) -> bytes:
        """Return the line about the log."""
        opening: Line = {
            "actors": "session",
            "v": VERSION,
            "session": session,
            "records": len(self.lines),
            "sha256": self._digest.hexdigest(),
            **({"below": below} if below else {}),
        }
        return json.encode(opening)


def imported(file: bytes | str) -> list[Log]:
    """Return the logs that a file holds: a session's, and those of the sessions below it.

    Raises:
        TranscriptError: It is no such file, is not whole, or holds something that is not a session's log; the message
            names the line.
    """
    lines = deque(line for line in enumerate(_text(file).split("\n"), 1) if line[1].strip())
    if not lines:
        raise TranscriptError("The file is empty; `actors sessions export` writes one")
    announced = _read(*lines[0]).get("below", [])
    logs = [_log(lines)]
    while lines:
        logs.append(_log(lines))
    if (found := [log[0].session for log in logs[1:] if isinstance(log[0], Opened)]) != announced:
        raise TranscriptError(f"line 1: sessions below are announced ({announced}), and there are {found}")
    return logs


def _log(lines: deque[tuple[int, str]]) -> Log:
    """Take one session's lines off, and return its log."""
    place, line = lines.popleft()
    opening = _read(place, line)
    if opening.get("actors") != "session":
        raise TranscriptError(f"line {place}: not the first line of an exported session")
    if opening.get("v") != VERSION:
        raise TranscriptError(
            f"line {place}: version {opening.get('v')!r} of the form is not known; {VERSION} is"
        )
    records, said = list[tuple[int, bytes]](), list[bytes]()
    while lines and len(records) != opening.get("records"):
        number, line = lines.popleft()
        records.append((number, _record(number, line, len(records) + 1)))
        said.append(line.strip().encode("utf-8", "replace"))
    if len(records) != opening.get("records"):
        raise TranscriptError(
            f"line {place}: {opening.get('records')!r} records are announced, and there are {len(records)}"
        )
    events = list(_events(place, records))
    if _digest(said) != opening.get("sha256"):
        raise TranscriptError(
            f"line {place}: the lines below are not those that were exported: sha256 differs"
        )
    if isinstance(first := events[0], Opened) and opening.get("session") != first.session:
        raise TranscriptError(
            f"line {place}: it names another session than its log, {first.session!r}; another id is given to the import"
        )
    return events


def placed(logs: Sequence[Log], name: str | None = None) -> list[tuple[str, Log]]:
    """Return the logs of a file, each with the id it gets where the first one is called `name`.

    Those below a call are numbered anew: who looks for them finds the first by the call, and each by the one before.

    Raises:
        TranscriptError: One is not below another.
    """
    first = _opened(logs[0])
    names, numbers = {first.key: first.session if name is None else name}, Counter[tuple[str, str]]()
    found = [(names[first.key], _renamed(logs[0], names[first.key]))]
    for log in logs[1:]:
        opened = _opened(log)
        call = split_below(opened.session)[1]
        if opened.above not in names or not call:
            raise TranscriptError(
                f"{opened.session[:80]!r} is not below {first.session!r} or what is below that"
            )
        numbers[opened.above, call] += 1
        names[opened.key] = joined_below(names[opened.above], call, numbers[opened.above, call])
        found.append((names[opened.key], _renamed(log, names[opened.key])))
    return found


def _renamed(log: Log, name: str) -> Log:
    return [replace(_opened(log), session=name), *log[1:]]


def _opened(log: Log) -> Opened:
    assert isinstance(log[0], Opened)
    return log[0]


def _text(file: bytes | str) -> str:
    if not isinstance(file, str | bytes | bytearray):
        raise TranscriptError(f"An exported session is bytes or a text, not {type(file).__name__}")
    try:
        return file if isinstance(file, str) else file.decode()
    except UnicodeDecodeError as error:
        raise TranscriptError(f"The file is not UTF-8: {error.reason} at byte {error.start}") from None


def _read(number: int, line: str) -> Line:
    try:
        return json.decode(line, type=Line)
    except MsgspecError as error:
        raise TranscriptError(f"line {number}: not a JSON object: {error}") from None


def _record(number: int, line: str, seq: int) -> bytes:
    fields = _read(number, line)
    if fields.get("seq") != seq:
        raise TranscriptError(f"line {number}: record {fields.get('seq')!r} stands where {seq} belongs")
    try:
        return b64decode(fields.get("record", ""), validate=True)
    except (TypeError, ValueError):
        raise TranscriptError(f"line {number}: 'record' is not base64") from None


def _events(place: int, records: Iterable[tuple[int, bytes]]) -> Iterator[LogEvent]:
    """Read the records, each behind what those before it say."""
    state = SessionState()
    for number, record in records:
        try:
            event = decode_event(record)
        except JournalError as error:
            raise TranscriptError(f"line {number}: {error}") from None
        if (why := disorder(state, event)) is not None:
            raise TranscriptError(f"line {number}: {why}")
        state = state.apply(event)
        yield event
    if not state.session:
        raise TranscriptError(f"line {place}: the log is empty; a session's begins with 'opened'")


def _digest(lines: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line + b"\n")
    return digest.hexdigest()
