"""What a process that was forked begins anew: state of the process that speaks of threads, which the child has not."""

import os
from collections.abc import Callable


def reset_after_fork(reset: Callable[[], None]) -> None:
    """Call `reset` in every child that is forked from now on, before anything else runs there.

    It must not take a lock: in the child nobody may be there to release it.
    """
    if hasattr(os, "register_at_fork"):  # Windows does not fork
        os.register_at_fork(after_in_child=reset)
