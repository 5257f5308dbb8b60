"""The documented application for several workers, with a route that returns the process of a session's owner."""

import os
import sys
from pathlib import Path

from starlette.requests import Request

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples" / "with_uvicorn"
sys.path.insert(0, str(EXAMPLES))

from workers import api, app  # noqa: E402  the path above is needed

__all__ = ["api", "app"]


@api.get("/sessions/{name}/process")
async def process(name: str, request: Request) -> int:
    """Open a session, and return the id of the process that owns it."""
    async with request.app.state.open(name):
        return os.getpid()
