import anyio

from actors import Runtime, Tool
from actors.testing import Call, OpenAIServer, Say, Turn, serve

LOOKUP = Tool.external(
    "lookup",
    "Looks up an order in the shop's own system.",
    {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
    read_only=True,
)
SCRIPT = [
    Turn(Call("lookup", {"order": "A-7"}), Call("lookup", {"order": "B-2"})),
    Turn(Say("A-7 is on its way, B-2 was delivered.")),
]


async def main() -> None:
    server = OpenAIServer(SCRIPT)
    async with serve(server), Runtime(environ={"OPENAI_BASE_URL": server.base_url}) as runtime:
        session = await runtime.open("openai:gpt-5.2", tools=[LOOKUP])
        answer = await session.ask("Where are my orders?")
        print(answer.status, [call.arguments["order"] for call in answer.pending_calls])

        first, second = answer.pending_calls  # the results may come hours later
        answer = await session.ask(results={first.id: {"state": "on its way"}})
        print(answer.status, [call.arguments["order"] for call in answer.pending_calls])

        answer = await session.ask(results={second.id: {"state": "delivered"}})
        print(answer.status, answer.text)


anyio.run(main)
