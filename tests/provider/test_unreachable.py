"""A provider that cannot be reached: it is tried again as often as it may be, and then the next backend answers."""

import socket
from collections.abc import Callable
from typing import Any

import pytest

from actors.config import BackendLimits, PoolSettings
from actors.testing import OpenAIServer, Say, Turn
from tests.runtime_support import anthropic, hosting

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("short_waits")]

NAME = "nowhere.invalid"


class Nameless(OpenAIServer):
    """A server whose name no resolver knows."""

    @property
    def endpoint(self) -> str:
        return f"https://{NAME}/v1"


class Unencrypted(OpenAIServer):
    """A server that speaks no TLS where it is expected to."""

    @property
    def endpoint(self) -> str:
        return super().endpoint.replace("http://", "https://")


@pytest.fixture(autouse=True)
def resolver(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the resolver know no such name, without asking anyone, and note how often it was asked."""
    asked: list[str] = []
    real: Callable[..., Any] = socket.getaddrinfo  # Any: as the standard library has it

    def resolve(host: str | bytes | None, *rest: Any, **more: Any) -> Any:  # as above
        name = host.decode() if isinstance(host, bytes) else host
        if name != NAME:
            return real(host, *rest, **more)
        asked.append(name)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return asked


CASES = [(Nameless, "name or service not known"), (Unencrypted, "tls failed")]


@pytest.mark.requirement("REQ-915-043")
@pytest.mark.parametrize(("made", "says"), CASES)
async def test_who_cannot_be_reached_is_tried_again_and_then_the_next_is_asked(
    made: type[OpenAIServer], says: str, resolver: list[str]
) -> None:
    lost, two = made([Turn(Say("never"))]), anthropic(Turn(Say("Fine.")), Turn(Say("Still fine.")))
    pools = {"both": PoolSettings(members=("a", "b"))}
    async with hosting(a=lost, b=two, pools=pools, backend=BackendLimits(attempts=2)) as runtime:
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
    assert len(resolver) >= 2 * (made is Nameless)


@pytest.mark.parametrize(("made", "says"), CASES)
async def test_an_ask_of_one_that_cannot_be_reached_fails_in_one_line(
    made: type[OpenAIServer], says: str
) -> None:
    async with hosting(a=made([]), backend=BackendLimits(attempts=1)) as runtime:
        session = await runtime.open("a")
        answer = await session.ask("Tell me.", check=False)
        assert (answer.status, len(answer.attempts)) == ("failed", 1)
        assert says in answer.error.lower()
        assert "\n" not in answer.error
        assert [message.text for message in await session.history()] == ["Tell me."]
