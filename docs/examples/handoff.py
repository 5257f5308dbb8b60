import anyio

from actors import Runtime, handoff
from actors.testing import AnthropicServer, Call, OpenAIServer, Say, Turn, serve

to_claude = handoff("to_claude", "For questions about poems.", target="anthropic:claude-sonnet-5")


async def main() -> None:
    gpt = OpenAIServer([Turn(Say("One moment. "), Call("to_claude"))])
    claude = AnthropicServer([Turn(Say("It has fourteen lines.")), Turn(Say("Yes."))])
    async with serve(gpt, claude):
        environ = {"OPENAI_BASE_URL": gpt.base_url, "ANTHROPIC_BASE_URL": claude.base_url}
        async with Runtime(environ=environ) as runtime:
            session = await runtime.open("openai:gpt-5.2", tools=[to_claude])
            answer = await session.ask("How long is a sonnet?")
            print(answer.text)
            print([(attempt.binding.backend, attempt.status) for attempt in answer.attempts])
            print(session.target)
            print((await session.ask("Always?")).text)


anyio.run(main)
