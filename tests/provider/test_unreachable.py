"""A provider that cannot be reached is retried, then the next backend answers."""

import socket
from collections.abc import Callable
from typing import Any

import pytest

from actors.config import BackendLimits, PoolSettings
from actors.testing import OpenAIServer, Say, Turn
from tests.runtime_support import anthropic, runtime_with
from tests.scripted import scripted

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("short_waits")]

NAME = "nowhere.invalid"


class UnresolvableServer(OpenAIServer):
    """A server whose name cannot be resolved."""

    @property
    def endpoint(self) -> str:
        return f"https://{NAME}/v1"


class PlainHttpServer(OpenAIServer):
    """A server that speaks plain HTTP where TLS is expected."""

    @property
    def endpoint(self) -> str:
        return super().endpoint.replace("http://", "https://")


@pytest.fixture(autouse=True)
def resolver(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the resolver reject the name without a query, and record each attempt."""
    asked: list[str] = []
    real: Callable[..., Any] = socket.getaddrinfo  # Any: as in the standard library

    def resolve(host: str | bytes | None, *rest: Any, **more: Any) -> Any:  # Any: as above
        name = host.decode() if isinstance(host, bytes) else host
        if name != NAME:
            return real(host, *rest, **more)
        asked.append(name)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return asked


CASES = [(UnresolvableServer, "name or service not known"), (PlainHttpServer, "tls failed")]


@pytest.mark.requirement("REQ-915-043")
@pytest.mark.parametrize(("make_server", "says"), CASES)
async def test_an_unreachable_backend_is_retried_before_the_next_backend_answers(
    make_server: type[OpenAIServer], says: str, resolver: list[str]
) -> None:
    lost, two = make_server([Turn(Say("never"))]), anthropic(Turn(Say("Fine.")), Turn(Say("Still fine.")))
    pools = {"both": PoolSettings(members=("a", "b"))}
    async with runtime_with(a=lost, b=two, pools=pools, backend=BackendLimits(attempts=2)) as runtime:
        session = await runtime.open("both")
        answer = await session.ask("Tell me.")
        assert (answer.status, answer.text, answer.binding.backend) == ("complete", "Fine.", "b")
        assert (await session.ask("And now?")).text == "Still fine."
    first, second, third = answer.attempts
    causes = [attempt.cause for attempt in (first, second)]
    assert [cause is not None and (cause.kind, cause.status) for cause in causes] == [("transient", None)] * 2
    assert all(says in attempt.error.lower() for attempt in (first, second))
    assert third.cause is None
    assert lost.received == 0
    assert len(resolver) >= 2 * (make_server is UnresolvableServer)


@pytest.mark.parametrize(("make_server", "says"), CASES)
async def test_an_ask_of_an_unreachable_backend_fails_with_a_short_error(
    make_server: type[OpenAIServer], says: str
) -> None:
    async with scripted(make_server([]), backend=BackendLimits(attempts=1)) as (_, _, session):
        answer = await session.ask("Tell me.", check=False)
        assert (answer.status, len(answer.attempts)) == ("failed", 1)
        assert says in answer.error.lower()
        assert "\n" not in answer.error
        assert [message.text for message in await session.history()] == ["Tell me."]
