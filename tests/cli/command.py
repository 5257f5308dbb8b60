"""Runs the command line as a user does, in a process of its own."""

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
"""What a command runs before, so that it does not wait long for a retry."""


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended."""

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
    """Return the process's environment without keys and base URLs, with a place for conversations, and with `extra`."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    place = mkdtemp(dir=os.environ["XDG_DATA_HOME"])
    return {**kept, "XDG_DATA_HOME": place, **(extra or {})}


def command(*arguments: str) -> list[str]:
    """Return the command line of `actors`."""
    return [sys.executable, "-c", "import sys, actors.cli; sys.exit(actors.cli.main())", *arguments]


def forked(
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
    """A forked `actors` that runs: what it says as it says it, its signals, its end."""

    def __init__(self, folder: str, *arguments: str) -> None:
        paths = [Path(folder, name) for name in ("out", "err")]
        for path in paths:
            os.mkfifo(path)
        self._out, self._err = (os.open(path, os.O_RDONLY | os.O_NONBLOCK) for path in paths)
        self._forked = forked([Path(os.devnull), *paths], arguments, environ(), "actors.cli.simulate")
        self.code: int | None = None

    async def said(self) -> bytes:
        """Return what comes next of its output; nothing if no more will."""
        return await _more(self._out)

    async def rest(self) -> tuple[str, str]:
        """Return what is left of its output, and all that it wrote as errors."""
        out, err = [b"".join([piece async for piece in _pieces(pipe)]) for pipe in (self._out, self._err)]
        return out.decode(), err.decode()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self._forked.pid, number)

    async def ended(self) -> int:
        """Wait for its end, and return its status, a signal's as a negative number."""
        self.code = await anyio.to_thread.run_sync(self._forked.wait, SECONDS)
        return self.code

    def close(self) -> None:
        """End it, if it has not ended."""
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
async def started(*arguments: str) -> AsyncIterator[Running]:
    """Run `actors` for the time of the block, one at a time, beside those that are run to their end."""
    with anyio.fail_after(SECONDS), TemporaryDirectory() as folder:
        process = Running(folder, *arguments)
        try:
            yield process
        finally:
            process.close()


def _ended(
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
        code = forked(streams, arguments, env, *loaded, script=script, before=before).wait(SECONDS)
        return Done(code, *(path.read_bytes().decode() for path in streams[1:]))


def actors_now(*arguments: str, env: Mapping[str, str] | None = None, stdin: str = "") -> Done:
    """Run `actors` with these arguments to its end, for tests that need no server."""
    return _ended(arguments, environ(env), stdin)


def script(path: Path) -> Done:
    """Run a script to its end, in a folder of its own; a warning is an error."""
    return _ended((), environ(), "", script=str(path))


def python(code: str) -> Done:
    """Run some Python to its end, which it brings about itself, with all that `actors` needs loaded before."""
    return _ended((), environ(), "", before=code)


async def actors(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    loaded: Sequence[str] = (),
    before: str = "",
) -> Done:
    """Run `actors` with these arguments to its end, while servers of this process serve it; some Python `before`.

    `loaded` are modules that many such commands would import, each by itself.
    """
    given = environ(env)
    with anyio.fail_after(SECONDS):
        return await anyio.to_thread.run_sync(lambda: _ended(arguments, given, stdin, *loaded, before=before))
