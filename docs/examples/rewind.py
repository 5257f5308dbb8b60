import anyio

from actors import Runtime, tool
from actors.errors import ConfigError
from actors.testing import Call, OpenAIServer, Say, Turn, serve


@tool
async def book(train: str) -> str:
    """Book a train."""
    return f"{train} is booked"


MODEL = [
    Turn(Say("There is one at 9 and one at 11.")),
    Turn(Call("book", {"train": "the 9 o'clock"})),
    Turn(Say("Booked: the 9 o'clock.")),
    Turn(Say("The 11 o'clock, then?")),
]


async def main() -> None:
    server = OpenAIServer(MODEL)
    async with serve(server):
        environ = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": server.base_url}
        async with Runtime(environ=environ) as runtime:
            session = await runtime.open("openai:gpt-5.2", tools=[book])
            first = await session.ask("Which trains go to Bergen?")
            second = await session.ask("Book me one.")
            print(await session.rewind(to=first.turn), "messages were removed")
            print((await session.ask("A later one, please.")).text)
            print([message.text for message in await session.history()])
            print([call.tool for call in (await session.ledger()).interactions()], "is still in the ledger")
            try:
                await session.rewind(to=second.turn)
            except ConfigError as error:
                print(error)


anyio.run(main)
