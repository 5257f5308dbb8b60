"""Sessions with a real model, if one is provided: no request is refused, and every call is closed.

`tests.live.servers` describes how to name a server. Without one, these tests are skipped.
"""

import pytest

from actors.config.providers import Kind
from tests.live.conversation import Live, hold
from tests.live.servers import KINDS, VARIABLES, Host

pytestmark = pytest.mark.anyio


def servers(host: Host, kinds: tuple[Kind, ...], *, stream: bool = True) -> list[Live]:
    """Return the host's servers for these protocols; skip the test if one is missing."""
    found = [(kind, host.live(kind, stream=stream)) for kind in kinds]
    if missing := [VARIABLES[kind] for kind, server in found if server is None]:
        pytest.skip(f"not set: {', '.join(missing)}")
    return [server for _, server in found if server is not None]


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_real_server_refuses_nothing_and_every_call_is_closed(
    host: Host, kind: Kind, stream: bool
) -> None:
    await hold(servers(host, (kind,), stream=stream))


@pytest.mark.parametrize("other", KINDS[1:])
async def test_a_session_moves_between_two_protocols_of_a_real_server(host: Host, other: Kind) -> None:
    await hold(servers(host, ("llama_cpp", other)), rounds=2)


async def test_a_session_moves_between_all_protocols_of_a_real_server(host: Host) -> None:
    await hold([*servers(host, KINDS), *servers(host, KINDS, stream=False)], rounds=3)
