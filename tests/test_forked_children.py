"""Processes that were forked share neither threads nor names with each other and with their parent."""

import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from actors import Runtime, ToolContext, tool
from actors.testing import SERVER_ERROR, Call, OpenAIServer, Say, Turn, serve
from tests.postgres import Server

ROOT = Path(__file__).parents[1]


FORKS = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked elsewhere")
PAYING = [Turn(Call("pay", {})), Turn(Say("Paid."))]


@FORKS
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_forked_child_has_threads_of_its_own(backend: str) -> None:
    command = [sys.executable, "-m", "tests.forked_child", backend]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.splitlines() == [
        "blocking: ['complete']",
        "large: ['complete']",
        "stall seen: True",
    ], done.stderr


@FORKS
@pytest.mark.alternating
@pytest.mark.anyio
@pytest.mark.parametrize("journal", ["memory", "sqlite", "postgres"])
async def test_workers_forked_after_their_runtime_was_made_are_two_hosts(
    journal: str, anyio_backend_name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    server = OpenAIServer([*PAYING, *PAYING], faults={0: SERVER_ERROR, 3: SERVER_ERROR})
    where = []
    if journal == "sqlite":
        where = [str(tmp_path / "sessions.db")]
    elif journal == "postgres":
        database: Server = request.getfixturevalue("postgres")
        where = [database.url(database.schema())]
    with anyio.fail_after(300):
        async with serve(server):
            url = server.base_url
            command = [sys.executable, "-m", "tests.forked_workers", anyio_backend_name, url, *where]
            done = await anyio.run_process(command, cwd=ROOT, check=False)
    first, second = [json.loads(line) for line in done.stdout.splitlines()] or [done.stderr.decode()] * 2
    assert first["session"] == "session-1"
    assert first["keys"][0] != second["keys"][0]
    assert first["waits"] != second["waits"]
    assert second["error"] == ("SessionElsewhere" if where else "SessionExists")


@pytest.mark.anyio
async def test_runtimes_of_one_seed_have_idempotency_keys_of_their_own() -> None:
    """Case keys-after-a-fork, in one process and, above, in forked ones."""
    keys = list[str]()

    @tool(effects="idempotent")
    async def pay(context: ToolContext[None]) -> str:
        """Pay."""
        keys.append(context.idempotency_key)
        return "paid"

    server = OpenAIServer([*PAYING, *PAYING])
    async with serve(server):
        for _ in range(2):
            async with Runtime(environ={"OPENAI_BASE_URL": server.base_url}, seed=7) as runtime:
                session = await runtime.open("openai:gpt-5.2", tools=[pay])
                await session.ask("Pay.")
    assert len(set(keys)) == 2
