import anyio

from actors import Runtime, tool
from actors.testing import AnthropicServer, Call, Say, Turn, serve

running = anyio.Event()


@tool
async def price(hotel: str) -> str:
    """Price of a night."""
    if hotel == "Continental":
        running.set()
    if hotel != "Astoria":
        await anyio.sleep_forever()
    return f"{hotel}: 120"


HOTELS = ["Astoria", "Bellevue", "Continental"]
SCRIPT = [
    Turn(*[Call("price", {"hotel": hotel}) for hotel in HOTELS]),
    Turn(Say("Only the Astoria returned its price.")),
]


async def main() -> None:
    server = AnthropicServer(SCRIPT)
    async with serve(server), Runtime(environ={"ANTHROPIC_BASE_URL": server.base_url}) as runtime:
        session = await runtime.open("anthropic:claude-sonnet-5", tools=[price])
        async with session.stream("Prices?") as events:
            async for event in events:
                if event.type == "tool_call" and event.arguments == {"hotel": "Continental"}:
                    await running.wait()
                    await session.cancel()
                elif event.type == "complete":
                    print(event.result.status)
        for call in (await session.ledger()).interactions():
            print(call.call_id, call.status, call.reason)
        print((await session.ask("What do you know?")).text)
    print("refused:", server.refusals)


anyio.run(main)
