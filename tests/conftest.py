"""What every test shares: each async test runs on asyncio and on trio, and no generated one is judged by the clock.

Many tests run on every core, a named file in this one process, which starts at once. `-n` says otherwise.
"""

import pytest
from hypothesis import HealthCheck, settings

for _profile in ("quarter", "thorough"):  # what they mean is said by `tests.at_scale.share`
    settings.register_profile(_profile, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("quarter")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Name of the backend the test runs on."""
    backend: str = request.param
    return backend


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Return how many processes share the tests where the command line does not say; None is one for each core."""
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    return 0 if named and all(".py" in argument for argument in config.args) else None
