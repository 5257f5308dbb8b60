"""The page on failures quotes messages and log events literally."""

import re
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

import actors
from actors import Runtime, Session
from actors.errors import ActorsError
from actors.testing import Call, OpenAIServer, Say, Status, Turn, serve
from actors.tools import tool
from tests.runtime_support import Gate

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "fails.md").read_text(encoding="utf-8")
TARGET = "openai:gpt-5.2"
QUOTA = "You exceeded your current quota, please check your plan and billing details."


def quotes(section: str) -> list[str]:
    """Return the quotes in the first cells of a section's table."""
    _, _, rest = PAGE.partition(f"## {section}\n")
    table = rest.partition("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)


def contains_quote(messages: list[str], message: str) -> bool:
    patterns = [".*".join(map(re.escape, each.split("..."))) for each in messages]
    return any(re.fullmatch(pattern, message) for pattern in patterns)


async def error_message(call: Callable[[], Awaitable[object]]) -> str:
    with pytest.raises(ActorsError) as error:
        await call()
    return str(error.value)


@pytest.mark.usefixtures("short_waits")
async def test_the_page_on_failures_quotes_the_messages_of_failed_asks() -> None:
    faults = {
        0: Status(401, message="Incorrect API key provided."),
        1: Status(429, message=QUOTA),
    }
    server = OpenAIServer([Turn(Say("Hi."))], faults=faults)
    messages = quotes("An ask raises `AskFailed`")
    with anyio.fail_after(60):
        async with serve(server):
            urls = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "any"}
            root = {"OPENAI_BASE_URL": server.base_url.removesuffix("/v1")}
            nobody = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
            for target, environ in (
                (TARGET, urls),
                (TARGET, urls),
                ("openai_chat:m", root),
                (TARGET, nobody),
            ):
                told = await error_message(partial(actors.run, target, "Hello.", environ=environ, timeout=60))
                assert contains_quote(messages, told), told
    assert contains_quote(messages, "stopped: the ask has taken 5 seconds")


async def test_the_page_on_failures_quotes_the_messages_of_refused_calls() -> None:
    gate, seen, opened = Gate(), list[str](), list[Session]()

    @tool
    async def own() -> str:
        """Ask the session that waits for it."""
        seen.append(await error_message(lambda: opened[0].ask("?")))
        return ""

    async def elsewhere() -> None:
        await opened[0].ask("?")

    turns = [
        Turn(Call("own")),
        Turn(Say("Done.")),
        Turn(Call("work", {"name": "a"})),
        *[Turn(Say("Hi."))] * 9,
    ]
    server = OpenAIServer(turns)
    with anyio.fail_after(60):
        async with serve(server):
            runtime = Runtime(environ={"OPENAI_BASE_URL": server.base_url})
            seen.append(await error_message(lambda: runtime.open(TARGET)))
            seen.append(await error_message(lambda: actors.run(TARGET, "?", environ={})))
            seen.append(await error_message(lambda: actors.run("opnai:m", "?", environ={})))
            seen.append(await error_message(lambda: actors.run(TARGET, "?", config="/no/such.toml")))
            async with runtime:
                session = await runtime.open(TARGET, id="one", tools=[own, gate.tool])
                opened.append(session)
                await session.ask("Do it.")
                seen.append(await error_message(lambda: runtime.open(TARGET, id="one")))
                seen.append(await error_message(lambda: runtime.resume("two")))
                seen.append(await error_message(lambda: session.ask("?", max_token=3)))  # type: ignore[call-overload]
                with pytest.raises(ActorsError) as gone:
                    runtime.sessions["two"]
                seen.append(str(gone.value))
                async with anyio.create_task_group() as tasks:
                    for _ in range(9):
                        tasks.start_soon(session.ask, "Do it.")
                    await gate.started("a")
                    seen.append(await error_message(lambda: session.ask("Me too.")))
                    gate.open("a")
                seen.append(await error_message(lambda: anyio.to_thread.run_sync(anyio.run, elsewhere)))
                await session.close()
                seen.append(await error_message(lambda: session.ask("?")))
            seen.append(await error_message(lambda: runtime.open(TARGET)))
    messages = quotes("A method raises another error")
    assert [told for told in seen if not contains_quote(messages, told)] == []
    assert [each for each in messages if not any(contains_quote([each], told) for told in seen)] == []


def test_the_page_on_failures_names_the_log_events() -> None:
    source = (ROOT / "actors" / "telemetry" / "logger.py").read_text(encoding="utf-8")
    events = quotes("A line in the log")
    assert len(events) > 10
    assert [each for each in events if f'"{each}"' not in source and f"'{each}'" not in source] == []
