import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from conversations import Conversations, after_first_piece, conversations
from litestar import Litestar, Request, Response, get, post
from litestar.datastructures import State
from litestar.params import Parameter
from litestar.response import Stream

from actors import ActorsError
from actors.hosts import error_response


@asynccontextmanager
async def lifespan(app: Litestar) -> AsyncIterator[None]:
    async with conversations(os.environ["JOURNAL"]) as app.state.conversations:
        yield


@dataclass
class Message:
    text: str


def get_conversations(state: State) -> Conversations:
    found: Conversations = state.conversations
    return found


@post("/conversations/{name:str}/messages")
async def answer(name: str, data: Message, state: State) -> dict[str, str]:
    return {"text": await get_conversations(state).answer(name, data.text)}


@post("/conversations/{name:str}/text")
async def text(name: str, data: Message, state: State) -> Stream:
    return Stream(
        await after_first_piece(get_conversations(state).text(name, data.text)), media_type="text/plain"
    )


@get("/conversations/{name:str}/events")
async def events(
    name: str, state: State, last_event_id: Annotated[int, Parameter(header="Last-Event-ID")] = 0
) -> Stream:
    return Stream(
        await after_first_piece(get_conversations(state).events(name, last_event_id)),
        media_type="text/event-stream",
    )


def fail(request: Request[object, object, State], error: ActorsError) -> Response[dict[str, str]]:
    response = error_response(error)
    return Response({"error": str(error)}, status_code=response.status, headers={**response.headers})


app = Litestar([answer, text, events], lifespan=[lifespan], exception_handlers={ActorsError: fail})
