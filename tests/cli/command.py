"""Run the command line as a user does, in a separate process."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import anyio
import anyio.to_thread

from tests.cli.forking import LOADED
from tests.commands.at_scale import extent
from tests.runtime.forked import Child, Template, fork

SECONDS = 300
SHORT_WAITS = "from tests.short_waits import shorten; shorten()"
"""Code that a command runs first, so that it does not wait long for a retry."""


@dataclass(frozen=True, slots=True)
class Done:
    """A finished command."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one line on standard error."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        return lines[0].removeprefix("actors: ")


def environ(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of this process without keys and base URLs, with a conversation folder and `extra`."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    place = mkdtemp(dir=os.environ["XDG_DATA_HOME"])
    return {**kept, "XDG_DATA_HOME": place, **(extra or {})}


def command(*arguments: str) -> list[str]:
    """Return the command line of `actors`."""
    return [sys.executable, "-c", "import sys, actors.cli; sys.exit(actors.cli.main())", *arguments]


def fork_actors(
    streams: Sequence[Path],
    arguments: Sequence[str],
    env: Mapping[str, str],
    *loaded: str,
    script: str = "",
    before: str = "",
) -> Child:
    """Run `actors`, or a script, in a forked process; `tests.cli.forking.run` describes the arguments.

    `loaded` are modules that it imports besides `tests.cli.forking.LOADED`.
    """
    paths, is_taken_apart = [str(path) for path in streams], extent(False, True)
    template = Template((*LOADED, *loaded), ("-W", "error"))
    what = (dict(env), paths, list(arguments), script, before, is_taken_apart)
    return fork("tests.cli.forking:run", *what, template=template)


class Running:
    """A running forked `actors`: its output as it is written, its signals, its end."""

    def __init__(self, folder: str, *arguments: str) -> None:
        paths = [Path(folder, name) for name in ("out", "err")]
        for path in paths:
            os.mkfifo(path)
        self._out, self._err = (os.open(path, os.O_RDONLY | os.O_NONBLOCK) for path in paths)
        self._forked = fork_actors([Path(os.devnull), *paths], arguments, environ(), "actors.cli.simulate")
        self.code: int | None = None

    async def next_output(self) -> bytes:
        """Return the next piece of output; empty at the end."""
        return await _more(self._out)

    async def rest(self) -> tuple[str, str]:
        """Return the remaining output, and everything written to standard error."""
        out, err = [b"".join([piece async for piece in _pieces(pipe)]) for pipe in (self._out, self._err)]
        return out.decode(), err.decode()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        os.kill(self._forked.pid, number)

    async def wait_for_end(self) -> int:
        """Wait for the end of the process, and return its status, negative for a signal."""
        self.code = await anyio.to_thread.run_sync(self._forked.wait, SECONDS)
        return self.code

    def close(self) -> None:
        """Kill the process if it is still running."""
        if self.code is None:
            self.signal(signal.SIGKILL)
            self.code = self._forked.wait()
        os.close(self._out)
        os.close(self._err)


async def _more(pipe: int) -> bytes:
    await anyio.wait_readable(pipe)
    return os.read(pipe, 65536)


async def _pieces(pipe: int) -> AsyncIterator[bytes]:
    while piece := await _more(pipe):
        yield piece


@asynccontextmanager
async def run_in_background(*arguments: str) -> AsyncIterator[Running]:
    """Run `actors` until the end of the block, one at a time, concurrently with commands that run to their end."""
    with anyio.fail_after(SECONDS), TemporaryDirectory() as folder:
        process = Running(folder, *arguments)
        try:
            yield process
        finally:
            process.close()


def _run_to_end(
    arguments: Sequence[str],
    env: Mapping[str, str],
    stdin: str,
    *loaded: str,
    script: str = "",
    before: str = "",
) -> Done:
    with TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("in", "out", "err")]
        for path in streams:
            path.write_text(stdin if path.name == "in" else "", encoding="utf-8")
        code = fork_actors(streams, arguments, env, *loaded, script=script, before=before).wait(SECONDS)
        return Done(code, *(path.read_bytes().decode() for path in streams[1:]))


def actors_now(*arguments: str, env: Mapping[str, str] | None = None, stdin: str = "") -> Done:
    """Run `actors` with these arguments to its end, for tests that need no server."""
    return _run_to_end(arguments, environ(env), stdin)


def script(path: Path) -> Done:
    """Run a script to its end, in a separate folder; a warning is an error."""
    return _run_to_end((), environ(), "", script=str(path))


def python(code: str) -> Done:
    """Run Python code to its end, with all modules of `actors` imported before."""
    return _run_to_end((), environ(), "", before=code)


async def actors(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    loaded: Sequence[str] = (),
    before: str = "",
) -> Done:
    """Run `actors` with these arguments to its end, while this process serves it; the Python code `before` runs first.

    `loaded` are modules that many of these commands would import separately.
    """
    given = environ(env)
    with anyio.fail_after(SECONDS):
        return await anyio.to_thread.run_sync(
            lambda: _run_to_end(arguments, given, stdin, *loaded, before=before)
        )
