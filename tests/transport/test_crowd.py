"""Two hundred sessions stream at once, each over its own connection. `tests.transport.crowd` runs five thousand."""

import anyio
import pytest

from tests.transport.crowd import crowd, has_descriptors

pytestmark = pytest.mark.anyio

SESSIONS = 200


@pytest.mark.skipif(not has_descriptors(SESSIONS), reason="this process may not open enough sockets")
async def test_hundreds_of_sessions_stream_at_once_without_failures_or_leaks() -> None:
    with anyio.fail_after(600):
        failed, connections = await crowd(SESSIONS)
    assert failed == []
    assert connections == SESSIONS
