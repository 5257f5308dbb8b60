"""Run `actors` and scripts in forked processes (`tests.runtime.forked`), each with its own streams and environment.

Modules that the command line imports lazily are imported before the fork. Other tests, without a fork, check that those
imports are lazy.
"""

import atexit
import fcntl
import gc
import os
import runpy
import stat
import sys
import termios
import threading
from io import TextIOWrapper

import actors.cli

LOADED = (
    "actors.adapters.anthropic.decode",
    "actors.adapters.anthropic.encode",
    "actors.adapters.importing",
    "actors.adapters.openai_chat.decode",
    "actors.adapters.openai_chat.encode",
    "actors.cli.replay",
    "actors.cli.run",
    "actors.cli.sessions",
    "actors.cli.simulate",
    "actors.core.check.openai_chat",
    "actors.core.models.table",
    "actors.provider.configured_credentials",
    "actors.runtime.machine",
    "actors.runtime.hosting",
    "actors.runtime.journal_admin",
    "actors.runtime.runtime",
    "actors.session.session_actor",
    "actors.journal.storage.sqlite",
    "actors.testing",
    "actors.strict.dialects",
    "actors.tools.signature",
    "actors.transport.exchange",
    "actors.transport.pool",
    "anyio._backends._asyncio",
    "anyio._backends._trio",
    "anyio._core._signals",
    "genai_prices.data",
    "genai_prices.data_snapshot",
    "jsonschema_rs",
    "sqlite3",
    "structlog.dev",
)
_FLAGS = (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)


def run(
    env: dict[str, str],
    streams: list[str],
    arguments: list[str],
    script: str = "",
    before: str = "",
    is_taken_apart: bool = True,
) -> None:
    """Run `actors` with these arguments, or a script, with the given output; a single stream is its terminal.

    The code in `before` runs with line-buffered streams, as in a user's process. Without `is_taken_apart`, a command
    that writes to files ends after its threads (`_end`).
    """
    if len(streams) == 1:
        _take_terminal(streams[0], is_buffered=bool(before))
    else:
        for number, (path, flags) in enumerate(zip(streams, _FLAGS, strict=True)):
            os.dup2(os.open(path, flags), number)
        if stat.S_ISFIFO(os.fstat(1).st_mode):  # the original streams of the first process stay referenced
            sys.stdout, sys.stderr = TextIOWrapper(os.fdopen(1, "wb", closefd=False)), _buffered_stream(2)
    os.environ.clear()
    os.environ.update(env)
    exec(before, {})
    if not script:
        code = actors.cli.main(arguments)
        if is_taken_apart or not stat.S_ISREG(os.fstat(1).st_mode):
            sys.exit(code)
        _end(code)
    os.chdir(os.path.dirname(streams[-1]))
    runpy.run_path(script, run_name="__main__")
    sys.exit()


def _end(code: int) -> None:
    """Exit as Python does, but skip the teardown of modules, which takes most of a command's time.

    Unreferenced objects are still collected, with warnings for those that were left open.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _take_terminal(terminal: str, *, is_buffered: bool) -> None:
    """Make this terminal the controlling one."""
    os.setsid()
    own = os.open(terminal, os.O_RDWR)
    fcntl.ioctl(own, termios.TIOCSCTTY, 0)
    for number in range(3):
        os.dup2(own, number)
    os.close(own)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout, sys.stderr = (
        _buffered_stream(number) if is_buffered else _unbuffered_stream(number) for number in (1, 2)
    )


def _buffered_stream(number: int) -> TextIOWrapper:
    return TextIOWrapper(os.fdopen(number, "wb", closefd=False), line_buffering=True)


def _unbuffered_stream(number: int) -> TextIOWrapper:
    return TextIOWrapper(os.fdopen(number, "wb", buffering=0, closefd=False), write_through=True)
