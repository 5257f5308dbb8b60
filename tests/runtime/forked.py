"""Run functions and programs in processes forked from one that has already imported their modules.

`Forked("tests.runtime.takeover_child", "1.5")` is `python -m tests.runtime.takeover_child 1.5` with pipes to write to
and to read from; `fork("module:function", ...)` calls a function. Starting Python and importing modules would take
most of the time of such a process. Each process is forked before there is an event loop or a thread.
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
from typing import NamedTuple, TextIO

PROGRAMS = (
    "actors.runtime.hosting",
    "actors.runtime.journal_admin",
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
    "tests.journal.storages",
    "tests.transport.crowd",
)
"""Modules that the programs import. Programs that need others import them themselves."""
ANSWER = 60.0
"""Seconds within which a process must end when it is expected to."""


class Template(NamedTuple):
    """A process to fork from.

    Args:
        loaded: The modules that it imports.
        flags: Command-line flags of Python.
    """

    loaded: tuple[str, ...] = PROGRAMS
    flags: tuple[str, ...] = ()


class Child:
    """A forked process. After `wait`, `returncode` is its exit status, or the negative number of a signal."""

    def __init__(self, pid: int, template: Template) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._template = template

    def kill(self) -> None:
        """Kill the process if it is running."""
        if self.returncode is None:  # until it has been waited for, no other process can have its id
            os.kill(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Stop the process, and return when it has stopped."""
        os.kill(self.pid, signal.SIGSTOP)
        assert os.WIFSTOPPED(self._ask_status(os.WUNTRACED))

    def wait(self, timeout: float = ANSWER) -> int:
        """Wait for the process to end; return its status.

        Raises:
            TimeoutError: The process did not end in time.
        """
        if self.returncode is None:
            process = os.pidfd_open(self.pid)
            try:
                if not select.select([process], [], [], timeout)[0]:
                    raise TimeoutError(f"process {self.pid} did not end in {timeout:g} s")
            finally:
                os.close(process)
            self.returncode = os.waitstatus_to_exitcode(self._ask_status(0))
        return self.returncode

    def _ask_status(self, options: int) -> int:
        return _ask(self._template, ["wait", self.pid, options])


def fork(function: str, *arguments: object, template: Template, streams: Sequence[int] = ()) -> Child:
    """Call a function in a forked process, which ends when the function returns.

    Args:
        function: Its module and name: `tests.cli.forking:run`.
        arguments: Its arguments, serializable as JSON.
        streams: File descriptors that become the standard streams, in order.
    """
    return Child(_ask(template, ["fork", function, *arguments], *streams), template)


class Forked(Child):
    """A running program with text streams to and from it. It inherits the environment of its caller.

    Args:
        module: Its main module.
        arguments: Its command-line arguments.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        from_, out = os.pipe()
        in_, to = os.pipe()
        self.stdin: TextIO = os.fdopen(to, "w")
        self.stdout: TextIO = os.fdopen(from_)
        child = fork(
            "tests.runtime.forked:run_module",
            module,
            dict(os.environ),
            *arguments,
            template=Template(),
            streams=(in_, out, 2),
        )
        super().__init__(child.pid, Template())
        os.close(in_)
        os.close(out)

    def end(self) -> None:
        """Kill the program if it is running, and close its streams."""
        self.kill()
        self.wait()
        for stream in (self.stdin, self.stdout):
            with suppress(BrokenPipeError):  # a dead program reads no more input
                stream.close()


def run(module: str, *arguments: str, timeout: float = 300.0) -> tuple[int, str]:
    """Run a program until it ends or the timeout has passed; return its status and its output."""
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
def run_in_fork(function: Callable[[], object]) -> Iterator[TextIO]:
    """Call a function in a fork of this process, which must have no threads, and yield its output.

    The function must return when its standard input ends, which happens at the end of the block.

    Raises:
        AssertionError: The function raised an exception, which it printed to stderr.
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
            if os.getpid() == own:  # the block may fork as well
                printed.read()
                _, status = os.waitpid(child, 0)
    assert status == 0, f"the forked function ended with {os.waitstatus_to_exitcode(status)}"


def _call(function: Callable[[], object], *streams: int) -> None:
    """Call a function with these standard streams, and end this process."""
    status = 1
    try:
        _redirect(streams)
        function()
        sys.stdout.flush()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _redirect(streams: Sequence[int]) -> None:
    """Make these descriptors the standard streams, in order."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)


_ASKING = Lock()


def _ask(template: Template, command: list[object], *descriptors: int) -> int:
    """Send a command to the template process; return its answer, a process id or a status."""
    with _ASKING:
        asked, _ = _process(template)
        text = json.dumps(command).encode()
        socket.send_fds(asked, [len(text).to_bytes(4, "big")], descriptors)
        asked.sendall(text)
        return int(asked.recv(64))


@cache
def _process(template: Template) -> tuple[socket.socket, "subprocess.Popen[bytes]"]:
    """Return a socket to the template process, and the process, which ends when the socket is closed."""
    ours, its = socket.socketpair()
    line = [
        sys.executable,
        *template.flags,
        "-m",
        "tests.runtime.forked",
        str(its.fileno()),
        *template.loaded,
    ]
    pipe = subprocess.PIPE  # a pipe, because the streams of a child would share the position of a file
    with its:
        process = subprocess.Popen(line, pass_fds=[its.fileno()], stdin=pipe, stdout=pipe)
    return ours, process


def run_module(module: str, environ: dict[str, str], *arguments: str) -> None:
    """Run a module as the main program."""
    os.environ.clear()
    os.environ.update(environ)
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def main(caller: str, *loaded: str) -> None:
    """Import modules, then fork for each command. Children do not collect objects that were frozen before the fork."""
    for name in loaded:
        import_module(name)
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(caller)) as asking:
        while True:
            size, descriptors, _, _ = socket.recv_fds(asking, 4, 3)
            if not size:
                return
            kind, *what = json.loads(asking.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
            if kind == "wait":
                _, answer = os.waitpid(*what)
            elif (answer := os.fork()) == 0:
                break
            for each in descriptors:
                os.close(each)
            asking.sendall(str(answer).encode())
    _redirect(descriptors)
    del sys.argv[1:]  # a program sets its own arguments
    module, _, function = what[0].partition(":")
    getattr(import_module(module), function)(*what[1:])
    sys.exit()


if __name__ == "__main__":
    main(*sys.argv[1:])
