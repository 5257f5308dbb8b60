"""Fixtures every test shares: each async test runs on asyncio and on trio."""

import pytest


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Name of the backend the test runs on."""
    backend: str = request.param
    return backend
