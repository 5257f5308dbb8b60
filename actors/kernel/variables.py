"""Context variables: host code that runs for a caller sees the caller's, wherever it is called.

Handlers and children of actors run in the system's own variables, so that one caller's do not reach another.
"""

from collections.abc import Callable
from contextvars import Context
from typing import TypeVar

from actors.kernel.receiver import current

R = TypeVar("R")


def with_variables(variables: Context, work: Callable[[], R]) -> R:
    """Return what `work` returns, which sees these variables. What it sets is seen by nobody else.

    Actors still take what it asks for what is asked from here.
    """
    context = variables.copy()
    context.run(current.set, current.get())
    return context.run(work)
