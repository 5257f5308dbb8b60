"""A host imports the modules of a turn when it starts, so that its first ask does not block its event loop."""

import sys

import anyio
import pytest

from actors.testing import OpenAIServer, serve
from tests.hosts.support import answer

PROGRAM = """
import sys
import anyio
from actors import Runtime
from actors.hosts import SessionRouter

SessionRouter(lambda *_: None, lambda _: None)

async def main(base_url):
    async with Runtime(environ={"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": base_url}) as runtime:
        session = await runtime.open("openai:gpt-5.2")
        before = {*sys.modules}
        await session.ask("Hello.")
    print(*{*sys.modules} - before)

anyio.run(main, sys.argv[1])
"""
LATER = (
    "actors.adapters.openai_chat",
    "actors.adapters.schemas",
    "actors.core.check",
    "actors.provider.credentials",
)
"""The modules that depend on the backend of the session."""


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_first_ask_of_a_host_imports_only_modules_of_its_backend() -> None:
    server = OpenAIServer(answer)
    async with serve(server):
        done = await anyio.run_process([sys.executable, "-c", PROGRAM, server.base_url], stderr=None)
    imported = [name for name in done.stdout.decode().split() if name.startswith("actors.")]
    assert "actors.adapters.openai_chat" in imported
    assert [name for name in imported if not name.startswith(LATER)] == []
