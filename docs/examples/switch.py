import anyio

from actors import Runtime, Session, tool
from actors.testing import AnthropicServer, Call, OpenAIServer, Say, Think, Turn, serve

booked = anyio.Event()


@tool
async def book(hotel: str) -> str:
    """Book a hotel."""
    await booked.wait()
    return f"{hotel}: booked"


CLAUDE = [
    Turn(Think("They are sure."), Call("book", {"hotel": "Astoria"})),
    Turn(Say("The Astoria is booked.")),
]
GPT = [Turn(Say("You have a room in the Astoria."))]


async def book_and_switch(session: Session) -> None:
    async with session.stream("Book the Astoria.") as events:
        async for event in events:
            if event.type == "tool_call":
                print(await session.switch("openai:gpt-5.2"))
                booked.set()
            elif event.type == "complete":
                print(event.result.binding, "-", event.result.text)


async def main() -> None:
    claude, gpt = AnthropicServer(CLAUDE), OpenAIServer(GPT)
    async with serve(claude, gpt):
        urls = {"ANTHROPIC_BASE_URL": claude.base_url, "OPENAI_BASE_URL": gpt.base_url}
        async with Runtime(environ=urls) as runtime:
            session = await runtime.open("anthropic:claude-sonnet-5", tools=[book])
            await book_and_switch(session)
            preview = await session.preview("openai:gpt-5.2")
            print("not shown to gpt:", preview.losses)
            answer = await session.ask("Where do I sleep?")
            print(answer.binding, "-", answer.text)


anyio.run(main)
