"""Runs the command line as a user does, in a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

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
    """Return the process's environment without keys and base URLs, and with `extra`."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    return {**kept, **(extra or {})}


def command(*arguments: str) -> list[str]:
    """Return the command line of `actors`."""
    return [sys.executable, "-c", "import sys, actors.cli; sys.exit(actors.cli.main())", *arguments]


@cache
def _forking() -> "subprocess.Popen[str]":
    """Return the process that forks for each command; it ends when its input does, with this one."""
    line = [sys.executable, "-m", "tests.cli.forking"]
    return subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def actors_now(*arguments: str, env: Mapping[str, str] | None = None, stdin: str = "") -> Done:
    """Run `actors` with these arguments to its end, for tests that need no server."""
    forking = _forking()
    assert forking.stdin is not None
    assert forking.stdout is not None
    with TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("in", "out", "err")]
        for path in streams:
            path.write_text(stdin if path.name == "in" else "", encoding="utf-8")
        asked = {"arguments": arguments, "env": environ(env), "streams": [str(path) for path in streams]}
        forking.stdin.write(f"{json.dumps(asked)}\n")
        forking.stdin.flush()
        code = int(forking.stdout.readline())
        return Done(code, *(path.read_bytes().decode() for path in streams[1:]))


async def actors(*arguments: str, env: Mapping[str, str] | None = None, stdin: str = "") -> Done:
    """Run `actors` with these arguments to its end, while servers of this process serve it."""
    with anyio.fail_after(SECONDS):
        return await anyio.to_thread.run_sync(lambda: actors_now(*arguments, env=env, stdin=stdin))
