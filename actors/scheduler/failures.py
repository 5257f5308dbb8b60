"""Describe, for the model, why a tool call failed or did not run.

In:  an exception that a tool or the host's code raised, or the name of a tool that did not run.
Out: a text of bounded length, or the JSON of the call's result.

The scheduler uses this module for tools, and the session uses it for results of external calls.
"""

from collections.abc import Iterator
from itertools import islice

from actors.core.data.ingest import ingest
from actors.core.data.jsonio import Json
from actors.errors import AskFailed, KernelError, ReentrantCall, ResourceBusy, ThreadsBusy
from actors.interrupts import is_group

MAX_ERROR_LENGTH, MAX_GROUP_ERRORS = 4096, 16
"""Maximum characters of an error message for the model, and maximum errors of an exception group in the message."""


def describe_for_model(error: BaseException) -> str:
    """Return a short description of an exception for the model: its type, its message, and the errors in a group.

    A general message replaces errors that only the tool's author can fix, such as `ReentrantCall`.
    """
    if is_group(error):
        return _describe_group(error)
    return _shorten(_describe_error(error), MAX_ERROR_LENGTH)


def _describe_group(group: BaseExceptionGroup[BaseException]) -> str:
    """Describe an exception group and its errors, one per line, within `MAX_ERROR_LENGTH` characters."""
    leaves = [*islice(_flatten(group), MAX_GROUP_ERRORS + 1)]
    room = MAX_ERROR_LENGTH // (len(leaves) + 1)
    lines = [_describe_error(group), *[f"- {_describe_error(leaf)}" for leaf in leaves[:MAX_GROUP_ERRORS]]]
    more = ["- and more"] if len(leaves) > MAX_GROUP_ERRORS else []
    return "\n".join([*[_shorten(line, room) for line in lines], *more])


def _flatten(group: BaseException) -> Iterator[BaseException]:
    """Yield the errors of nested exception groups in order, without the groups themselves."""
    waiting = [group]
    while waiting:
        error = waiting.pop()
        if is_group(error):
            waiting.extend(reversed(error.exceptions))
        else:
            yield error


def _describe_error(error: BaseException) -> str:
    """Return the type and the message of one exception. The host's `__str__` may raise any exception."""
    if isinstance(error, KernelError | ReentrantCall):
        return "The tool failed because of an error in the program that runs it."
    try:
        # The message of `AskFailed` contains advice for the operator, not for the model.
        message = error.result.error if isinstance(error, AskFailed) else str(error)
        text = str.__str__(message)  # a subclass of `str` may override methods
    except BaseException:  # the host's `__str__` may raise any exception
        text = "(the message of the error could not be read)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _shorten(text: str, limit: int) -> str:
    """Return the text in at most `limit` characters. A shortened text ends with " [cut]"."""
    return text if len(text) <= limit else f"{text[: limit - 6]} [cut]"


def disabled_error(tool: str) -> Json:
    """Return the result of a call to a tool that is disabled, because too many earlier calls still run."""
    message = (
        "Earlier calls of this tool are still running, so this call did not run. Continue without the tool."
    )
    return ingest({"tool_error": {"kind": "tool_barred", "tool": tool, "message": message}}).json


def not_run_error(tool: str, error: ThreadsBusy | ResourceBusy) -> Json:
    """Return the result of a call whose tool did not run, because no thread or no resource was free."""
    kind, why = _NOT_RUN[type(error)]
    message = f"{why}, so this call did not run. Try again later."
    return ingest({"tool_error": {"kind": kind, "tool": tool, "message": message}}).json


_NOT_RUN: dict[type[Exception], tuple[str, str]] = {
    ThreadsBusy: ("no_thread", "No thread was free to run the tool"),
    ResourceBusy: ("resource_busy", "An earlier call, which was stopped, still uses the same resource"),
}
