import anyio

from actors import Compaction, Runtime, tool
from actors.testing import Call, OpenAIServer, Say, Turn, serve


@tool
async def read(path: str) -> str:
    """Read a file."""
    return f"{path}: " + "a long line\n" * 100


MODEL = [
    Turn(Call("read", {"path": "notes.txt"})),
    Turn(Say("It has a hundred lines.")),
    Turn(Say("You are welcome.")),
    Turn(Say("The user asked how long notes.txt is; it has a hundred lines.")),
    Turn(Say("A hundred.")),
]


async def main() -> None:
    async with serve(OpenAIServer(MODEL)) as (server,):
        environ = {"OPENAI_API_KEY": "any", "OPENAI_BASE_URL": server.base_url}
        async with Runtime(environ=environ, compaction=Compaction(keep_turns=1)) as runtime:
            session = await runtime.open("openai:gpt-5.2", tools=[read])
            await session.ask("How long is notes.txt?")
            await session.ask("Thank you.")
            compaction = await session.compact()
            print(compaction.messages, "messages were replaced by a summary:")
            print((await session.history())[0].text)
            print((await session.ask("How many lines was it?")).text)


anyio.run(main)
