"""Describe errors, faults and lists for the fields of log events, without content of conversations.

The message of an error may quote content, so only errors of this package are logged with their message.
"""

from collections.abc import Sequence

from actors.errors import ActorsError, Fault

MOST_ENTRIES = 50
"""Maximum entries of a list in an event."""


def raise_location(error: BaseException) -> str:
    """Return the file and line that raised an error, such as `tools.py:12`."""
    place, step = "unknown", error.__traceback__
    while step is not None:
        place = f"{step.tb_frame.f_code.co_filename}:{step.tb_lineno}"
        step = step.tb_next
    return place


def error_type(error: BaseException) -> str:
    return type(error).__name__


def describe_error(error: BaseException) -> str:
    """Return the type of an error, with the message only for errors of this package.

    Other messages may quote content.
    """
    kind = error_type(error)
    return f"{kind}: {error}"[:500] if isinstance(error, ActorsError) else kind


def describe_fault(fault: Fault) -> str:
    """Return the class of a fault, its rule and the ids of its calls."""
    words = [fault.fault_class, fault.rule or "no known rule", *limit_names(fault.call_ids)]
    return " ".join(words)


def limit_names(values: Sequence[str]) -> list[str]:
    """Return the first `MOST_ENTRIES` values, followed by the number of omitted values."""
    more = [f"and {len(values) - MOST_ENTRIES} more"] if len(values) > MOST_ENTRIES else []
    return [*values[:MOST_ENTRIES], *more]
