"""What every test shares: each async test runs on asyncio and on trio, and no generated one is judged by the clock.

Every fragment that a test has judged is read in both ways, which must come to the same.
"""

import pytest
from hypothesis import HealthCheck, settings

from actors.core.check import compare_readings

settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")
compare_readings()


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Name of the backend the test runs on."""
    backend: str = request.param
    return backend
