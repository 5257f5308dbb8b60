"""The vendors' SDKs work against the strict servers as against the vendors, without unexpected refusals."""

import json

import anyio
import anyio.to_thread
import pytest

from actors.strict.rules import Mode
from actors.strict.script import parse_turns
from actors.testing import RATE_LIMITED, Script, serve, strict_server
from tests.testing.sdk_loops import LIMITED, LOOPS, TURNS

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning"
    ),  # Google's SDK closes connections when it is garbage-collected
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.mark.sampled(2)
@pytest.mark.alternating
@pytest.mark.parametrize("mode", ["strict", "hosted"])
@pytest.mark.parametrize("dialect", LOOPS)
async def test_a_vendor_sdk_works_against_the_strict_servers(dialect: str, mode: Mode) -> None:
    script = Script(parse_turns(json.dumps(TURNS).encode()))
    server = strict_server(dialect, script, mode=mode, faults={LIMITED: RATE_LIMITED})
    with anyio.fail_after(60):
        async with serve(server):
            await anyio.to_thread.run_sync(LOOPS[dialect], server.base_url)
    assert [exchange.status for exchange in server.requests] == [200] * 8 + [400, 429]
    assert len(server.refusals) == 1  # the one that each loop provokes
