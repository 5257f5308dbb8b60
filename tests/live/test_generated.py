"""A real server accepts the requests rendered from broken conversations.

`tests.live.servers` describes how to name a server. Each request asks for one token, because only the server's parser
and its chat template are under test, not the model's answer.
"""

from collections.abc import Iterable

import anyio
import pytest

from actors.adapters.adapter import adapter
from actors.adapters.request import Request, Settings, ToolSpec
from actors.config.providers import Kind
from actors.core.data.jsonio import Json
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.values.content import Message
from actors.core.values.identity import Binding
from actors.transcripts import render
from actors.transport import HttpTransport, Timeouts
from tests.generated.histories import history
from tests.live.conversation import Live
from tests.live.servers import HISTORIES, KINDS, VARIABLES, Host
from tests.scenarios.canon import canonical
from tests.scenarios.naive import Asked
from tests.scenarios.script import parse_script
from tests.scenarios.table import SCENARIOS

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),  # no difference for the server
    pytest.mark.parametrize("kind", KINDS),
]

SECONDS = 1800.0
PATIENCE = Timeouts(first_byte=300.0, idle=300.0)
TOOLS = (ToolSpec("read", "Read.", Json(b'{"type":"object","properties":{"n":{"type":"integer"}}}')),)


async def test_a_real_server_accepts_every_scenario(host: Host, kind: Kind) -> None:
    live = server(host, kind)
    requests = (
        (
            f"{scenario.number}.{at}-{form}",
            one_token_request(live, *canonical(parse_script(case.script), asked, form, case.remembered)),
        )
        for scenario in SCENARIOS
        for at, case in enumerate(scenario.cases, 1)
        for asked in [Asked(live.base, case.calls)]
        for form in case.forms
    )
    assert await find_refusals(live, requests) == []


async def test_a_real_server_accepts_every_generated_history(host: Host, kind: Kind) -> None:
    live = server(host, kind)
    requests = ((f"history({seed})", one_token_request(live, *history(seed))) for seed in range(HISTORIES))
    assert await find_refusals(live, requests) == []


def server(host: Host, kind: Kind) -> Live:
    """Return the host's server for this protocol; skip the test if there is none."""
    found = host.live(kind)
    if found is None:
        pytest.skip(f"not set: {VARIABLES[kind]}")
    return found


def one_token_request(live: Live, messages: Iterable[Message], ledger: Ledger) -> Request:
    """Return a request with this conversation that asks for one token. It adds no text."""
    reader = Binding("live", live.profile.name, live.base_url, "", live.model)
    rendered = render(History(messages, ledger), ledger, live.profile, binding=reader)
    settings = Settings(model=live.model, tools=TOOLS, max_tokens=1)
    return adapter(live.profile).request(rendered._segments, settings, rendered._facts)


async def find_refusals(live: Live, requests: Iterable[tuple[str, Request]]) -> list[str]:
    """Send requests, each with a label; return the refusals of the server."""
    transport, found = HttpTransport(), list[str]()
    with anyio.fail_after(SECONDS):
        for label, request in requests:
            url = live.base_url + request.path
            async with transport.send(url, request.headers, request.segments, PATIENCE) as response:
                said = b"".join([chunk async for chunk in response.chunks()])
                if response.status != 200:
                    found.append(f"{label}: {response.status} {said[:200]!r} to {request.body!r}")
        await transport.close()
    return found
