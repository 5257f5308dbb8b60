"""One host of a service: an ASGI app with probes, which moves its sessions to other hosts before it stops."""

import asyncio
import os
import signal
from typing import Annotated

from fastapi import FastAPI, Path, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from pydantic import BaseModel
from server import Server, drain, notify

from actors import ActorsError, Runtime
from actors.errors import SessionLeased
from actors.hosts import error_response

app = FastAPI()
Name = Annotated[str, Path(pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]  # other ids get status 422


class Message(BaseModel):
    text: str
    key: str  # the same for each repetition of one ask


@app.get("/live")
async def live() -> Response:
    return Response()  # a blocked event loop cannot answer, so the probe times out


@app.get("/ready")
async def ready() -> Response:
    return Response(status_code=200 if app.state.runtime.stats().is_ready else 503)


@app.post("/sessions/{name}/asks")
async def ask(name: Name, message: Message) -> JSONResponse:
    async with app.state.runtime.open("assistant", id=name, resume=True) as session:
        result = await session.ask(message.text, key=message.key)
    return JSONResponse({"text": result.text}, 200 if result.status == "complete" else 503)  # 503: repeat


@app.exception_handler(ActorsError)
async def fail(request: Request, error: ActorsError) -> Response:
    if isinstance(error, SessionLeased) and error.address:
        return RedirectResponse(error.address + request.url.path, 307)  # to the owner, with the same body
    response = error_response(error)
    return JSONResponse({"error": str(error)}, response.status, {**response.headers})


async def main() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    runtime = app.state.runtime = Runtime(os.environ["CONFIG"], address=os.environ["ADDRESS"])
    server = Server(app, int(os.environ["PORT"]))
    async with runtime, asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(server.serve())
        await stop.wait()
        notify("STOPPING=1")
        try:
            await drain(runtime, float(os.environ["RATE"]), float(os.environ["TURN_TIMEOUT"]))
        finally:
            server.should_exit = True
            await serving


asyncio.run(main())
