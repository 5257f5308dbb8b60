"""Run host code with its caller's context variables, wherever it is called.

Handlers and children of actors run in the system's own variables, so that the variables of one caller do not reach
another.
"""

from collections.abc import Callable
from contextvars import Context
from typing import TypeVar

from actors.kernel.receiver import current

R = TypeVar("R")


def with_variables(variables: Context, work: Callable[[], R]) -> R:
    """Return the result of `work`, run with these variables. Variables that it sets are discarded.

    For actors, its asks still come from the current child.
    """
    context = variables.copy()
    context.run(current.set, current.get())
    return context.run(work)
