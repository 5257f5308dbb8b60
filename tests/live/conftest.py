"""The host of the live tests: a running one, or one started for each chat template."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.servers import Host, running_servers, start_server, templates

_STARTED = "ACTORS_LIVE_LLAMA" in os.environ


@pytest.fixture(
    scope="module", params=templates().items() if _STARTED else [("given", None)], ids=lambda each: each[0]
)
def host(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """Return the host; skip the test if there is none."""
    template: Path | None = request.param[1]
    if _STARTED:
        with start_server(template, tmp_path_factory.mktemp("model")) as found:
            yield found
    elif (found := running_servers()).servers:
        yield found
    else:
        pytest.skip("no real server: neither ACTORS_LIVE_LLAMA nor ACTORS_LIVE_MODEL with an address is set")
