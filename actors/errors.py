"""The errors that this package raises, as one tree.

    ActorsError
    ├── Fault                       a transcript violates a rule
    │   ├── CanonicalFault          the stored state contradicts itself
    │   ├── RenderingFault          rendering broke the pairing or the order of calls and results
    │   └── ProjectionFault         an id, a name or a field is invalid for the provider
    ├── ProviderError               a provider returned no answer
    │   ├── ProviderFailed          the request failed; a retry or another backend may help
    │   ├── Overloaded              too many requests wait for the backend
    │   ├── CircuitOpen             recent requests all failed, so none is sent for now
    │   ├── CredentialFailed        credentials could not be obtained
    │   └── StreamFault             the stream broke off after status 200; decoders raise its subclass
    │                               `actors.adapters.failure.AnswerFault` with the classification
    ├── ConfigError                 the configuration or an argument is invalid
    │   ├── UnknownTarget           no such backend, pool or provider
    │   ├── MissingKey              a credential is missing
    │   └── ToolDefinitionError     a tool's definition is invalid
    ├── MediaError                  an image or a document cannot be read
    ├── TranscriptError             a transcript file or value cannot be read
    ├── AskFailed                   an ask was accepted and then failed
    ├── TooManySessions             the limits of open sessions or of their memory are reached
    ├── SessionError                a session rejects a command
    │   ├── KeyReused               the key of an ask belongs to another message
    │   ├── QueueFull               its queue of waiting asks is full
    │   ├── CompactionFailed        its history could not be compacted
    │   ├── OverBudget              its budget is used up
    │   ├── NotAwaited              none of its turns waits for this call, or not for this kind of answer
    │   ├── DecisionRefused         an approval decision does not match its call
    │   ├── SessionClosed           it is closed
    │   ├── SessionExists           its id is in use
    │   ├── SessionUnknown          its id has no log
    │   ├── SessionLeased           another host owns it
    │   ├── ReentrantCall           one of its own tools called it
    │   ├── UnknownSeq              its log has no event with this number
    │   ├── SubagentDepthExceeded   a tool opened a session below too many others
    │   └── SubagentFailed          a session that a tool asked did not answer
    ├── ToolsetFailed               a toolset cannot be opened
    ├── ToolsetDown                 a toolset is disconnected, so a call of its tools did not run or was cut short
    ├── ToolChanged                 a tool changed after its call was validated, so the call did not run
    ├── AnswerTooLarge              an answer of a tool server exceeds a limit and was not read
    ├── ThreadsBusy                 no thread is free for a blocking tool
    ├── ResourceBusy                an abandoned tool still uses the resource
    ├── JournalError                the log could not be written or read
    │   ├── JournalUnavailable      its disk, lock or connection fails; a later attempt may succeed
    │   ├── JournalDamaged          a record is missing or damaged
    │   ├── JournalBehind           acknowledged events are missing, after a failover or a restored copy
    │   └── Fenced                  another writer owns the session
    └── KernelError                 an actor could not be reached; a full mailbox raises its subclass
        │                           `actors.kernel.MailboxFull`, which is an `anyio.WouldBlock` too
        ├── ActorStopped            the receiver has stopped
        ├── ActorFailed             the receiver's handler raised
        ├── AskTimeout              no reply before the deadline
        ├── AskOrderError           an ask against the order that prevents deadlocks
        ├── WrongEventLoop          a call from another thread or event loop than the runtime's
        └── ShuttingDown            the system is shutting down

A message names the object, its value and the fix on one line. No error contains a request, a header or a secret.
Expected outcomes, such as a cancelled call or a failed tool, are values and not in this tree.
"""

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = [  # `ActorsError` and `AskFailed` are names of `actors`
    "ActorFailed",
    "ActorStopped",
    "AnswerTooLarge",
    "AskOrderError",
    "AskTimeout",
    "CanonicalFault",
    "CircuitOpen",
    "CompactionFailed",
    "ConfigError",
    "CredentialFailed",
    "DecisionRefused",
    "Fault",
    "Fenced",
    "JournalBehind",
    "JournalDamaged",
    "JournalError",
    "JournalUnavailable",
    "KernelError",
    "KeyReused",
    "MediaError",
    "MissingKey",
    "NotAwaited",
    "OverBudget",
    "Overloaded",
    "ProjectionFault",
    "ProviderError",
    "ProviderFailed",
    "QueueFull",
    "ReentrantCall",
    "RenderingFault",
    "ResourceBusy",
    "SessionClosed",
    "SessionError",
    "SessionExists",
    "SessionLeased",
    "SessionUnknown",
    "ShuttingDown",
    "StreamFault",
    "SubagentDepthExceeded",
    "SubagentFailed",
    "ThreadsBusy",
    "TooManySessions",
    "ToolChanged",
    "ToolDefinitionError",
    "ToolsetDown",
    "ToolsetFailed",
    "TranscriptError",
    "UnknownSeq",
    "UnknownTarget",
    "WrongEventLoop",
]


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
        self.call_ids: tuple[str, ...] = tuple(call_ids)
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
        result: The `AskResult` of the ask, as it is returned with `check=False`.
        kind: What kind of failure ended it, as `Cause.kind` has it; empty if it is none of them.
        status: HTTP status, if a response ended it.
        can_retry: Whether the same ask may succeed later, though nothing is changed.
        advice: What to try, which is in the message too; empty if nothing is known to help.
    """

    result: Any  # a AskResult: errors stand below it, and an exception cannot be generic where it is caught
    kind: str
    status: int | None
    can_retry: bool
    advice: str

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


class TooManySessions(ActorsError):
    """A runtime takes in nothing more for now: as many sessions are open as may be, or they hold all the memory."""


class SessionError(ActorsError):
    """A session cannot do what was asked."""


class QueueFull(SessionError):
    """The session's queue of waiting asks is full. Wait for one to end, or cancel."""


class KeyReused(SessionError):
    """The key of an ask belongs to an earlier ask with another message or another `output`."""


class CompactionFailed(SessionError):
    """A session's history could not be made shorter. It is as it was."""


class OverBudget(SessionError):
    """A budget is used up: the session's own, or one that it shares with others. It takes no ask."""


class NotAwaited(SessionError):
    """A result or a decision is for a call that was never handed out, or that waits for something else."""


class DecisionRefused(SessionError):
    """A decision is about other arguments than its call has, would run it with wrong ones, or is of a wrong type."""


class SessionClosed(SessionError):
    """The session has ended, or its runtime has."""


class SessionExists(SessionError):
    """A session of this id is already open."""


class SessionUnknown(SessionError):
    """A session of this id has no log in the journal."""


class SessionLeased(SessionError):
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


class ReentrantCall(SessionError):
    """A tool asked the session it works for, which waits for that tool. Return first, or use another session."""


class UnknownSeq(SessionError):
    """A session's events were to be read on from a number that its log does not have."""


class SubagentDepthExceeded(SessionError):
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

    setting: str
    value: int
    limit: int

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

    session: str
    first: int
    last: int

    def __init__(self, message: str, *, session: str = "", first: int = 0, last: int = 0) -> None:
        super().__init__(message)
        self.session, self.first, self.last = session, first, last


class Fenced(JournalError):
    """Another writer has claimed the session since, so that this one may write it no more. Nothing was written."""


class KernelError(ActorsError):
    """A message could not be delivered, or a question was not answered."""


class ActorStopped(KernelError):
    """The receiver has stopped, or stopped before it came to the message."""


class ActorFailed(KernelError):
    """The receiver's handler raised; the cause is chained. The message is not tried again."""


class AskTimeout(KernelError):
    """The deadline passed before an answer came."""


class AskOrderError(KernelError):
    """An actor asked one that stands above it. Asks go downhill only, so they cannot deadlock."""


class WrongEventLoop(KernelError):
    """A runtime or a session was used from another thread or event loop than the one its runtime was entered in."""


class ShuttingDown(KernelError):
    """The system is shutting down and takes no new work."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return what an unknown name was probably meant to be, for the hint of an error; None if it is like nothing."""
    from difflib import get_close_matches  # only when something is mistyped

    return next(iter(get_close_matches(name, known, n=1)), None)
