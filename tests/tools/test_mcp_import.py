"""The first MCP server of a process does not block the event loop: the SDK is imported once, in a thread."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from actors.tools.mcp import SdkImport
from tests.commands.at_scale import extent
from tests.runtime.hosting_cases import case

BACKENDS = ("asyncio", "trio")
CASE = case("first-mcp-server-stops-the-loop")


class HeldImport:
    """An import that lasts until `may_end` is set, with a list of the threads in which it began."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)
        self.threads: list[threading.Thread] = []
        self.may_end = threading.Event()
        self.sdk = SdkImport(self._load)

    def _load(self) -> None:
        self.threads.append(threading.current_thread())
        assert self.may_end.wait(60)
        if self._errors:
            raise self._errors.pop(0)


async def wait_for_users(loading: HeldImport, many: int) -> None:
    """Wait until `many` tasks wait for the import."""
    while len(loading.sdk._waiting) < many:
        await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("backend", extent(BACKENDS[:1], BACKENDS))
def test_the_thread_of_the_event_loop_never_imports_the_mcp_sdk(backend: str) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.tools.mcp_servers.first_use", backend]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=True)
    seen = json.loads(ran.stdout)
    assert "imported in a thread" in CASE["expected"]
    assert seen["loop"] == []
    assert {"mcp", "mcp_types", "actors.tools.mcp.connection"} <= {*seen["thread"]}
    assert len(seen["thread"]) == len({*seen["thread"]})


@pytest.mark.anyio
async def test_an_import_of_the_mcp_sdk_does_not_block_the_event_loop_and_is_shared_by_all_users() -> None:
    loading, done = HeldImport(), 0

    async def use() -> None:
        nonlocal done
        await loading.sdk.ready()
        done += 1

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(use)
            await wait_for_users(loading, 10)
            assert done == 0  # this task runs, and none of the waiting tasks has continued
            loading.may_end.set()
        await use()
    assert done == 11
    (thread,) = loading.threads
    assert thread is not threading.current_thread()
    assert thread.daemon


@pytest.mark.anyio
async def test_an_import_of_the_mcp_sdk_continues_if_its_caller_is_cancelled() -> None:
    loading = HeldImport()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(loading.sdk.ready)
            await wait_for_users(loading, 1)
            tasks.cancel_scope.cancel()
        with anyio.move_on_after(0.001) as scope:
            await loading.sdk.ready()
        assert scope.cancelled_caught
        loading.may_end.set()
        await loading.sdk.ready()
    assert len(loading.threads) == 1


@pytest.mark.anyio
async def test_a_failed_import_of_the_mcp_sdk_is_raised_and_the_next_use_retries_it() -> None:
    loading, raised = HeldImport(ImportError("half installed")), list[BaseException]()

    async def use() -> None:
        with pytest.raises(ImportError, match="half installed") as caught:
            await loading.sdk.ready()
        raised.append(caught.value)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(use)
            tasks.start_soon(use)
            await wait_for_users(loading, 2)
            loading.may_end.set()
        await loading.sdk.ready()
    assert len({*map(id, raised)}) == 2
    assert len(loading.threads) == 2


def test_uses_of_several_event_loops_share_an_import() -> None:
    loading = HeldImport()

    async def leave() -> None:
        with anyio.move_on_after(0.001):
            await loading.sdk.ready()

    async def use() -> None:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(loading.sdk.ready)
                await wait_for_users(loading, 3)
                loading.may_end.set()

    for backend in BACKENDS:
        anyio.run(leave, backend=backend)
    anyio.run(use, backend="asyncio")
    assert len(loading.threads) == 1


def test_a_forked_child_starts_a_new_import() -> None:
    loading = HeldImport()

    async def leave() -> None:
        with anyio.move_on_after(0.001):
            await loading.sdk.ready()

    async def use() -> None:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(loading.sdk.ready)
                while len(loading.threads) < 2:
                    await anyio.lowlevel.checkpoint()
                loading.may_end.set()

    anyio.run(leave)
    loading.sdk.reset()  # called after a fork, because the child lacks the thread
    anyio.run(use)
