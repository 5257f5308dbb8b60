from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from actors import Runtime, tool
from actors.events import ApprovalDecision
from actors.testing import Call, OpenAIServer, Say, Turn, serve


@tool(approval="ask")
async def book(room: int) -> str:
    """Book a room."""
    return f"Room {room} is yours."


MODEL = [Turn(Call("book", {"room": 7})), Turn(Say("Room 7 is booked.")), Turn(Say("Room 7."))]


async def main(journal: Path) -> None:
    async with serve(OpenAIServer(MODEL)) as (server,):
        environ = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": server.base_url}

        async with Runtime(environ=environ, journal=journal) as runtime:
            session = await runtime.open("openai:gpt-5.2", tools=[book], id="trip")
            print((await session.ask("Book me a room.")).status)

        # Days later, in another process:
        async with Runtime(environ=environ, journal=journal) as runtime:
            session = await runtime.resume("trip", tools=[book])
            allowed = {waiting.call.id: ApprovalDecision("allow") for waiting in session.pending}
            print((await session.ask(approvals=allowed)).text)

            copy = await runtime.journal.fork("trip")
            fork = await runtime.resume(copy, tools=[book])
            print((await fork.ask("Which one?")).text)
            print([each.state for each in await runtime.journal.list()])


with TemporaryDirectory() as folder:
    anyio.run(main, Path(folder) / "sessions.db")
