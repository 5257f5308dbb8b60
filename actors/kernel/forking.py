"""Reset state in forked processes: state that refers to threads, which the child does not have."""

import os
from collections.abc import Callable


def reset_after_fork(reset: Callable[[], None]) -> None:
    """Call `reset` in every child process forked from now on, before anything else runs there.

    It must not take a lock: in the child, the thread that would release the lock may not exist.
    """
    if hasattr(os, "register_at_fork"):  # Windows does not fork
        os.register_at_fork(after_in_child=reset)
