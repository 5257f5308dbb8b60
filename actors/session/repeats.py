"""Make asks repeatable: a key is answered once, however often and on whichever host it is asked.

    unknown        a new ask
    in flight      the caller joins the ask
    ended          its result, from the log
    interrupted    the ask continues in a further turn, without another user message

The log keeps the keys (`AskStarted.key`), so they hold on every host and after a kill.
"""

from typing import Any

from actors.core.data.record import replace
from actors.core.log.events import AskKey
from actors.core.session.publishing import interrupted_result, terminal_event
from actors.core.settings.asking import Asked
from actors.core.stream_events.events import TerminalEvent
from actors.core.stream_events.results import AskResult, PendingCall
from actors.core.values.identity import content_name
from actors.core.values.packed import Packed
from actors.errors import ConfigError, KeyReused
from actors.journal.ask_log import read_ask
from actors.journal.journal_actor import JournalCommand
from actors.kernel import Ref
from actors.session.output import Output
from actors.session.pending import Submit
from actors.session.recovery import INTERRUPTED

LONGEST = 200
"""Characters of a key, at most."""


def ask_key(name: str, message: Packed, asked: Asked | None) -> AskKey:
    """Return the key of an ask, with a digest of its message and of the form of its answer.

    Settings are not compared: a repetition may come with a shorter timeout.

    Raises:
        ConfigError: It is no text of 1 to 200 printable characters.
    """
    given: object = name  # a caller may pass anything
    if not isinstance(given, str):
        raise ConfigError(f"key= takes a text, not {type(given).__name__}")
    if not 0 < len(given) <= LONGEST or not given.isprintable():
        raise ConfigError(f"key= takes 1 to {LONGEST} printable characters, not {given[:40]!r}")
    form = b"" if asked is None or asked.output is None else bytes(asked.output)
    parts = (message,) if isinstance(message, bytes) else (message[0], *map(str.encode, message[1]))
    return AskKey(name, content_name(b"\0".join((*parts, form)))[:16])


def check_same(session: str, repeated: AskKey, *first: AskKey | None) -> None:
    """Check that a repetition has the message of the first ask, as far as there was one.

    Raises:
        KeyReused: It has another message, or asks for another form.
    """
    if any(each is not None and each.digest != repeated.digest for each in first):
        raise KeyReused(
            f"Session {session!r}: key {repeated.name!r} belongs to an ask with another message or output=; "
            "take another key for another ask"
        )


def repeated_result(result: AskResult, form: Output[Any] | None, waits: tuple[PendingCall, ...]) -> AskResult:
    """Return the result of an ask, as its log has it, for a caller that repeats the ask.

    Args:
        result: The result. It lacks the values that no log has: `output`, `cost`, `report` and `losses`.
        form: The form of the answer, whose value is read again.
        waits: The calls that the session waits for now.
    """
    if result.status == "awaiting":
        return replace(result, pending_calls=tuple([pending.call for pending in waits]))
    if form is None or result.status != "complete":
        return result
    read = form.parse(result.text, "unambiguous")
    return replace(result, output=read[0]) if isinstance(read, tuple) else result


async def repeat_ask(
    journal: Ref[JournalCommand], session: str, number: int, submit: Submit, waits: tuple[PendingCall, ...]
) -> TerminalEvent:
    """Give the events of an ask that has ended or waits to the callers of a repetition; return the terminal event.

    The events bypass tracing, which has seen the requests already.

    Raises:
        JournalError: The log cannot be read.
    """
    log, callers = await read_ask(journal, session, number), submit.joined or submit.sink
    for event in log.events:
        callers.put(event)
    result = interrupted_result(None, INTERRUPTED, 0) if log.terminal is None else log.terminal.result
    seq = 0 if log.terminal is None else log.terminal.seq
    return terminal_event(repeated_result(result, submit.output, waits), seq)
