"""The errors that this package raises, as one tree.

    ActorsError
    ├── Fault                       a transcript violates a rule
    │   ├── CanonicalFault          the stored state contradicts itself
    │   ├── RenderingFault          rendering broke the pairing or the order of calls and results
    │   └── ProjectionFault         an id, a name or a field is invalid for the provider
    ├── ProviderError               a provider returned no answer
    │   ├── ProviderFailed          the request failed; a retry or another backend may help
    │   ├── Overloaded              too many requests wait for the backend
    │   ├── CircuitOpen             recent requests all failed, so no request is sent for now
    │   ├── CredentialFailed        credentials could not be obtained
    │   └── StreamFault             the stream broke off after status 200
    ├── ConfigError                 the configuration or an argument is invalid
    │   ├── UnknownTarget           no such backend, pool or provider
    │   ├── MissingKey              a credential is missing
    │   ├── InvalidIdentifier       a session id or a key has an invalid form
    │   └── ToolDefinitionError     a tool's definition is invalid
    ├── MediaError                  an image or a document cannot be read
    ├── TranscriptError             a transcript file or value cannot be read
    ├── AskFailed                   an ask was accepted and then failed
    ├── TooManySessions             the limit of open sessions or of their memory is reached
    ├── SessionError                a session rejects a command
    │   ├── KeyReused               the key of an ask belongs to another message
    │   ├── QueueFull               the queue of waiting asks is full
    │   ├── CompactionFailed        the history could not be compacted
    │   ├── OverBudget              a budget is used up
    │   ├── NotAwaited              no turn waits for this call, or for this kind of answer
    │   ├── DecisionRefused         an approval decision does not match its call
    │   ├── SessionClosed           the session or its runtime is closed
    │   │   └── SessionClosedForGood    the session was closed by its program, and cannot be resumed
    │   ├── SessionExists           the session id is in use
    │   ├── SessionUnknown          the session id has no log
    │   ├── SessionLeased           another host owns the session
    │   ├── HostUnavailable         the other host is gone, does not answer, or accepts no more sessions
    │   │   └── RequestLost         several hosts did not answer a request that was sent to them
    │   ├── ReentrantCall           a tool asked the session that is waiting for this tool
    │   ├── UnknownSeq              the log has no event with this number
    │   ├── SubagentDepthExceeded   a tool opened a subagent nested too deeply
    │   └── SubagentFailed          a subagent did not complete its ask
    ├── ToolsetFailed               a toolset cannot be opened
    ├── ToolsetDown                 a toolset is disconnected, so a call did not run or its result was lost
    ├── ToolChanged                 a tool changed after its call was validated, so the call did not run
    ├── AnswerTooLarge              an answer from a tool server exceeds a limit and was not read
    ├── ThreadsBusy                 no thread is free for a blocking tool
    ├── ResourceBusy                an abandoned tool still uses the resource
    ├── JournalError                the log could not be written or read
    │   ├── JournalUnavailable      the disk, lock or connection fails; a later attempt may succeed
    │   ├── JournalDamaged          a record is missing or damaged
    │   ├── JournalBehind           acknowledged events are missing, after a failover or a restored copy
    │   └── Fenced                  another writer owns the session
    └── KernelError                 an actor could not be reached; another subclass is `actors.kernel.MailboxFull`
        ├── ActorStopped            the receiver has stopped
        ├── ActorFailed             the receiver's handler raised
        ├── AskTimeout              no reply before the deadline
        ├── AskOrderError           an actor asked another actor against the order that prevents deadlocks
        ├── WrongEventLoop          a call from outside the runtime's thread and event loop
        └── ShuttingDown            the system is shutting down
            └── HostDraining        the runtime moves its sessions to other hosts, and opens no more

A message names the object, its value and the fix on one line. No error contains a request, a header or a secret.
Expected outcomes, such as a cancelled call or a failed tool, are values and not in this tree.
"""

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = [  # without `ActorsError` and `AskFailed`, which `actors` exports
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
    "HostDraining",
    "HostUnavailable",
    "InvalidIdentifier",
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
    "SessionClosedForGood",
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
    """Base class of the errors that this package raises."""


class Fault(ActorsError):
    """A transcript that breaks a rule and therefore must not be sent.

    Args:
        message: One line that states the problem, its position and the value.
        call_ids: Canonical ids of the affected tool calls, in order of appearance.
        rule: Id of the broken rule (docs/reference/rulebook.md); None if the rulebook has no rule for this problem.
    """

    fault_class = "unclassified"

    def __init__(self, message: str, *, call_ids: Sequence[str] = (), rule: str | None = None) -> None:
        super().__init__(message)
        self.call_ids: tuple[str, ...] = tuple(call_ids)
        self.rule = rule


class CanonicalFault(Fault):
    """The stored state contradicts itself: a canonical id is repeated, or a result belongs to no call."""

    fault_class = "canonical"


class RenderingFault(Fault):
    """A rendered transcript breaks the pairing or the order of calls and results."""

    fault_class = "rendering"


class ProjectionFault(Fault):
    """A rendered transcript contains an id, name, field or value that the provider does not accept."""

    fault_class = "projection"


class ProviderError(ActorsError):
    """A provider returned no answer.

    Args:
        message: One line, without credentials.
        status: The HTTP status; None if there was no response.
        retry_after: The wait that the provider requested, in seconds; None if it requested none.
    """

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class ProviderFailed(ProviderError):
    """The request failed: the provider reported an error, is overloaded or out of quota, or cannot be reached."""


class Overloaded(ProviderError):
    """The backend's queue of waiting requests is full. Nothing was sent."""


class CircuitOpen(ProviderError):
    """The backend's circuit breaker is open, after repeated failures or a requested wait. Nothing was sent."""


class CredentialFailed(ProviderError):
    """Credentials could not be obtained, for example because a token command failed. Nothing was sent."""


class StreamFault(ProviderError):
    """A response began with status 200, but the stream ended with an error or without its end marker."""


class ConfigError(ActorsError):
    """The configuration or an argument is invalid. The message names the file, variable or argument, and the fix."""


class UnknownTarget(ConfigError):
    """No backend, pool or provider with this name is configured."""


class MissingKey(ConfigError):
    """The environment variable for a credential is not set."""


class InvalidIdentifier(ConfigError):
    """A session id or an ask key has an invalid form. In a server, the client that chose it is usually at fault."""


class ToolDefinitionError(ConfigError):
    """A tool's definition is invalid: its schema is unusable, its name is taken, or the session has too many tools."""


class MediaError(ActorsError):
    """An image or a document cannot be read: it is truncated, has no readable header, or is not valid base64."""


class TranscriptError(ActorsError):
    """A transcript cannot be read. If only some messages are invalid, the import succeeds and its report lists them."""


class AskFailed(ActorsError):
    """An ask was accepted and then failed. The session accepts further asks.

    Args:
        message: One line that names the backend, the reason of the failure and a suggested fix.
        result: The `AskResult` that the ask would return with `check=False`.
        kind: The kind of failure, as in `Cause.kind`; empty if none of those kinds applies.
        status: The HTTP status of the response that ended the ask; None if no response ended it.
        can_retry: True if an unchanged ask may succeed later.
        advice: The suggested fix, which the message contains too; empty if no fix is known.
    """

    result: Any  # Any: an `AskResult`; an `except` clause cannot know the type of its output
    kind: str
    status: int | None
    can_retry: bool
    advice: str

    def __init__(
        self,
        message: str,
        result: Any = None,  # Any: an `AskResult`; None only in errors that no session raised
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
    """The runtime opens no more sessions for now: its limit of open sessions or of their memory is reached."""


class SessionError(ActorsError):
    """A session cannot perform the requested operation. Most errors about sessions are subclasses."""


class QueueFull(SessionError):
    """The session's queue of waiting asks is full. Wait until an ask ends, or cancel one."""


class KeyReused(SessionError):
    """The key of an ask belongs to an earlier ask with another message or another `output`."""


class CompactionFailed(SessionError):
    """A session's history could not be compacted and is unchanged."""


class OverBudget(SessionError):
    """A budget is used up: the session's own, or a shared one. No ask is accepted, and no subagent is opened."""


class NotAwaited(SessionError):
    """No turn waits for this call; or the turn waits for a decision and received a result, or the reverse."""


class DecisionRefused(SessionError):
    """A decision about a tool call was rejected: its type, its `digest` or its replacement arguments are invalid."""


class SessionClosed(SessionError):
    """The session or its runtime has ended."""


class SessionClosedForGood(SessionClosed):
    """The session was closed by `Session.close`, so no host can resume it. Its log can be read and forked."""


class SessionExists(SessionError):
    """A session with this id already exists."""


class SessionUnknown(SessionError):
    """The journal contains no log for this session id."""


class SessionLeased(SessionError):
    """Another live host owns the session. Send the ask to that host, or wait until it releases the session.

    Args:
        message: One line.
        host: The name of that host.
        seconds: Seconds until the host's lease expires unless it is renewed.
        address: The `address` of that host's `Runtime`; empty if none was given.
    """

    def __init__(self, message: str, *, host: str = "", seconds: float = 0.0, address: str = "") -> None:
        super().__init__(message)
        self.host = host
        self.seconds = seconds
        self.address = address


class HostUnavailable(SessionError):
    """Another host is gone, is unknown, or accepts no more sessions; or no host answered a router's request."""


class RequestLost(HostUnavailable):
    """Several hosts did not answer a request that was sent to them: they ended, or stopped answering.

    The request itself may have caused this, so the router tries no further host, and clients should not repeat
    the request automatically.
    """


class ReentrantCall(SessionError):
    """A tool asked the session that is waiting for this tool. Let the tool return first, or ask another session."""


class UnknownSeq(SessionError):
    """Events were requested from a sequence number that the session's log does not contain."""


class SubagentDepthExceeded(SessionError):
    """A tool tried to open a subagent nested deeper than the limit."""


class SubagentFailed(SessionError):
    """A subagent did not complete its ask. The message gives the reason, and the model receives it too."""


class ToolsetFailed(ActorsError):
    """A toolset could not be opened, or its opening took too long. Its resources have been released."""


class ToolsetDown(ActorsError):
    """A toolset is disconnected, so a call of one of its tools did not run, or its result was lost.

    Tools of a toolset may raise this error too. If repeating the call is safe, it is repeated once, when the toolset is
    open again.

    Args:
        message: One line. The model receives it too.
        may_have_run: True if the call may have taken effect.
    """

    def __init__(self, message: str, *, may_have_run: bool = False) -> None:
        super().__init__(message)
        self.may_have_run = may_have_run


class ToolChanged(ActorsError):
    """A toolset changed the definition of a tool after the arguments of a call were validated, so the call did not run.

    The model receives this error as the call's result. Requests declare the new definition from the session's next ask
    on. If the toolset is declared `within_turn`, they declare it from the turn's next request on.
    """


class AnswerTooLarge(ActorsError):
    """An answer from a tool server (MCP) exceeds a limit and was not read. The call may have taken effect.

    Args:
        message: One line. The model receives it too.
        setting: The option that sets the limit: `max_bytes`, `max_blocks` or `max_values`.
        value: The size of the answer, or of the part that was read before the limit was exceeded.
        limit: The value of that option.
    """

    setting: str
    value: int
    limit: int

    def __init__(self, message: str, *, setting: str = "", value: int = 0, limit: int = 0) -> None:
        super().__init__(message)
        self.setting, self.value, self.limit = setting, value, limit


class ThreadsBusy(ActorsError):
    """All threads for blocking tools were in use, and none became free in time. The tool did not run."""


class ResourceBusy(ActorsError):
    """An abandoned tool still uses the resource that this tool writes to. This tool did not run."""


class JournalError(ActorsError):
    """The log could not be written or read. Every event that a caller has received is in the log."""


class JournalUnavailable(JournalError):
    """The journal's storage is full, locked, read-only, failing, unreachable or too slow.

    The operation was not performed, and no event that a caller has received is lost. The journal works again, without a
    restart, once the problem is solved.
    """


class JournalDamaged(JournalError):
    """A log contains a damaged record, or a record is missing.

    Args:
        message: One line that names the file, the session, the record and the damage.
        session: Id of the log's session; empty if unknown.
        number: Number of the first affected record; 0 if unknown.
    """

    def __init__(self, message: str, *, session: str = "", number: int = 0) -> None:
        super().__init__(message)
        self.session = session
        self.number = number


class JournalBehind(JournalError):
    """The journal's storage lost events that it had acknowledged: a failover dropped them, or an old copy was restored.

    Nothing was written. The session continues from the events that the journal contains, and an `events_lost` event in
    its log gives the numbers of the lost events.

    Args:
        message: One line.
        session: Id of the log's session.
        first: Number of the first lost event.
        last: Number of the last lost event.
    """

    session: str
    first: int
    last: int

    def __init__(self, message: str, *, session: str = "", first: int = 0, last: int = 0) -> None:
        super().__init__(message)
        self.session, self.first, self.last = session, first, last


class Fenced(JournalError):
    """Another writer has claimed the session, so this writer may no longer write to its log. Nothing was written."""


class KernelError(ActorsError):
    """A message could not be delivered, or a query received no reply."""


class ActorStopped(KernelError):
    """The receiving actor has stopped, possibly before it handled the message."""


class ActorFailed(KernelError):
    """The receiving actor's handler raised an exception, which is the `__cause__`. The message is not retried."""


class AskTimeout(KernelError):
    """No reply arrived before the deadline."""


class AskOrderError(KernelError):
    """An actor asked an actor that precedes it in the fixed order of actors. The order prevents deadlocks."""


class WrongEventLoop(KernelError):
    """A runtime or a session was used outside of the thread and event loop in which its runtime was entered."""


class ShuttingDown(KernelError):
    """The runtime is exiting or has exited, and accepts no new work."""


class HostDraining(ShuttingDown):
    """The runtime is draining (`Runtime.drain`), so it opens no more sessions. Use another host."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to an unknown name, for the hint of an error; None if no name is similar."""
    from difflib import get_close_matches  # imported lazily, because most programs never mistype a name

    return next(iter(get_close_matches(name, known, n=1)), None)
