"""Run host code with the context variables of its caller, even if an actor calls that code.

Handlers and children of actors run in the system's own context variables, so that the variables of one caller do not
reach another.
"""

from collections.abc import Callable
from contextvars import Context
from typing import TypeVar

from actors.kernel.receiver import current

R = TypeVar("R")


def call_with_variables(variables: Context, work: Callable[[], R]) -> R:
    """Return the result of `work()`, run with a copy of these variables. Variables that `work` sets are discarded.

    If a child task of an actor calls this, queries in `work` still count as queries of that child.
    """
    context = variables.copy()
    context.run(current.set, current.get())
    return context.run(work)
