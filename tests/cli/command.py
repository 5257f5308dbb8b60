"""Runs the command line as a user does, in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import anyio

SECONDS = 60


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


def actors_now(*arguments: str, env: Mapping[str, str] | None = None) -> Done:
    """Run `actors` to its end, for tests that need no server."""
    ended = subprocess.run(
        command(*arguments), input=b"", env=environ(env), capture_output=True, timeout=SECONDS, check=False
    )
    return Done(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


async def actors(*arguments: str, env: Mapping[str, str] | None = None, stdin: str = "") -> Done:
    """Run `actors` with these arguments to its end."""
    with anyio.fail_after(SECONDS):
        ended = await anyio.run_process(
            command(*arguments), input=stdin.encode(), env=environ(env), check=False
        )
    return Done(ended.returncode, ended.stdout.decode(), ended.stderr.decode())
