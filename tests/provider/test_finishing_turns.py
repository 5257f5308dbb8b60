"""Queues of a backend: requests of turns that have begun take precedence over requests of new turns."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest

from actors import Runtime, tool
from actors.config import BackendLimits, BackendSettings, Config, FileSettings
from actors.core.data.persistent import Segments
from actors.transport import Response, Timeouts
from benchmarks.storms import PlainResponse

ROUNDS = 3
"""Requests per turn."""


def _answer(is_last: bool) -> bytes:
    """Return a text answer if the turn ends with it, else a call."""
    function = {"name": "work", "arguments": "{}"}
    message: dict[str, object] = {"role": "assistant", "content": "Done."}
    if not is_last:
        call = {"id": "call_1", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "stop" if is_last else "tool_calls"}
    return json.dumps({"id": "1", "object": "chat.completion", "choices": [choice]}).encode()


class QueueingBackend:
    """A backend in this process that answers once every other open turn has a request waiting.

    `order` lists the letter of the session of each request.
    """

    def __init__(self, sessions: int) -> None:
        self.order: list[str] = []
        self.waiting: Callable[[], int]
        self._turns = sessions

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        """Accept a request, and answer it when only the queue decides which request is next."""
        messages = json.loads(b"".join(segments))["messages"]
        self.order.append(messages[0]["content"])
        while self.waiting() < self._turns - 1:
            await anyio.lowlevel.checkpoint()
        is_last = sum(message["role"] == "tool" for message in messages) == ROUNDS - 1
        self._turns -= is_last
        yield PlainResponse(200, {"content-type": "application/json"}, _answer(is_last))

    async def close(self) -> None:
        """Close nothing."""


@tool
async def work() -> str:
    """Work."""
    return "worked"


def _config(**limits: int) -> Config:
    settings = BackendSettings.model_validate(
        {
            "kind": "openai",
            "model": "gpt",
            "base_url": "http://127.0.0.1:1/v1",
            "limits": BackendLimits.model_validate(limits),
            "stream": False,
        }
    )
    return Config(FileSettings(backends={"a": settings}), {})


async def order_of_requests(*tenants: str) -> str:
    """Let a session of each tenant ask once, all at the same time; return the letters of their requests in order."""
    backend = QueueingBackend(len(tenants))
    with anyio.fail_after(300):
        async with Runtime(_config(concurrency=1), transport=backend) as runtime:
            backend.waiting = lambda: sum(each.waiting for each in runtime.stats().backends.values())
            sessions = [await runtime.open("a", tools=[work], tenant=tenant) for tenant in tenants]
            async with anyio.create_task_group() as tasks:
                for number, session in enumerate(sessions):
                    tasks.start_soon(session.ask, "abcdef"[number])
                    while len(backend.order) + backend.waiting() <= number:
                        await anyio.lowlevel.checkpoint()
    return "".join(backend.order)


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-9")
async def test_a_turn_that_has_begun_is_finished_before_other_turns_begin() -> None:
    assert await order_of_requests(*[""] * 6) == "ababab" + "cdcdcd" + "efefef"


CROWD = 200


class QuickBackend:
    """A backend in this process that answers at once; `order` lists for each request whether it began a turn."""

    def __init__(self) -> None:
        self.order: list[bool] = []

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        """Return a call, or a final answer after its result."""
        has_result = json.loads(b"".join(segments))["messages"][-1]["role"] == "tool"
        self.order.append(not has_result)
        yield PlainResponse(200, {"content-type": "application/json"}, _answer(has_result))

    async def close(self) -> None:
        """Close nothing."""


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-8")
async def test_among_many_turns_some_end_before_others_have_begun() -> None:
    backend = QuickBackend()
    with anyio.fail_after(300):
        async with Runtime(_config(), transport=backend) as runtime:
            sessions = [await runtime.open("a", tools=[work]) for _ in range(CROWD)]
            async with anyio.create_task_group() as tasks:
                for session in sessions:
                    tasks.start_soon(session.ask, "Work.")
    assert (backend.order.count(True), backend.order.count(False)) == (CROWD, CROWD)
    begun = sum(backend.order[: backend.order.index(False)])
    assert begun < CROWD * 3 / 4


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-8")
async def test_turns_are_finished_within_the_share_of_their_tenant() -> None:
    order = await order_of_requests("one", "one", "one", "two")
    assert order.index("d") <= 2  # its tenant has a share, although the other one has turns to finish
    assert order[: order.rindex("d") + 1].count("d") == ROUNDS
    assert order.rindex("d") <= 2 * ROUNDS
