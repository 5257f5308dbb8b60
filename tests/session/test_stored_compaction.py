"""Compacted histories that are forked, exported, interrupted by a crash, or configured in a file."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from actors import Compaction, Media, Price, Runtime, Tool
from actors.config import Config, FileSettings, load
from actors.core.log.events import Compacted, RequestSent, ResultsTrimmed, TurnEnded
from actors.core.values.content import Message, Text
from actors.errors import ConfigError
from actors.journal.storage.memory import MemoryStorage
from actors.runtime.handle import Session
from actors.testing import Call, Say, Script, Turn, serve
from tests.runtime.test_resume import copy_log
from tests.runtime_support import (
    assert_paired,
    assert_rebuilds,
    backend_at,
    bodies,
    log,
    openai,
)
from tests.session.test_compaction import host, read, talk
from tests.session.test_media_sessions import documents, page
from tests.strict_hosts import strict_host

pytestmark = pytest.mark.anyio

SETTINGS = Compaction(large_result_bytes=1000, keep_turns=1)


def runtime_at(
    server: Any, storage: MemoryStorage | None = None, **options: Any
) -> Runtime:  # Any: a strict server; options of Runtime
    config = Config(FileSettings(backends={"a": backend_at(server)}), {})
    return Runtime(config, journal=storage, seed=1, **{"compaction": SETTINGS, **options})


async def open_compacted_session(runtime: Runtime) -> Session:
    """Return a session with a summary, followed by a trimmed result."""
    session = await runtime.open("a", tools=[read], id="trip")
    await talk(session, 3)
    made = await session.compact()
    assert (made.messages, made.results) == (6, 1)
    return session


async def test_a_compacted_history_is_unchanged_in_forks_and_imports() -> None:
    server = host("openai_chat")
    async with serve(server), runtime_at(server) as runtime:
        session = await open_compacted_session(runtime)
        kinds = {type(event) for event in log(runtime, session)}
        assert {Compacted, ResultsTrimmed} <= kinds
        forked = await runtime.resume(await runtime.journal.fork("trip"), tools=[read])
        file = await runtime.journal.export("trip")
        carried = await runtime.resume(await runtime.journal.import_session(file, id="carried"), tools=[read])
        for each in (session, forked, carried):
            await talk(each, 1, first=9)
            await assert_rebuilds(runtime, each)
        asked = [json.dumps(body["messages"]) for body in bodies(server)[-6:]]
    assert server.refusals == []
    assert len(set(asked[::2])) == 1  # the second request of each contains an id that the server made up
    assert "was left out here" in asked[0]
    assert "[Summary of the conversation so far.]" in asked[0]


async def test_a_session_opened_with_messages_of_a_compacted_session_sends_full_results() -> None:
    server = host("openai_chat")
    async with serve(server), runtime_at(server) as runtime:
        session = await open_compacted_session(runtime)
        again = await runtime.open("a", tools=[read], messages=await session.history())
        bodies_of = [str((await each.preview("a")).body) for each in (session, again)]
    assert ["was left out here" in body for body in bodies_of] == [True, False]
    assert ["line of a file" in body for body in bodies_of] == [False, True]
    assert all("[Summary of the conversation so far.]" in body for body in bodies_of)


@pytest.mark.requirement("REQ-915-026", "REQ-915-028", "PROMISE-6")
async def test_a_session_continues_after_a_kill_at_any_moment_of_compaction() -> None:
    server = host("openai_chat")
    async with serve(server):
        async with runtime_at(server) as runtime:
            events = log(runtime, await open_compacted_session(runtime))
        begun = max(
            at for at, event in enumerate(events) if isinstance(event, RequestSent) and event.is_for_summary
        )
        done = [at for at, event in enumerate(events) if isinstance(event, Compacted)]
        for at in range(begun - 1, len(events)):
            storage = MemoryStorage()
            copy_log(events[:at], storage)
            async with runtime_at(server, storage) as runtime:
                session = await runtime.resume("trip", tools=[read])
                await talk(session, 1, first=9)
                await assert_rebuilds(runtime, session)
                history, ledger = await session.history(), await session.ledger()
                ends = [event.status for event in log(runtime, session) if isinstance(event, TurnEnded)]
            assert (history[0].text.startswith("[Summary")) is (at > done[0]), at
            assert all(item.completion is not None for item in ledger.interactions())
            assert ends.count("interrupted") == (not isinstance(events[at - 1], TurnEnded)), at
            assert_paired(bodies(server)[-1])
    assert server.refusals == []


def load_text(text: str, folder: Path) -> Config:
    path = folder / "actors.toml"
    path.write_text(text)
    return load(path, {})


def test_the_compaction_argument_of_a_program_overrides_the_configuration_file(tmp_path: Path) -> None:
    said = load_text(
        '[compaction]\nthreshold = 0.5\nkeep_turns = 1\nlarge_result_bytes = 4096\nattachments = 2\nsummarizer = "a"\n'
        '[backends.a]\nkind = "openai"\nmodel = "gpt"\n',
        tmp_path,
    )
    assert Runtime(said)._backends.compaction == Compaction(0.5, 1, 4096, 2, "a")
    assert Runtime(said, compaction=SETTINGS)._backends.compaction == SETTINGS
    assert Runtime(
        load_text('[compaction]\nthreshold = "never"\n', tmp_path)
    )._backends.compaction == Compaction(None)
    assert Runtime(load_text("", tmp_path))._backends.compaction == Compaction()
    for wrong, name in (
        ("threshold = 1.5", "threshold"),
        ("keep_turns = -1", "keep_turns"),
        ("large_result_bytes = 8", "large_result_bytes"),
    ):
        with pytest.raises(ConfigError, match=rf"actors\.toml, line 2.*{name}"):
            load_text(f"[compaction]\n{wrong}\n", tmp_path)
    assert (
        Runtime(
            compaction=Compaction(summarizer="openai:gpt-5.2"), environ={}
        )._backends.compaction.summarizer
        == "openai:gpt-5.2"
    )
    unusable: list[Any] = ["b", "", "nobody:gpt", 5]
    for by in unusable:
        with pytest.raises(ConfigError, match=r"No backend|No provider|the name of a backend"):
            Runtime(said, compaction=Compaction(summarizer=by))


async def test_the_context_window_of_a_price_applies_if_the_backend_declares_none() -> None:
    server = host("openai_chat", 6000)
    prices = {"gpt*": Price(1.0, 1.0, context=6000)}
    settings = Compaction(threshold=0.6, large_result_bytes=100_000)
    async with serve(server), runtime_at(server, prices=prices, compaction=settings) as runtime:
        session = await runtime.open("a", tools=[read])
        assert not (await session.preview("a")).compacts
        previewed: list[bool] = []
        for number in range(1, 8):
            previewed.append((await session.preview("a")).compacts)
            await talk(session, 1, first=number)
        begun = [event for event in log(runtime, session) if isinstance(event, Compacted)]
    assert 0 < sum(previewed) == len(begun) < 7
    assert [exchange.status for exchange in server.requests if exchange.status != 200] == []


async def test_attachments_omitted_over_a_limit_are_sent_after_a_summary() -> None:
    """Bedrock accepts five documents. Of eight, the last three are noted until the first four are summarised."""
    server = strict_host("bedrock", Script(lambda request: Turn(Say("Fine."))), host="bedrock")
    settings = Compaction(keep_turns=1, attachments=1)
    async with serve(server), runtime_at(server, compaction=settings) as runtime:
        session = await runtime.open("a")
        for first in (0, 4):
            pages = [page(number) for number in range(first, first + 4)]
            assert (await session.ask(Message("user", [Text("Look at this."), *pages]))).text == "Fine."
        before = bodies(server)[-1]
        assert (await session.compact()).messages == 2
        assert (await session.ask("And now?")).text == "Fine."
        after = bodies(server)[-1]
        summary = (await session.history())[0]
    noted = "the conversation already contains as many as the provider accepts"
    assert (len(documents(before)), json.dumps(before).count(noted)) == (5, 3)
    assert (len(documents(after)), json.dumps(after).count(noted)) == (5, 0)
    assert [block.data for block in summary.blocks if isinstance(block, Media)] == ["0003"]
    assert "Left out: 3 attachments" in summary.text
    assert server.refusals == []


async def test_a_compaction_waits_for_a_turn_that_awaits_its_caller() -> None:
    look = Tool.external("look", "Looks something up, elsewhere.", {"type": "object"}, read_only=True)
    server = openai(Turn(Say("One.")), Turn(Call("look", {})), Turn(Say("Two.")), Turn(Say("Both.")))
    async with serve(server), runtime_at(server) as runtime, anyio.create_task_group() as tasks:
        session = await runtime.open("a", tools=[look])
        await session.ask("First?")
        assert (await session.ask("Look.")).status == "awaiting"
        done: list[int] = []

        async def compact() -> None:
            done.append((await session.compact()).messages)

        tasks.start_soon(compact)
        await anyio.wait_all_tasks_blocked()
        assert (done, len(server.requests)) == ([], 2)
        (waits,) = session.pending
        assert (await session.ask(results={waits.call.id: "found"})).text == "Two."
        while not done:
            await anyio.lowlevel.checkpoint()
        assert done == [2]
        assert (await session.ledger()).interactions()[0].completion is not None
