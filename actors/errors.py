"""Every error this package raises, as one tree.

    ActorsError
    ├── Fault                       something about a transcript is wrong
    │   ├── CanonicalFault          the stored state itself is contradictory
    │   ├── RenderingFault          pairing or order went wrong between history and transcript
    │   └── ProjectionFault         an id, a name or a field does not fit the provider
    ├── ProviderError               a provider did not give an answer
    │   ├── ProviderFailed          it failed; another try or another backend may help
    │   ├── Overloaded              as many requests wait for it as may
    │   ├── CircuitOpen             it failed every time, and is left alone for now
    │   ├── CredentialFailed        credentials could not be obtained
    │   └── StreamFault             it answered 200 and then broke off; decoders raise its subclass
    │                               `actors.adapters.failure.AnswerFault`, which carries the classification
    ├── ConfigError                 what the operator wrote cannot be used
    │   ├── UnknownTarget           a backend, pool or provider that does not exist
    │   ├── MissingKey              a credential that is not there
    │   └── ToolDefinitionError     tools that cannot be offered
    ├── MediaError                  an image or a document that cannot be read
    ├── TranscriptError             a transcript file or value that cannot be read
    ├── AskFailed                   an ask was taken, and failed
    ├── HostFull                    as many sessions are open as may be, or they hold all the memory they may
    ├── SessionError                a session cannot do what was asked
    │   ├── Busy                    its queue of waiting asks is full
    │   ├── CompactionFailed        its history could not be made shorter
    │   ├── OverBudget              what it may use is used up
    │   ├── NotAwaited              no turn of it ever waited for that call, or not for that
    │   ├── DecisionRefused         a decision does not fit the call it is about
    │   ├── SessionClosed           it has ended
    │   ├── SessionExists           its id is taken
    │   ├── SessionUnknown          its id has no log
    │   ├── SessionElsewhere        another host has it
    │   ├── OwnSession              one of its own tools asked it for something
    │   ├── UnknownSeq              its log has no such number to read on from
    │   ├── TooDeep                 a tool opened a session further below another than may be
    │   └── SubagentFailed          a session that was asked by a tool gave no answer
    ├── ToolsetFailed               a toolset cannot be opened
    ├── ToolsetDown                 a toolset is not connected, so a call of its tools did not run or was cut short
    ├── ToolChanged                 a tool is not as it was when its call was checked, so the call did not run
    ├── AnswerTooLarge              an answer of a tool server is above one of its limits, and was not read
    ├── ThreadsBusy                 no thread is free for a tool that blocks
    ├── ResourceBusy                a tool that was ended still works on what another writes to
    ├── JournalError                the log could not be written or read
    │   ├── JournalUnavailable      its disk, lock or connection fails: it may work later
    │   ├── JournalDamaged          a record is missing, or not as it was written
    │   ├── JournalBehind           it has lost what it had acknowledged: a failover, or a restored copy
    │   └── Fenced                  another writer has the session
    └── KernelError                 between actors
        ├── MailboxFull             the receiver refuses more for now
        ├── ActorStopped            the receiver is gone
        ├── ActorFailed             the receiver's handler raised
        ├── AskTimeout              no answer before the deadline
        ├── AskUphill               an ask against the order that keeps asks from deadlocking
        ├── ForeignLoop             a call from another thread or event loop than the runtime's
        └── Draining                the system is shutting down

A message names the thing, its value and the way out, in one line. No error carries a request, a header
or a secret. Expected ends, such as a cancelled call or a failed tool, are values and not in this tree.
"""

from collections.abc import Iterable, Sequence
from typing import Any


class ActorsError(Exception):
    """Base of every error raised on purpose by this package."""


class Fault(ActorsError):
    """A transcript that must not be sent.

    Args:
        message: One line: what is wrong, where, and with which value.
        call_ids: Canonical ids of the tool calls concerned, in order of appearance.
        rule: The rulebook id of the rule that is broken (docs/reference/rulebook.md), if there is one.
    """

    fault_class = "unclassified"

    def __init__(self, message: str, *, call_ids: Sequence[str] = (), rule: str | None = None) -> None:
        super().__init__(message)
        self.call_ids = tuple(call_ids)
        self.rule = rule


class CanonicalFault(Fault):
    """The stored state contradicts itself: a repeated canonical id, a result for a call nobody made."""

    fault_class = "canonical"


class RenderingFault(Fault):
    """A rendered transcript breaks pairing or order."""

    fault_class = "rendering"


class ProjectionFault(Fault):
    """A rendered transcript holds an id, name, field or value the provider does not accept."""

    fault_class = "projection"


class ProviderError(ActorsError):
    """A provider did not give an answer.

    Args:
        message: One line, without credentials.
        status: HTTP status, if there was a response.
        retry_after: Seconds the provider asked to wait, if it did.
    """

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class ProviderFailed(ProviderError):
    """The provider failed, is overloaded, out of quota or out of reach."""


class Overloaded(ProviderError):
    """As many requests wait for a backend as may. Nothing was sent."""


class CircuitOpen(ProviderError):
    """A backend failed every time, or asked to wait for long, and is left alone for now. Nothing was sent."""


class CredentialFailed(ProviderError):
    """Credentials could not be obtained: a token command failed. Nothing was sent."""


class StreamFault(ProviderError):
    """A response that began with 200 ended in an error, or without its end marker."""


class ConfigError(ActorsError):
    """A configuration that cannot be used. The message names the file or variable and the way out."""


class UnknownTarget(ConfigError):
    """A backend, pool or provider name that is not configured."""


class MissingKey(ConfigError):
    """The environment variable that should hold a credential is not set."""


class ToolDefinitionError(ConfigError):
    """A tool that cannot be offered: its schema is impossible, its name is taken, or there are too many."""


class MediaError(ActorsError):
    """An image or a document that cannot be read: it is cut off, has no readable header, or is no base64."""


class TranscriptError(ActorsError):
    """A wire transcript that cannot be read at all. A merely broken one is imported, with diagnostics."""


class AskFailed(ActorsError):
    """An ask was taken, and failed. Its session can go on.

    Args:
        message: One line: who gave no answer, why, and what to try.
        result: The `TurnResult` of the ask, as it is returned with `check=False`.
        kind: What kind of failure ended it, as `Cause.kind` has it; empty if it is none of them.
        status: HTTP status, if a response ended it.
        can_retry: Whether the same ask may succeed later, though nothing is changed.
        advice: What to try, which is in the message too; empty if nothing is known to help.
    """

    result: Any  # a TurnResult: errors stand below it, and an exception cannot be generic where it is caught

    def __init__(
        self,
        message: str,
        result: Any = None,  # Any: as above. A session always gives it
        *,
        kind: str = "",
        status: int | None = None,
        can_retry: bool = False,
        advice: str = "",
    ) -> None:
        super().__init__(message)
        if result is not None:
            self.result = result
        self.kind, self.status, self.can_retry, self.advice = kind, status, can_retry, advice


class HostFull(ActorsError):
    """A runtime takes in nothing more for now: as many sessions are open as may be, or they hold all the memory."""


class SessionError(ActorsError):
    """A session cannot do what was asked."""


class Busy(SessionError):
    """The session's queue of waiting asks is full. Wait for one to end, or cancel."""


class CompactionFailed(SessionError):
    """A session's history could not be made shorter. It is as it was."""


class OverBudget(SessionError):
    """A budget is used up: the session's own, or one that it shares with others. It takes no ask."""


class NotAwaited(SessionError):
    """Something was brought for a call that was never handed out, or that waits for something else."""


class DecisionRefused(SessionError):
    """A decision is about other arguments than its call has, or would run it with wrong ones."""


class SessionClosed(SessionError):
    """The session has ended, or its runtime has."""


class SessionExists(SessionError):
    """A session of this id is already open."""


class SessionUnknown(SessionError):
    """A session of this id has no log in the journal."""


class SessionElsewhere(SessionError):
    """A session belongs to another host, which is alive. Ask there, or wait until it is released.

    Args:
        message: One line.
        host: The name of that host.
        seconds: How long its lease lasts, if it is not prolonged.
    """

    def __init__(self, message: str, *, host: str = "", seconds: float = 0.0) -> None:
        super().__init__(message)
        self.host = host
        self.seconds = seconds


class OwnSession(SessionError):
    """A tool asked the session it works for, which waits for that tool. Return first, or use another session."""


class UnknownSeq(SessionError):
    """A session's events were to be read on from a number that its log does not have."""


class TooDeep(SessionError):
    """A tool would open a session too many levels below the first: a subagent of a subagent, and so on."""


class SubagentFailed(SessionError):
    """A session that a tool asked did not complete. The message says why, for the model too."""


class ToolsetFailed(ActorsError):
    """A toolset cannot be opened, or was not open in time. Nothing is left of it."""


class ToolsetDown(ActorsError):
    """A toolset is not connected now, so a call of one of its tools did not run, or its end was lost with it.

    A tool of a toolset may raise it too. Its call is made again once, when the toolset is open again, if that is safe.

    Args:
        message: One line, for the model too.
        may_have_run: Whether the call may have taken effect.
    """

    def __init__(self, message: str, *, may_have_run: bool = False) -> None:
        super().__init__(message)
        self.may_have_run = may_have_run


class ToolChanged(ActorsError):
    """A toolset offers a tool with another definition than the one its call was checked by, so the call did not run.

    The model is told so. The session's next ask declares the tool as it is now, or, where the toolset is declared
    `within_turn`, the turn's next request.
    """


class AnswerTooLarge(ActorsError):
    """An answer of a tool server (MCP) is above a limit, and was not read. The call may have taken effect.

    Args:
        message: One line, for the model too.
        setting: The option that sets the limit: `max_bytes`, `max_blocks` or `max_values`.
        value: The size of the answer; the answer may be larger, if reading it ended there.
        limit: The most that is read.
    """

    def __init__(self, message: str, *, setting: str = "", value: int = 0, limit: int = 0) -> None:
        super().__init__(message)
        self.setting, self.value, self.limit = setting, value, limit


class ThreadsBusy(ActorsError):
    """A tool that blocks found no thread: all are in use, and none became free in time. It did not run."""


class ResourceBusy(ActorsError):
    """A tool writes to what an earlier call still works on, which was ended without its tool. It did not run."""


class JournalError(ActorsError):
    """The log could not be written or read. Nothing was announced that is not in it."""


class JournalUnavailable(JournalError):
    """The journal's disk is full, or it is locked, read-only, failing, out of reach or too slow.

    What was asked was not done, and nothing that was announced is lost. It works again, without a restart,
    when the cause is gone.
    """


class JournalDamaged(JournalError):
    """A log is not as it was written: a record is missing or has changed.

    Args:
        message: One line, with the file, the session, the record, and what is wrong.
        session: Whose log; empty where that cannot be told.
        number: Of the first record concerned; 0 where that cannot be told.
    """

    def __init__(self, message: str, *, session: str = "", number: int = 0) -> None:
        super().__init__(message)
        self.session = session
        self.number = number


class JournalBehind(JournalError):
    """The journal's storage went back behind what it had acknowledged: a failover lost it, or a copy was restored.

    Nothing was written. The session goes on from what the journal has; its log names what is lost (`events_lost`).

    Args:
        message: One line.
        session: Whose log.
        first: The number of the first event that is lost.
        last: The number of the last one.
    """

    def __init__(self, message: str, *, session: str = "", first: int = 0, last: int = 0) -> None:
        super().__init__(message)
        self.session, self.first, self.last = session, first, last


class Fenced(JournalError):
    """Another writer has claimed the session since, so that this one may write it no more. Nothing was written."""


class KernelError(ActorsError):
    """A message could not be delivered, or a question was not answered."""


class MailboxFull(KernelError):
    """The receiver's mailbox is full and its policy is to refuse."""


class ActorStopped(KernelError):
    """The receiver has stopped, or stopped before it came to the message."""


class ActorFailed(KernelError):
    """The receiver's handler raised; the cause is chained. The message is not tried again."""


class AskTimeout(KernelError):
    """The deadline passed before an answer came."""


class AskUphill(KernelError):
    """An actor asked one that stands above it. Asks go downhill only, so they cannot deadlock."""


class ForeignLoop(KernelError):
    """A runtime or a session was used from another thread or event loop than the one its runtime was entered in."""


class Draining(KernelError):
    """The system is shutting down and takes no new work."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return what an unknown name was probably meant to be, for the hint of an error; None if it is like nothing."""
    from difflib import get_close_matches  # only when something is mistyped

    return next(iter(get_close_matches(name, known, n=1)), None)
