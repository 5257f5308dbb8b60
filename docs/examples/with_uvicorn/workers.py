import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Header, Request
from fastapi.responses import JSONResponse, StreamingResponse

from actors import ActorsError, Runtime, Session
from actors.events import sse_frame
from actors.hosts import SessionRouter, ensure_answered, error_response, listen


@asynccontextmanager
async def lifespan(api: FastAPI) -> AsyncIterator[None]:
    journal = os.environ["JOURNAL"]
    async with listen(app) as url, Runtime(journal=journal, address=url) as runtime, app.serve(runtime):
        api.state.open = lambda name: runtime.open("openai:gpt-5.2", id=name, resume=True)
        yield


api = FastAPI(lifespan=lifespan)
app = SessionRouter(api, lambda scope: scope["path"].split("/")[2] if "/sessions/" in scope["path"] else None)


async def open_session(name: str, request: Request) -> AsyncIterator[Session]:
    async with request.app.state.open(name) as session:  # releases the session after the response
        yield session


Opened = Annotated[Session, Depends(open_session)]


@api.post("/sessions/{name}/messages")
async def answer(session: Opened, text: str, idempotency_key: Annotated[str, Header()]) -> str:
    return ensure_answered(session, await session.ask(text, key=idempotency_key)).text


@api.get("/sessions/{name}/events")
async def events(session: Opened, last_event_id: Annotated[int, Header()] = 0) -> StreamingResponse:
    frames = (sse_frame(event) async for event in session.events(after=last_event_id))
    return StreamingResponse(frames, media_type="text/event-stream")


@api.exception_handler(ActorsError)
async def fail(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ActorsError)
    response = error_response(error)
    return JSONResponse({"error": str(error)}, response.status, {**response.headers})
