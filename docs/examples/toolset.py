from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from actors import Runtime, Tool, ToolSource, tool
from actors.testing import AnthropicServer, Call, Say, Turn, serve


@asynccontextmanager
async def library() -> AsyncIterator[list[Tool[..., Any]]]:
    """Open the books, yield the tools that read them, and close the books."""
    books = {"Walden": 1854}

    async def publication_year(title: str) -> int:
        """Return the year in which a book was published."""
        return books[title]

    print("opened")
    yield [tool(publication_year)]
    print("closed")


async def main() -> None:
    server = AnthropicServer([Turn(Call("publication_year", {"title": "Walden"})), Turn(Say("In 1854."))] * 2)
    books = ToolSource(library, "library")
    async with serve(server), Runtime(environ={"ANTHROPIC_BASE_URL": server.base_url}) as runtime:
        sessions = [await runtime.open("anthropic:claude-sonnet-5", tools=[books]) for _ in range(2)]
        for session in sessions:
            print((await session.ask("When did Walden appear?")).text)


anyio.run(main)
