import anyio

import actors
from actors.testing import OpenAIServer, Say, Turn, serve


async def main() -> None:
    server = OpenAIServer([Turn(Say("Oslo.")), Turn(Say("Oslo lies at the end of a fjord."))])
    async with serve(server):
        environ = {"OPENAI_BASE_URL": server.base_url}
        result = await actors.run("openai:gpt-5.2", "Capital of Norway?", environ=environ)
        print(result.text)

        async with actors.Runtime(environ=environ) as runtime:
            session = await runtime.open("openai:gpt-5.2")
            async for text in session.stream_text("Where is it?"):
                print(text, end="")
            print()


anyio.run(main)
