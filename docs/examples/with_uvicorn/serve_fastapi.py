import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from conversations import Conversations, after_first_piece, conversations
from fastapi import FastAPI, Header, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel

from actors import ActorsError
from actors.hosts import error_response


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with conversations(os.environ["JOURNAL"]) as app.state.conversations:
        yield


app = FastAPI(lifespan=lifespan)


class Message(BaseModel):
    text: str


def get_conversations(request: Request) -> Conversations:
    found: Conversations = request.app.state.conversations
    return found


@app.post("/conversations/{name}/messages")
async def answer(name: str, message: Message, request: Request) -> dict[str, str]:
    return {"text": await get_conversations(request).answer(name, message.text)}


@app.post("/conversations/{name}/text")
async def text(name: str, message: Message, request: Request) -> StreamingResponse:
    pieces = await after_first_piece(get_conversations(request).text(name, message.text))
    return StreamingResponse(pieces, media_type="text/plain")


@app.get("/conversations/{name}/events")
async def events(
    name: str, request: Request, last_event_id: Annotated[int, Header()] = 0
) -> StreamingResponse:
    pieces = await after_first_piece(get_conversations(request).events(name, last_event_id))
    return StreamingResponse(pieces, media_type="text/event-stream")


@app.exception_handler(ActorsError)
async def fail(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ActorsError)
    response = error_response(error)
    return JSONResponse({"error": str(error)}, response.status, {**response.headers})
