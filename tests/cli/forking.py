"""`actors` loaded once, and forked for each command line: what Python takes to start is most of what a command takes.

Read from standard input, one JSON line for each command: `{"arguments": [...], "env": {...}, "streams": [three
files]}`. Written, a line for each: the status it ended with. Each command is a process of its own, with streams and an
environment of its own, which begins before there is an event loop.
"""

import gc
import json
import os
import sys
from importlib import import_module

import actors.cli

LOADED = (
    "actors.cli.run",
    "actors.runtime",
    "actors.transport",
    "anyio._backends._asyncio",
    "anyio._backends._trio",
)
_FLAGS = (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)


def run(arguments: list[str], env: dict[str, str], streams: list[str]) -> None:
    """Be the command."""
    for number, (path, flags) in enumerate(zip(streams, _FLAGS, strict=True)):
        os.dup2(os.open(path, flags), number)
    os.environ.clear()
    os.environ.update(env)
    sys.exit(actors.cli.main(arguments))


def main() -> None:
    """Load, then fork for each line. What is frozen no command looks through at its end."""
    for name in LOADED:
        import_module(name)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(**json.loads(line))
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
