"""Asks with keys after a kill at every event of their log: each key has one result, on the next host too."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from actors import Runtime, Session, ToolChoice, tool
from actors.config import Config, FileSettings, PoolSettings
from actors.core.log.events import AskStarted, LogEvent, RoundEnded
from actors.core.values.stream import Usage
from actors.events import ApprovalDecision
from actors.journal.storage import Storage
from actors.journal.storage.memory import MemoryStorage
from actors.strict.rules.base import Json
from actors.strict.server import LoopbackServer
from actors.testing import AnthropicServer, Call, OpenAIServer, Say, Turn, serve
from tests.runtime_support import assert_rebuilds, backend_at, log
from tests.session.test_repeated_asks import storage_with

pytestmark = pytest.mark.anyio

FIELDS = (
    "text",
    "status",
    "binding",
    "attempts",
    "rounds",
    "usage",
    "turn",
    "finish_reason",
    "dropped",
    "error",
)
"""The fields that a result has when it is read from the log."""


@tool(effects="once")
def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


@tool(effects="pure")
def look(city: str) -> str:
    """Look at a city."""
    return f"{city} is sunny"


@tool(approval="ask")
def send(text: str) -> str:
    """Send a letter."""
    return f"sent {text}"


CALLS = {
    "Pay.": Call("pay", {"amount": 5}),
    "Look.": Call("look", {"city": "Oslo"}),
    "Send.": Call("send", {"text": "x"}),
}
QUESTIONS: Mapping[str, Mapping[str, Any]] = {  # Any: the settings of an ask
    "Hello.": {},
    "Pay.": {"tool_choice": ToolChoice("pay")},
    "Send.": {},
    "Look.": {},
    "Bye.": {},
}


def answer(request: Json) -> Turn:
    """Call the tool that the last question names, then answer."""
    assert isinstance(request, dict)
    messages = request["messages"]
    assert isinstance(messages, list)
    texts = [str(each["content"]) for each in messages if each["role"] == "user"]
    question = next(name for text in reversed(texts) for name in QUESTIONS if name in text)
    last = str(messages[-1]["content"])
    if question in CALLS and question in last:
        return Turn(CALLS[question], usage=(7, 2))
    assert question != "Pay." or "tool_choice" not in request, "a forced choice ends with its call"
    return Turn(Say(f"Done: {question}"), usage=(10 + len(messages), 3))


@asynccontextmanager
async def started(servers: Mapping[str, LoopbackServer], storage: Storage) -> AsyncIterator[Runtime]:
    """Run a runtime whose pool tries an unreachable backend before the servers."""
    backends = {name: backend_at(server) for name, server in servers.items()}
    backends["gone"] = backends["a"].model_copy(update={"base_url": "http://127.0.0.1:9"})
    pools = {"all": PoolSettings(members=("gone", "a", "b"))}
    async with Runtime(
        Config(FileSettings(backends=backends, pools=pools), {}), journal=storage, seed=1
    ) as runtime:
        yield runtime


async def ask(session: Session, question: str) -> tuple[object, ...]:
    """Ask with a key, approve the calls that wait, and return the part of the result that the log has."""
    result = await session.ask(question, key=question, check=False, **QUESTIONS[question])
    while result.status == "awaiting":
        approvals = {call.id: ApprovalDecision("allow") for call in result.pending_calls}
        await session.ask(approvals=approvals, check=False)
        result = await session.ask(question, key=question, check=False)
    return tuple(getattr(result, name) for name in FIELDS)


async def run_from(
    servers: Mapping[str, LoopbackServer], events: Sequence[LogEvent], questions: Sequence[str]
) -> tuple[list[LogEvent], list[tuple[object, ...]]]:
    """Resume the session of a killed host, ask each question twice, and return its log and the results."""
    storage = storage_with(list(events)) if events else MemoryStorage()
    async with started(servers, storage) as runtime:
        session = await runtime.open("all", id="trip", tools=[pay, look, send], resume=True)
        results = [await ask(session, question) for question in questions]
        assert [await ask(session, question) for question in questions] == results
        messages = [message.text for message in await session.history() if message.role == "user"]
        assert [text for text in messages if text in questions] == list(questions)
        await assert_rebuilds(runtime, session)
        assert [result[FIELDS.index("usage")] for result in results] == usage_by_ask(log(runtime, session))
        return log(runtime, session), results


def usage_by_ask(events: Sequence[LogEvent]) -> list[Usage]:
    """Return the usage of each ask of a log, over all its turns."""
    found = list[Usage]()
    for event in events:
        if isinstance(event, AskStarted):
            found.append(Usage())
        elif isinstance(event, RoundEnded):
            found[-1] += event.usage
    return found


@pytest.mark.alternating
@pytest.mark.parametrize("part", range(4))
@pytest.mark.requirement("PROMISE-4")
async def test_each_ask_key_has_one_result_after_a_kill_at_any_event(part: int) -> None:
    servers = {"a": OpenAIServer(answer), "b": AnthropicServer(answer)}
    questions = list(QUESTIONS)
    with anyio.fail_after(240):
        async with serve(*servers.values()):
            whole, first = await run_from(servers, (), questions)
            assert [result[:2] for result in first] == [(f"Done: {each}", "complete") for each in questions]
            for cut in range(1 + part, len(whole), 4):
                _, results = await run_from(servers, whole[:cut], questions)
                assert [result[:2] for result in results] == [result[:2] for result in first]
            assert [server.refusals for server in servers.values()] == [[], []]
