from typing import Any

import anyio

from actors import Budget, Runtime, ToolContext, subagent, tool
from actors.events import event_json
from actors.testing import AnthropicServer, Call, OpenAIServer, Say, Turn, serve


@tool
async def look(book: str) -> str:
    """Look up a fact in a book."""
    return f"{book} appeared in 1854."


scholar = subagent(
    "scholar",
    "Answers one question about a book.",
    target="openai:gpt-5.2",
    system="You are thorough and brief.",
    tools=[look],
    timeout=60,
)


@tool
async def argue(question: str, context: ToolContext[Any]) -> str:
    """Let one subagent answer and another one check the answer."""
    async with context.subagent(system="You answer.") as one, context.subagent(system="You doubt.") as two:
        answer = await one.ask(question)
        return (await two.ask(f"Is this right? {answer.text}")).text


PARENT_TURNS = [
    Turn(Call("scholar", {"task": "When did Walden appear?"})),
    Turn(Say("In 1854.")),
    Turn(Call("argue", {"question": "Is it long?"})),
    Turn(Say("It is long.")),
    Turn(Say("For its time.")),
    Turn(Say("Opinions differ.")),
]
CHILD_TURNS = [Turn(Call("look", {"book": "Walden"})), Turn(Say("1854."))]


async def talk(runtime: Runtime) -> None:
    session = await runtime.open(
        "anthropic:claude-sonnet-5", tools=[scholar, argue], id="trip", budget=Budget(rounds=20)
    )
    async with session.stream("When did Walden appear?") as events:
        async for event in events:
            if event.type == "subagent" and event.event.type in ("tool_call", "complete"):
                record = event_json(event)
                print(record["path"], record["session"], record["event"]["type"])
            elif event.type == "complete":
                print(event.result.text)
    print((await session.ask("Is it long?")).text)
    print(list(runtime.sessions), sorted(stored.id for stored in await runtime.journal.list()))


async def main() -> None:
    claude, gpt = AnthropicServer(PARENT_TURNS), OpenAIServer(CHILD_TURNS)
    async with serve(claude, gpt):
        environ = {"ANTHROPIC_BASE_URL": claude.base_url, "OPENAI_BASE_URL": gpt.base_url}
        async with Runtime(environ=environ) as runtime:
            await talk(runtime)


anyio.run(main)
