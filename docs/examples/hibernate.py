from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from actors import Runtime
from actors.errors import TooManySessions
from actors.testing import OpenAIServer, Say, Turn, serve

ACTORS_TOML = """
[journal]
path = "{journal}"
durability = "process"

[limits]
max_active_sessions = 8
sessions = 100
memory = 65_536

[backends.gpt]
kind = "openai"
model = "gpt-5.2"
base_url = "{server}"
"""


async def main(folder: Path) -> None:
    server = OpenAIServer(lambda request: Turn(Say(f"{len(request['messages'])} messages so far.")))
    async with serve(server):
        text = ACTORS_TOML.format(journal=folder / "sessions.db", server=server.base_url)
        await anyio.Path(folder / "actors.toml").write_text(text)
        async with Runtime(folder / "actors.toml") as runtime:
            for number in range(100):
                session = await runtime.open("gpt", id=f"chat-{number}")
                await session.ask("Hello. " * 100)
            stats = runtime.stats()
            print(stats.sessions, "open,", stats.hibernated > 80, stats.memory < 65_536)

            first = runtime.session("chat-0")  # restored from its log
            print((await first.ask("Still there?")).text)
            try:
                await runtime.open("gpt")
            except TooManySessions as error:
                print(error)


with TemporaryDirectory() as place:
    anyio.run(main, Path(place))
