"""Create a runtime, then fork two workers that enter it, as a preforking server does with an application.

    python -m tests.runtime.forked_workers BACKEND BASE_URL [JOURNAL]

The second worker starts when the first has done its part, and the first stays alive until the second has finished.
Each prints a line of JSON: its session, the idempotency key of its call, its delay before the retry in seconds, and
the error of resuming session-1.
"""

import json
import os
import sys
import traceback

import anyio
import anyio.to_thread

from actors import Runtime, ToolContext, tool
from actors.config import BackendSettings, Config, FileSettings
from actors.errors import SessionError

PATIENCE = 60
"""Seconds that a worker may take."""


async def work(runtime: Runtime) -> dict[str, object]:
    """Run one ask whose first request fails; return the report of this worker."""
    keys, waits = list[str](), list[float]()

    @tool(effects="idempotent")
    async def pay(context: ToolContext[None]) -> str:
        """Pay."""
        keys.append(context.idempotency_key)
        return "paid"

    session = await runtime.open("a", tools=[pay])
    async with session.stream("Pay.") as events:
        async for event in events:
            if event.type == "request_failed" and event.retry_after is not None:
                waits.append(event.retry_after)
    try:
        await runtime.resume("session-1")
        error = ""
    except SessionError as raised:
        error = type(raised).__name__
    return {"session": session.id, "keys": keys, "waits": waits, "error": error}


async def live(runtime: Runtime, told: int, until: int) -> None:
    """Be a worker: print the report, and stay alive until the other worker has ended."""
    with anyio.fail_after(PATIENCE):
        async with runtime:
            os.write(told, json.dumps(await work(runtime)).encode() + b"\n")
            os.close(told)
            await anyio.to_thread.run_sync(os.read, until, 1)


def fork_worker(runtime: Runtime, backend: str, until: int, *unused: int) -> tuple[int, str]:
    """Fork a worker; return its process id and its report."""
    from_, told = os.pipe()
    if (pid := os.fork()) == 0:
        for each in (from_, *unused):
            os.close(each)
        try:
            anyio.run(live, runtime, told, until, backend=backend)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(told)
    with os.fdopen(from_) as said:
        return pid, said.read()


def main(backend: str, url: str, journal: str | None = None) -> None:
    """Be the preforking server."""
    settings = BackendSettings.model_validate({"kind": "openai", "model": "gpt-5.2", "base_url": url})
    runtime = Runtime(Config(FileSettings(backends={"a": settings}), {}), journal=journal)
    until, over = os.pipe()
    first, said = fork_worker(runtime, backend, until, over)
    sys.stdout.write(said)
    second, said = fork_worker(runtime, backend, os.open(os.devnull, os.O_RDONLY), over)
    sys.stdout.write(said)
    os.close(over)
    for pid in (first, second):
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
