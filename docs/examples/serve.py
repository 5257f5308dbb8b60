import asyncio
from collections.abc import AsyncIterator

from actors import Runtime, Session
from actors.events import SessionEvent, sse_frame
from actors.testing import OpenAIServer, Say, Turn, serve

HEARTBEAT = b": still here\n\n"


async def frames(session: Session, last_event_id: int = 0, quiet: float = 15) -> AsyncIterator[bytes]:
    """Yield the events of a session as server-sent events, for the body of a streaming response."""
    events = session.events(after=last_event_id)
    while True:
        try:
            async with asyncio.timeout(quiet):
                event: SessionEvent = await anext(events)
        except TimeoutError:
            yield HEARTBEAT  # keeps the connection open in proxies; the next `anext` continues
        except StopAsyncIteration:
            return
        else:
            yield sse_frame(event)


async def main() -> None:
    server = OpenAIServer([Turn(Say("Hello.")), Turn(Say("Hello again."))])
    async with serve(server), Runtime(environ={"OPENAI_BASE_URL": server.base_url}) as runtime:
        session = await runtime.open("openai:gpt-5.2")
        await session.ask("Hello?")
        seen = 0
        async for frame in frames(session):
            place = frame.decode().split("\n")[0]
            if place.startswith("id: "):
                seen = int(place.removeprefix("id: "))
            if b"event: complete" in frame:
                break  # the client loses its connection; the turn would continue
        print("seen up to", seen)

        await session.ask("And again?")
        await session.close()
        kinds = []
        async for frame in frames(session, last_event_id=seen):
            kinds.append(frame.decode().split("event: ")[1].split("\n")[0])
        print("then", *kinds)


asyncio.run(main())
