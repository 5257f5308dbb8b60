"""Answer asks that repeat the key of an earlier ask of the session, so that each key has one result.

    key unknown                     a new ask
    first ask queued or in flight   the caller joins the first ask, and receives its result
    first ask waits or has ended    its result, from the log
    first ask was interrupted       the first ask continues in a further turn, without another user message; if another
                                    ask has started since, the message is sent again

The log has the keys (`AskStarted.key`), so they are valid on every host and after a kill.
"""

from typing import Any

from msgspec.structs import replace

from actors.core.log.events import AskKey
from actors.core.session.phases import Phase
from actors.core.session.publishing import terminal_event
from actors.core.session.state import SessionState
from actors.core.settings.asking import Asked
from actors.core.stream_events.events import TerminalEvent
from actors.core.values.identity import content_name
from actors.core.values.packed import Packed
from actors.errors import ActorsError, ConfigError, JournalError, KeyReused, QueueFull, SessionError
from actors.journal.ask_log import read_ask
from actors.journal.commands import JournalCommand
from actors.kernel import Context, Ref
from actors.session.pending import PendingAsks, Submit

MAX_LENGTH = 200
"""Characters of a key, at most."""
MAX_REPEATED = 256
"""Repeated asks of one session that may wait for the result of their first ask, at most."""


def ask_key(name: str, message: Packed, ask_settings: Asked | None) -> AskKey:
    """Return the key of an ask, with a digest of its message and of the schema of its answer.

    The digest ignores other settings: a caller may repeat an ask with a shorter timeout.

    Raises:
        ConfigError: The key is not a string of 1 to 200 printable characters.
    """
    given: object = name  # a caller may pass any value
    if not isinstance(given, str):
        raise ConfigError(f"key= takes a string, not {type(given).__name__}")
    if not 0 < len(given) <= MAX_LENGTH or not given.isprintable():
        raise ConfigError(f"key= takes 1 to {MAX_LENGTH} printable characters, not {given[:40]!r}")
    schema = b"" if ask_settings is None or ask_settings.output is None else bytes(ask_settings.output)
    parts = (message,) if isinstance(message, bytes) else (message[0], *map(str.encode, message[1]))
    return AskKey(name, content_name(b"\0".join((*parts, schema)))[:16])


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
        context: Context[Any],  # Any: the context of the session's actor
    ) -> bool:
        """Answer an ask if it repeats an earlier one; return False if it is new or continues an interrupted one.

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
            context.start(self._answer_from_log, submit, state.session, found.ask, name="repeat")
        else:
            return False
        return True

    def can_continue(self, submit: Submit, state: SessionState) -> bool:
        """Return True if a submitted ask continues the last one, which was interrupted."""
        found = None if submit.key is None else state.ask_with_key(submit.key.name)
        return found is not None and state.can_continue(found)

    def _check_queue_space(self, session: str) -> None:
        waiting = self._reading + sum(map(len, self._pending.joined.values()))
        if waiting >= MAX_REPEATED:
            raise QueueFull(f"Session {session!r} has {waiting} repeated asks waiting; try again later")

    async def _answer_from_log(self, submit: Submit, session: str, ask_number: int) -> None:
        try:
            log = await read_ask(self._journal, session, ask_number)
            if log.terminal is None:
                raise JournalError(f"Session {session!r}: the log has no result of ask {ask_number}")
            for event in log.events:
                submit.pass_on(event)
            submit.answer(self._with_pending_calls(log.terminal))
        except ActorsError as error:
            submit.sink.close(error)
        except BaseException:
            submit.sink.close(SessionError(f"Session {session!r} was just restarted; ask again"))
            raise
        finally:
            self._reading -= 1
            self._pending.on_rest()

    def _with_pending_calls(self, terminal: TerminalEvent) -> TerminalEvent:
        """Return a terminal event with the calls for which the turn still waits."""
        result = terminal.result
        if result.status != "awaiting":
            return terminal
        calls = tuple([pending.call for pending in self._pending.record.pending_calls])
        return terminal_event(replace(result, pending_calls=calls), terminal.seq)


def _key_reused_error(session: str, name: str) -> KeyReused:
    return KeyReused(
        f"Session {session!r}: key {name!r} belongs to an ask with another message or output=; pass another key"
    )
