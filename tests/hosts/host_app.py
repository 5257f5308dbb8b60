"""A host at an address of its own: `uvicorn tests.hosts.host_app:app`, with ADDRESS, JOURNAL and LEASE set."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.routing import Mount

from actors import Runtime
from actors.hosts import RouterLimits, SessionRouter
from tests.hosts.support import Application, open_storage, session_id

TARGET = "openai:gpt-5.2"
application = Application(target=TARGET)


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncGenerator[None]:
    """Run the runtime for the lifespan of the application."""
    storage = open_storage(os.environ["JOURNAL"], float(os.environ["LEASE"]))
    runtime = application.runtime = Runtime(journal=storage, address=os.environ["ADDRESS"])
    async with runtime, app.serve(runtime):
        yield


app = SessionRouter(
    Starlette(lifespan=lifespan, routes=[Mount("", app=application)]),
    session_id,
    limits=RouterLimits(exclusion_time=0.5),
)
