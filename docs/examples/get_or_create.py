from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from actors import Runtime
from actors.testing import OpenAIServer, Say, Turn, serve


async def answer(runtime: Runtime, user: str, words: str) -> str:
    async with runtime.open("openai:gpt-5.2", id=user, resume=True) as session:
        return (await session.ask(words)).text


async def main(journal: Path) -> None:
    server = OpenAIServer(lambda request: Turn(Say(f"{len(request['messages'])} messages so far.")))
    async with serve(server):
        environ = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": server.base_url}

        async with Runtime(environ=environ, journal=journal) as runtime:
            async with anyio.create_task_group() as tasks:
                for number in range(3):
                    tasks.start_soon(answer, runtime, "ann", f"Request {number}")
            print(list(runtime.sessions), runtime.sessions["ann"].busy)

        async with Runtime(environ=environ, journal=journal) as runtime:
            print(await answer(runtime, "ann", "And after a restart?"))


with TemporaryDirectory() as folder:
    anyio.run(main, Path(folder) / "sessions.db")
