"""A gateway with several upstreams, none of which can read another's reasoning."""

from pathlib import Path

import anyio
import pytest

from actors import Runtime
from actors.config import BackendLimits, BackendSettings, Config, FileSettings
from actors.core.log.events import EpochBegan
from actors.testing import Call, OpenRouterServer, Say, Think, Turn, serve
from tests.runtime_support import Gate, bodies, log

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("PROMISE-1")
async def test_a_pinned_upstream_serves_all_requests_and_keeps_reasoning(tmp_path: Path) -> None:
    gate = Gate()
    gate.open("a")
    work = Call("work", {"name": "a"})
    server = OpenRouterServer(
        [Turn(Think("hm"), work), Turn(Think("so"), Say("Done.")), Turn(Say("Yes."))],
        upstreams=("two", "three", "four"),
    )
    path = tmp_path / "actors.toml"
    with anyio.fail_after(60):
        async with serve(server):
            path.write_text(
                f'[backends.r]\nkind = "openrouter"\nmodel = "m"\nbase_url = "{server.base_url}"\nupstream = "one"\n'
            )
            async with Runtime(path, environ={}) as runtime:
                session = await runtime.open("r", tools=[gate.tool])
                assert (await session.ask("Do it.")).text == "Done."
                assert (await session.ask("And now?")).text == "Yes."
    assert server.refusals == []
    sent = bodies(server)
    assert [body["provider"] for body in sent] == [{"order": ["one"], "allow_fallbacks": False}] * 3
    assert [str(body).count("reasoning_details") for body in sent] == [0, 1, 2]


@pytest.mark.requirement("PROMISE-1")
async def test_after_a_change_of_upstream_one_request_is_refused_and_only_reasoning_is_lost() -> None:
    """Scenario 50: reasoning from one upstream is omitted for the next, and every call keeps its result."""
    gate = Gate()
    gate.open("a")
    turns = [
        Turn(Think("hm"), Call("work", {"name": "a"})),
        Turn(Think("so"), Say("Done.")),
        Turn(Say("Yes.")),
    ]
    server = OpenRouterServer(turns, upstreams=("one", "two"))
    with anyio.fail_after(60):
        async with serve(server):
            settings = BackendSettings(
                kind="openrouter", model="m", base_url=server.base_url, limits=BackendLimits(attempts=1)
            )
            async with Runtime(Config(FileSettings(backends={"r": settings}), {})) as runtime:
                session = await runtime.open("r", tools=[gate.tool])
                assert (await session.ask("Do it.")).text == "Done."
                assert (await session.ask("And now?")).text == "Yes."
                began = [event for event in log(runtime, session) if isinstance(event, EpochBegan)]
    assert [(event.reason, event.plain) for event in began] == [("thinking", False)]
    assert [exchange.status for exchange in server.requests] == [200, 400, 200, 200]
    first, refused, again, _ = bodies(server)
    assert "reasoning_details" in str(refused)
    assert "reasoning_details" not in str(again)
    assert [message["role"] for message in again["messages"]] == ["user", "assistant", "tool"]
    assert first["messages"][0] == again["messages"][0]
