"""Two hundred sessions stream at once, each over its own connection. Five thousand are a command: see there."""

import anyio
import pytest

from tests.transport.crowd import crowd, roomy

pytestmark = pytest.mark.anyio

SESSIONS = 200


@pytest.mark.skipif(not roomy(SESSIONS), reason="this process may not open enough sockets")
async def test_hundreds_of_sessions_stream_at_once_and_no_turn_fails_and_no_descriptor_is_left() -> None:
    with anyio.fail_after(600):
        failed, connections = await crowd(SESSIONS)
    assert failed == []
    assert connections == SESSIONS
