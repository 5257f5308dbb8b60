"""Reset module state in forked child processes, which do not have the parent's other threads."""

import os
from collections.abc import Callable


def reset_after_fork(reset: Callable[[], None]) -> None:
    """Call `reset` in every child process that is forked from now on, before any other code runs there.

    `reset` must not acquire a lock, because the thread that would release the lock may not exist in the child.
    """
    if hasattr(os, "register_at_fork"):  # Windows does not fork
        os.register_at_fork(after_in_child=reset)
