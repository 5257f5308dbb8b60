"""The API of `actors` for programs without an event loop: scripts, notebooks and plain threads.

    from actors import sync

    with sync.BlockingRuntime("actors.toml") as runtime:
        session = runtime.open("main", tools=[weather])
        for text in session.stream_text("Weather in Oslo?"):
            print(text, end="")

A `BlockingRuntime` starts a thread with an event loop that hosts an `actors.Runtime`. Each call runs on that loop, with
the caller's context variables, while the caller waits. Any thread may call, even one with a running event loop of its
own, as in a notebook. An interrupt (Ctrl-C) that reaches the caller of an ask cancels that ask.

When the main thread ends, each open runtime is closed, even if other threads use it. So let the main thread wait for
these threads.
"""

from actors.sync.calls import Steps
from actors.sync.runtime import BlockingRuntime, run
from actors.sync.session import BlockingSession

__all__ = ["BlockingRuntime", "BlockingSession", "Steps", "run"]
