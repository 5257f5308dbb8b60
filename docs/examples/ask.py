from dataclasses import dataclass

import anyio

from actors import Budget, Media, Price, Runtime
from actors.testing import AnthropicServer, Say, Turn, serve
from actors.testing.images import png


@dataclass
class City:
    name: str
    people: int


TURNS = [
    Turn(Say("Oslo.")),
    Turn(Say("About 700,000 people live there.")),
    Turn(Say('{"name": "Oslo", "people": 717710}')),
    Turn(Say("A red square.")),
]


async def main() -> None:
    server = AnthropicServer(TURNS)
    async with serve(server):
        environ = {"ANTHROPIC_BASE_URL": server.base_url}
        async with Runtime(environ=environ, prices={"claude-*": Price(3, 15)}) as runtime:
            session = await runtime.open("anthropic:claude-sonnet-5", budget=Budget(rounds=4), tenant="blue")
            short = await session.ask("Capital of Norway?", max_tokens=50, stop=("END",), timeout=60)
            print(short.text, short.cost)

            city = await session.ask("Tell me more.", output=City, max_corrections=1)
            print(city.output, "after", city.rounds, "rounds")

            square = Media.from_bytes(png(64, 64), "image/png")
            seen = await session.ask(["What is this?", square])
            print(seen.text)


anyio.run(main)
