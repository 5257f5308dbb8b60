"""Answer asks that repeat the key of an earlier ask in the session, so that each key has one result.

    key unknown                     starts a new ask
    first ask queued or in flight   joins the first ask, and receives its result
    first ask waits or has ended    receives the first ask's result from the log
    first ask was interrupted       continues the first ask in a further turn, without another user message; if another
                                    ask has started since, sends the message again

The log contains the keys (`AskStarted.key`), so they work on every host and after a crash.
"""

from collections.abc import Sequence
from typing import Any

import anyio
from msgspec import json
from msgspec.structs import replace

from actors.core.log.events import AskKey
from actors.core.session.phases import Phase
from actors.core.session.publishing import terminal_event
from actors.core.session.state import SessionState
from actors.core.settings.asking import StoredAskSettings
from actors.core.stream_events.ask_events import TerminalEvent
from actors.core.stream_events.events import SessionEvent
from actors.core.values.content import ToolCall
from actors.core.values.identity import content_digest
from actors.core.values.packed import Packed
from actors.errors import (
    ActorsError,
    ConfigError,
    InvalidIdentifier,
    JournalBehind,
    KeyReused,
    QueueFull,
    SessionError,
)
from actors.journal.commands import JournalCommand
from actors.journal.pages import missing_ask_error, read_ask
from actors.kernel import Context, Ref
from actors.session.pending import PendingAsks, Submit, copy_error
from actors.session.streams import BUFFER, AskStream

MAX_KEY_LENGTH = 200
"""Maximum length of a key, in characters."""
MAX_REPEATED = 256
"""Maximum number of a session's repeated asks that wait for the result of their first ask."""
READ_TIMEOUT = 60.0
"""Seconds for the reader of a repeated ask to read the events from the log. After that, further events are skipped."""
_SLICE = BUFFER // 2


def ask_key(name: str, message: Packed, ask_settings: StoredAskSettings | None) -> AskKey:
    """Return the key of an ask, with a digest of its message and its answer's schema.

    The digest ignores other settings, so a caller may repeat an ask with a shorter timeout.

    Raises:
        ConfigError: The key is not a string.
        InvalidIdentifier: The key does not have 1 to 200 printable characters.
    """
    given: object = name  # a caller may pass any value
    if not isinstance(given, str):
        raise ConfigError(f"key= takes a string, not {type(given).__name__}")
    if not 0 < len(given) <= MAX_KEY_LENGTH or not given.isprintable():
        raise InvalidIdentifier(f"key= takes 1 to {MAX_KEY_LENGTH} printable characters, not {given[:40]!r}")
    schema = b"" if ask_settings is None or ask_settings.output is None else bytes(ask_settings.output)
    parts = (message,) if isinstance(message, bytes) else (message[0], *map(str.encode, message[1]))
    return AskKey(name, content_digest(b"\0".join((*parts, _canonical_json(schema))))[:16])


def _canonical_json(schema: bytes) -> bytes:
    """Return a schema with the keys of its objects in alphabetical order. An empty schema stays empty."""
    return json.encode(json.decode(schema), order="sorted") if schema else schema


class RepeatedAsks:
    """Answers the repeated asks of one session.

    Args:
        journal: Reads the log.
        pending: The asks that the session has accepted.
    """

    def __init__(self, journal: Ref[JournalCommand], pending: PendingAsks) -> None:
        self._journal, self._pending = journal, pending
        self._reading = 0

    def try_answer(
        self,
        submit: Submit,
        state: SessionState,
        phase: Phase,
        context: Context[Any],  # Any: any actor may call this
    ) -> bool:
        """Answer an ask if it repeats an earlier ask, and return True.

        Return False for a new ask, and for an ask that continues an interrupted one.

        Raises:
            KeyReused: The earlier ask with this key has another message or another schema.
            QueueFull: Too many repeated asks wait.
        """
        if submit.key is None or phase in ("closing", "ended"):
            return False
        name, found = submit.key.name, state.ask_with_key(submit.key.name)
        accepted = self._pending.asks_with_key(name)
        known = [each.key for each in (found, *accepted) if each is not None]
        if any(key != submit.key for key in known):
            raise _key_reused_error(state.session, name)
        is_in_flight = self._pending.key == name and phase in ("asking", "ending")
        if is_in_flight or any(each is not self._pending.current for each in accepted):
            self._check_queue_space(state.session)
            self._pending.join_ask(submit, name)
        elif found is not None and (found.is_ended or (phase == "awaiting" and state.can_continue(found))):
            self._check_queue_space(state.session)
            self._reading += 1
            calls = tuple([pending.call for pending in self._pending.record.pending_calls])
            context.start(self._answer_from_log, submit, state.session, found.ask, calls, name="repeat")
        else:
            return False
        return True

    def can_continue(self, submit: Submit, state: SessionState) -> bool:
        """Return True if a submitted ask continues the session's last ask after an interruption."""
        found = None if submit.key is None else state.ask_with_key(submit.key.name)
        return found is not None and state.can_continue(found)

    def _check_queue_space(self, session: str) -> None:
        waiting = self._reading + sum(map(len, self._pending.joined.values()))
        if waiting >= MAX_REPEATED:
            raise QueueFull(
                f"In session {session!r}, {waiting} repeated asks already wait for the result of the first ask with "
                "their key; try again later"
            )

    async def _answer_from_log(
        self, submit: Submit, session: str, ask_number: int, pending_calls: tuple[ToolCall, ...]
    ) -> None:
        """Answer a repeated ask from the log. `pending_calls` contains the calls for which its turn waits."""
        try:
            log = await read_ask(self._journal, session, ask_number)
            if log.terminal is None:
                raise await missing_ask_error(self._journal, session, ask_number)
            await _pass_on(log.events, submit)
            submit.answer(_with_pending_calls(log.terminal, pending_calls))
        except JournalBehind as error:
            submit.sink.close(copy_error(error))
            raise  # the session's state contains events that the log lacks, so its actors have to read the log again
        except ActorsError as error:
            submit.sink.close(error)
        except BaseException:
            submit.sink.close(SessionError(f"Session {session!r} was just restarted; ask again"))
            raise
        finally:
            self._reading -= 1
            self._pending.on_ask_end()


async def _pass_on(events: Sequence[SessionEvent], submit: Submit) -> None:
    """Pass events to the caller of a repeated ask, at the caller's pace. Stop after `READ_TIMEOUT` seconds."""
    reader = submit.own if isinstance(submit.own, AskStream) else None
    with anyio.move_on_after(READ_TIMEOUT):
        for number, event in enumerate(events):
            if reader is not None and not number % _SLICE:
                await reader.wait_for_room(_SLICE)
            submit.pass_on(event)


def _with_pending_calls(terminal: TerminalEvent, calls: tuple[ToolCall, ...]) -> TerminalEvent:
    """Return a terminal event with the calls for which the turn still waits."""
    if terminal.result.status != "awaiting":
        return terminal
    return terminal_event(replace(terminal.result, pending_calls=calls), terminal.seq)


def _key_reused_error(session: str, name: str) -> KeyReused:
    return KeyReused(
        f"Session {session!r}: key {name!r} belongs to an ask with another message or output=; pass another key"
    )
