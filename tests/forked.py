"""Programs of this tree, forked from one process that has imported what they import.

`Forked("tests.takeover_child", "1.5")` is `python -m tests.takeover_child 1.5`, with pipes to write to and to read
from. What Python takes to start and to import is most of what such a program takes. Each is a process of its own,
which begins before there is an event loop or a thread, with the environment and the standard error of its caller.
"""

import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from threading import Lock, Timer
from typing import TextIO

LOADED = (
    "actors.runtime.runtime",
    "actors.journal.storage.sqlite",
    "actors.strict.dialects",
    "actors.transport.exchange",
    "actors.transport.pool",
    "anyio._backends._asyncio",
    "anyio._backends._trio",
    "anyio._core._signals",
    "concurrent.futures.process",
    "psycopg",
    "sqlite3",
    "tests.storages",
    "tests.transport.crowd",
)
"""Modules that the programs import. A program that imports others pays for them itself."""
ANSWER = 60.0
"""Seconds that a program may take to end, once it should."""


class Forked:
    """A program that runs: its process id, and text streams to it and from it.

    Args:
        module: Its main module.
        arguments: Of its command line.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        from_, out = os.pipe()
        in_, to = os.pipe()
        self.stdin: TextIO = os.fdopen(to, "w")
        self.stdout: TextIO = os.fdopen(from_)
        self.returncode: int | None = None
        self.pid = int(_ask([module, dict(os.environ), *arguments], in_, out, 2))
        os.close(in_)
        os.close(out)

    def kill(self) -> None:
        """Kill it, if it lives."""
        if self.returncode is None:  # until it was waited for, nobody else has its process id
            os.kill(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Stop it, and wait until it has stopped."""
        os.kill(self.pid, signal.SIGSTOP)
        assert os.WIFSTOPPED(int(_ask([self.pid, os.WUNTRACED])))

    def wait(self, timeout: float = ANSWER) -> int:
        """Wait for its end; return its status, a signal's as a negative number.

        Raises:
            TimeoutError: It did not end.
        """
        if self.returncode is None:
            process = os.pidfd_open(self.pid)
            try:
                if not select.select([process], [], [], timeout)[0]:
                    raise TimeoutError(f"process {self.pid} did not end in {timeout:g} s")
            finally:
                os.close(process)
            self.returncode = os.waitstatus_to_exitcode(int(_ask([self.pid, 0])))
        return self.returncode

    def end(self) -> None:
        """Kill it, if it lives; let go of its streams."""
        self.kill()
        self.wait()
        for stream in (self.stdin, self.stdout):
            with suppress(BrokenPipeError):  # what it has not read it never will
                stream.close()


def run(module: str, *arguments: str, timeout: float = 300.0) -> tuple[int, str]:
    """Run a program to its end, or until its time is over; return its status, and what it printed."""
    program = Forked(module, *arguments)
    end = Timer(timeout, program.kill)
    end.start()
    try:
        printed = program.stdout.read()
        return program.wait(), printed
    finally:
        end.cancel()
        end.join()
        program.end()


@contextmanager
def beside(function: Callable[[], object]) -> Iterator[TextIO]:
    """Call a function in a fork of this process, which has no threads, and give what it prints.

    It has to end when its standard input does, which is at the end of the block.

    Raises:
        AssertionError: It raised something, which it has printed as an error.
    """
    from_, out = os.pipe()
    in_, to = os.pipe()
    sys.stdout.flush()
    if not (child := os.fork()):
        os.close(to)
        _call(function, in_, out)
    os.close(in_)
    os.close(out)
    status, own = 0, os.getpid()
    with os.fdopen(from_) as printed:
        try:
            yield printed
        finally:
            os.close(to)
            if os.getpid() == own:  # the block may fork, too
                printed.read()
                _, status = os.waitpid(child, 0)
    assert status == 0, f"what ran beside ended with {os.waitstatus_to_exitcode(status)}"


def _call(function: Callable[[], object], *streams: int) -> None:
    """Call a function with these streams, and end this process."""
    status = 1
    try:
        _take(streams)
        function()
        sys.stdout.flush()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _take(streams: Sequence[int]) -> None:
    """Have these as the standard streams, in order."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)


_ASKING = Lock()


def _ask(what: list[object], *descriptors: int) -> str:
    """Return the answer of the process that forks."""
    with _ASKING:
        template, _ = _template()
        text = json.dumps(what).encode()
        socket.send_fds(template, [len(text).to_bytes(4, "big")], descriptors)
        template.sendall(text)
        return template.recv(64).decode()


@cache
def _template() -> tuple[socket.socket, "subprocess.Popen[bytes]"]:
    """Return the process that forks, and a socket to it; it ends when that is closed, with this process."""
    ours, its = socket.socketpair()
    line = [sys.executable, "-m", "tests.forked", str(its.fileno())]
    nothing = subprocess.DEVNULL
    with its:
        process = subprocess.Popen(line, pass_fds=[its.fileno()], stdin=nothing, stdout=nothing)
    return ours, process


def _be(module: str, environ: dict[str, str], *arguments: str) -> None:
    """Be a program, to its end."""
    os.environ.clear()
    os.environ.update(environ)
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    sys.exit()


def main() -> None:
    """Import, then fork for each program. What is frozen none of them looks through at its end."""
    for name in LOADED:
        import_module(name)
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as caller:
        while True:
            size, descriptors, _, _ = socket.recv_fds(caller, 4, 3)
            if not size:
                return
            asked = json.loads(caller.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
            if not descriptors:
                _, answer = os.waitpid(*asked)
            elif (answer := os.fork()) == 0:
                break
            for each in descriptors:
                os.close(each)
            caller.sendall(str(answer).encode())
    _take(descriptors)
    _be(*asked)


if __name__ == "__main__":
    main()
