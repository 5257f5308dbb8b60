import anyio

from actors import Runtime, handoff, tool
from actors.testing import AnthropicServer, Call, OpenAIServer, Say, Turn, serve


@tool
async def count(poem: str) -> str:
    """Count the lines of a poem."""
    return "14"


to_claude = handoff(
    "to_claude",
    "For questions about poems.",
    target="anthropic:claude-sonnet-5",
    system="You know all about poems.",
    tools=[count],
)


async def main() -> None:
    gpt = OpenAIServer([Turn(Say("One moment. "), Call("to_claude"))])
    counts = Turn(Call("count", {"poem": "Sonnet 18"}))
    claude = AnthropicServer([counts, Turn(Say("It has fourteen lines.")), Turn(Say("Yes."))])
    async with serve(gpt, claude):
        environ = {"OPENAI_BASE_URL": gpt.base_url, "ANTHROPIC_BASE_URL": claude.base_url}
        async with Runtime(environ=environ) as runtime:
            session = await runtime.open("openai:gpt-5.2", tools=[to_claude], system="You help.")
            answer = await session.ask("How long is a sonnet?")
            print(answer.text)
            print([(attempt.binding.backend, attempt.status) for attempt in answer.attempts])
            print(session.target, "-", (await session.history()).system)
            print((await session.ask("Always?")).text)


anyio.run(main)
