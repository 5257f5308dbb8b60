from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from actors import ActorsError, AskFailed, Runtime
from actors.events import SessionEvent
from actors.testing import OpenAIServer, Say, Turn, serve


class Service:
    """A server with one runtime for its lifetime and one session per conversation."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def answer(self, conversation: str, words: str) -> str:
        session = await self._runtime.open("openai:gpt-5.2", id=conversation, resume=True)
        try:
            result = await session.ask(words)
        except AskFailed as error:
            return f"(no answer: {error})"
        except ActorsError as error:
            return f"(not now: {error})"
        return result.text if result.status == "complete" else f"({result.status}: {result.error})"

    async def events(self, conversation: str, words: str) -> AsyncIterator[SessionEvent]:
        async with self._runtime.session(conversation).stream(words) as events:
            async for event in events:
                yield event


@asynccontextmanager
async def service(base_url: str) -> AsyncIterator[Service]:
    async with Runtime(environ={"OPENAI_BASE_URL": base_url}) as runtime:
        yield Service(runtime)


async def main() -> None:
    server = OpenAIServer(lambda request: Turn(Say(f"you said {request['messages'][-1]['content']!r}")))
    async with serve(server), service(server.base_url) as answers:
        texts: dict[str, str] = {}

        async def one(number: int) -> None:
            texts[f"c{number}"] = await answers.answer(f"c{number}", f"hello {number}")

        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(one, number)
        print(len(texts), "conversations;", "c7:", texts["c7"])
        async for event in answers.events("c7", "again"):
            if event.type == "text":
                print("text:", event.text)


anyio.run(main)
