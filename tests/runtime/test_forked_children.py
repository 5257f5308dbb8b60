"""Forked processes share neither threads nor names with each other or with their parent."""

import json
import os
import sys
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from actors import Runtime, ToolContext, tool
from actors.testing import SERVER_ERROR, Call, OpenAIServer, Say, Turn, serve
from tests.cli.command import SECONDS, environ, fork_actors
from tests.journal.postgres import Server

FORKS = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked elsewhere")
BEFORE = "import sys, warnings; warnings.resetwarnings(); sys.argv[1:] = {}"
"""Code that a program runs first, because it is forked from a process in which warnings are errors."""


def output_of(program: str, *arguments: str, folder: Path) -> tuple[str, str]:
    """Run a program of this folder in its own process; return its output and its errors."""
    out, errors = folder / "out", folder / "errors"
    for path in (out, errors):
        path.touch()
    script, before = Path(__file__).with_name(program), BEFORE.format(list(arguments))
    fork_actors((Path(os.devnull), out, errors), (), environ(), script=str(script), before=before).wait(
        SECONDS
    )
    return out.read_text(), errors.read_text()


PAYING = [Turn(Call("pay", {})), Turn(Say("Paid."))]


@FORKS
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_forked_child_has_its_own_threads(backend: str, tmp_path: Path) -> None:
    out, errors = output_of("forked_child.py", backend, folder=tmp_path)
    assert out.splitlines() == ["blocking: ['complete']", "large: ['complete']", "stall seen: True"], errors


@FORKS
@pytest.mark.alternating
@pytest.mark.anyio
@pytest.mark.parametrize("journal", ["memory", "sqlite", "postgres"])
async def test_workers_forked_from_one_runtime_count_as_two_hosts(
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
            program = ("forked_workers.py", anyio_backend_name, server.base_url, *where)
            run = partial(output_of, *program, folder=tmp_path)
            out, errors = await anyio.to_thread.run_sync(run, abandon_on_cancel=True)
    first, second = [json.loads(line) for line in out.splitlines()] or [errors] * 2
    assert first["session"] == "session-1"
    assert first["keys"][0] != second["keys"][0]
    assert first["waits"] != second["waits"]
    assert second["error"] == ("SessionLeased" if where else "SessionExists")


@pytest.mark.anyio
async def test_runtimes_with_the_same_seed_have_different_idempotency_keys() -> None:
    """Case keys-after-a-fork within one process; the previous test covers forked processes."""
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
