"""Sessions that all stream at once, each over its own connection.

    python -m tests.transport.crowd                  5,000 sessions on each backend
    python -m tests.transport.crowd --sessions N     N sessions

All answers begin before any continues. Every turn must complete, and no descriptor may leak.
"""

import argparse
import json
import resource
import sys

import anyio

from actors.config import Config
from actors.config.settings import BackendLimits, BackendSettings, FileSettings, RuntimeLimits
from actors.runtime.runtime import Runtime
from tests.transport.support import Peer, descriptors, raw

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def event(text: str, finish: str | None = None) -> bytes:
    """Return one chunk with one event of a stream."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    data = b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST = event("", "stop") + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


def configuration(url: str, sessions: int) -> Config:
    """Return a configuration with one backend, `crowd`, that accepts all sessions at once."""
    patient = BackendLimits(
        concurrency=sessions, attempts=1, connect_timeout=600, first_byte_timeout=600, idle_timeout=600
    )
    backend = BackendSettings(kind="openai", model="m", base_url=url, limits=patient)
    whole = RuntimeLimits(connections=sessions)
    return Config(FileSettings(backends={"crowd": backend}, limits=whole), {})


async def crowd(sessions: int) -> tuple[list[str], int]:
    """Return the errors of failed turns, and the number of simultaneous connections."""
    streaming, all_stream = 0, anyio.Event()

    async def answer(peer: Peer) -> None:
        nonlocal streaming
        while await peer.request() is not None:
            await peer.say(HEAD + event("All of us "))
            streaming += 1
            if streaming == sessions:
                all_stream.set()
            await all_stream.wait()
            await peer.say(event("at once."))
            await peer.say(LAST)

    before, failed = descriptors(), list[str]()
    async with raw(answer) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        async with Runtime(configuration(url, sessions), environ={}) as runtime:

            async def ask() -> None:
                answer = await (await runtime.open("crowd")).ask("Who streams?")
                if (answer.status, answer.text) != ("complete", "All of us at once."):
                    failed.append(answer.error or answer.text)

            async with anyio.create_task_group() as tasks:
                for _ in range(sessions):
                    tasks.start_soon(ask)
        if failed:
            return failed, server.most  # do not wait for the turns in progress, which would never end
        with anyio.fail_after(300):
            while server.now:
                await anyio.lowlevel.checkpoint()
    with anyio.fail_after(300):
        while descriptors() > before:
            await anyio.lowlevel.checkpoint()
    return failed, server.most


def has_descriptors(sessions: int) -> bool:
    """Raise the descriptor limit for both ends; return True if this process may have that many."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most == resource.RLIM_INFINITY or most > 2 * sessions + 100


def main() -> int:
    """Run the crowd on both backends."""
    parser = argparse.ArgumentParser(prog="python -m tests.transport.crowd")
    parser.add_argument("--sessions", type=int, default=5000)
    sessions = parser.parse_args().sessions
    if not has_descriptors(sessions):
        sys.stderr.write(f"{sessions} sessions need {2 * sessions + 100} descriptors: ulimit -Hn\n")
        return 2
    bad = 0
    for backend in ("asyncio", "trio"):
        failed, most = anyio.run(crowd, sessions, backend=backend)
        bad += len(failed)
        sys.stdout.write(f"{backend}: {most} connections at once, {len(failed)} turns failed\n")
        sys.stdout.writelines(f"    {why}\n" for why in sorted(set(failed)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
