"""A session as a file: JSON lines, for people and programs to read, and to be imported again without loss.

The first line is about the file. Each other line is one record of the log: its number (`seq`), what a reader of the
session is shown of it (`events`, as `run --json` prints them), and the record itself in base64 (`record`). An import
reads the records alone. It takes no file that was cut or changed, and no record that cannot stand where it stands.
"""

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import MsgspecError, json

from actors.core.codec import decode_event, encode_event
from actors.core.event_json import event_json
from actors.core.events import Event
from actors.core.jsonio import dump
from actors.core.order import disorder
from actors.core.publishing import Publisher
from actors.core.state import SessionState
from actors.errors import JournalError, TranscriptError

VERSION: Final = 1
"""Of the file's form."""

Line = dict[str, Any]  # Any: JSON values


def exported(session: str, events: Sequence[Event]) -> bytes:
    """Return a session's log as a file."""
    return b"".join(dump(line) + b"\n" for line in _lines(session, events))


def _lines(session: str, events: Sequence[Event]) -> Iterator[Line]:
    records, publisher = [encode_event(event) for event in events], Publisher()
    yield {
        "actors": "session",
        "v": VERSION,
        "session": session,
        "records": len(records),
        "sha256": _digest(records),
    }
    for seq, (event, record) in enumerate(zip(events, records, strict=True), 1):
        published = [event_json(each) for each in publisher.published(event)]
        yield {"seq": seq, "events": published, "record": b64encode(record).decode()}


def imported(file: bytes | str) -> list[Event]:
    """Return the log that a file holds.

    Raises:
        TranscriptError: It is no such file, is not whole, or holds something that is not a session's log; the message
            names the line.
    """
    lines = [line for line in enumerate(_text(file).split("\n"), 1) if line[1].strip()]
    if not lines:
        raise TranscriptError("The file is empty; `actors sessions export` writes one")
    opening = _read(*lines[0])
    if opening.get("actors") != "session":
        raise TranscriptError("line 1: not the first line of an exported session")
    if opening.get("v") != VERSION:
        raise TranscriptError(f"line 1: version {opening.get('v')!r} of the form is not known; {VERSION} is")
    records = [_record(number, line, seq) for seq, (number, line) in enumerate(lines[1:], 1)]
    if len(records) != opening.get("records"):
        raise TranscriptError(
            f"line 1: {opening.get('records')!r} records are announced, and there are {len(records)}"
        )
    events = list(_events(zip([number for number, _ in lines[1:]], records, strict=True)))
    if _digest(records) != opening.get("sha256"):
        raise TranscriptError("line 1: the records are not those that were exported: sha256 differs")
    return events


def _text(file: bytes | str) -> str:
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


def _events(records: Iterable[tuple[int, bytes]]) -> Iterator[Event]:
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
        raise TranscriptError("line 1: the log is empty; a session's begins with 'opened'")


def _digest(records: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for record in records:
        digest.update(len(record).to_bytes(8, "big") + record)
    return digest.hexdigest()
