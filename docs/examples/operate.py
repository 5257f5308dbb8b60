from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from actors import Runtime
from actors.testing import OpenAIServer, Say, Turn, serve


async def main(folder: Path) -> None:
    async with serve(OpenAIServer([Turn(Say("Hello."))])) as (server,):
        environ = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": server.base_url}

        async with Runtime(environ=environ, journal=folder / "sessions.db") as runtime:
            session = await runtime.open("openai:gpt-5.2", id="one", tenant="acme")
            await session.ask("Hi.")
            await runtime.journal.backup(folder / "copy.db")

            planned = await runtime.journal.delete(tenant="acme", dry_run=True)
            deletion = await runtime.journal.delete(tenant="acme")
            for each in deletion.remaining:
                print("data is left in", each.place, "because", each.reason)
            print(planned.sessions, deletion.sessions, deletion.is_complete)

            old = await runtime.journal.delete(older_than=timedelta(days=90))
            print(old.sessions, await runtime.journal.list())

        async with Runtime(environ=environ, journal=folder / "copy.db") as runtime:
            print([each.id for each in await runtime.journal.list()])


with TemporaryDirectory() as folder:
    anyio.run(main, Path(folder))
