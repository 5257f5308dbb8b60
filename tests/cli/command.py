"""Runs the command line as a user does, in a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import anyio
import anyio.to_thread

SECONDS = 300


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


class Forked:
    """A program that `tests.cli.forking` runs, one at a time."""

    def __init__(
        self,
        streams: Sequence[Path],
        arguments: Sequence[str],
        env: Mapping[str, str],
        *loaded: str,
        script: str = "",
        before: str = "",
    ) -> None:
        self._from = _forking(*loaded)
        where = [str(path) for path in streams]
        asked = {
            "arguments": arguments,
            "env": dict(env),
            "streams": where,
            "script": script,
            "before": before,
        }
        assert self._from.stdin is not None
        self._from.stdin.write(f"{json.dumps(asked)}\n")
        self._from.stdin.flush()
        self.pid = int(self._line())

    def wait(self) -> int:
        """Wait for its end, and return its status, a signal's as a negative number."""
        return int(self._line())

    def _line(self) -> str:
        assert self._from.stdout is not None
        return self._from.stdout.readline()


@cache
def _forking(*loaded: str) -> "subprocess.Popen[str]":
    """Return the process that forks for each program; it ends when its input does, with this one."""
    line = [sys.executable, "-W", "error", "-m", "tests.cli.forking", *loaded]
    return subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _ended(arguments: Sequence[str], env: Mapping[str, str], stdin: str, script: str) -> Done:
    with TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("in", "out", "err")]
        for path in streams:
            path.write_text(stdin if path.name == "in" else "", encoding="utf-8")
        code = Forked(streams, arguments, env, script=script).wait()
        return Done(code, *(path.read_bytes().decode() for path in streams[1:]))


def actors_now(*arguments: str, env: Mapping[str, str] | None = None, stdin: str = "") -> Done:
    """Run `actors` with these arguments to its end, for tests that need no server."""
    return _ended(arguments, environ(env), stdin, "")


def script(path: Path) -> Done:
    """Run a script to its end, in a folder of its own; a warning is an error."""
    return _ended((), environ(), "", str(path))


async def actors(*arguments: str, env: Mapping[str, str] | None = None, stdin: str = "") -> Done:
    """Run `actors` with these arguments to its end, while servers of this process serve it."""
    with anyio.fail_after(SECONDS):
        return await anyio.to_thread.run_sync(lambda: actors_now(*arguments, env=env, stdin=stdin))
