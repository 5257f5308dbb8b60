"""Structural refusals: the kept, logged and reported details name the calls of the history.

The refusals are real. A strict Mistral server refuses the requests of a dialect with a mistake, and the judge refuses
the bytes of an encoder with a mistake.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from actors.adapters.anthropic.encode import AnthropicWriter
from actors.adapters.openai_chat.encode import OpenAIChatWriter
from actors.config import Config, FileSettings
from actors.core.data.jsonio import Json, quote
from actors.core.transcript.transcript import TitledMedia
from actors.errors import ProjectionFault, RenderingFault
from actors.runtime.handle import Session
from actors.runtime.runtime import Runtime
from actors.strict.server import LoopbackServer, serve
from actors.testing import Call, OpenAIServer, Say, Script, Turn
from actors.tools import Tool
from tests.runtime_support import (
    Gate,
    anthropic,
    backend_at,
    gather_events,
    openai,
    wait_for_result,
)
from tests.scripted import scripted
from tests.session.test_cancel import shielded_tool
from tests.strict_hosts import strict_host

pytestmark = pytest.mark.anyio

ALMOST = {
    "base": "mistral",
    "ids": {"style": "openai", "pattern": "[a-zA-Z0-9_-]+", "max_len": 40},
}
"""A custom dialect that ignores Mistral's ids of nine letters."""


@asynccontextmanager
async def session_with_wrong_dialect(
    *tools: Tool[..., Any],  # Any: any function
) -> AsyncIterator[tuple[Runtime, Session, LoopbackServer]]:
    """Yield a session on a working backend, with a second backend `almost` that refuses every request."""
    good, strict = OpenAIServer([Turn(Call("work", {"name": "a"}))]), strict_host("mistral", Script([]))
    async with serve(good, strict):
        almost = backend_at(strict, fields={"dialect": "almost"})
        backends = {"good": backend_at(good), "almost": almost}
        settings = FileSettings.model_validate({"backends": backends, "dialects": {"almost": ALMOST}})
        async with Runtime(Config(settings, {}), seed=1) as runtime:
            session = await runtime.open("good", tools=tools)
            yield runtime, session, strict


@pytest.mark.requirement("REQ-915-039", "REQ-915-040", "PROMISE-13")
async def test_a_transcript_refused_by_a_provider_names_calls_and_synthetic_results(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun, released = anyio.Event(), anyio.Event()
    async with session_with_wrong_dialect(shielded_tool(begun, released)) as (runtime, session, strict):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.ask, "Work.")
            await begun.wait()
            await session.cancel()
        await session.ask("Go on.")
        released.set()
        await wait_for_result(session, "hist_tool_1")
        await session.switch("almost")
        events = await gather_events(session, "And now?")
    (refused,) = strict.refusals
    (refusal,) = runtime.refusals
    (fault,) = refusal.report.faults
    sent = refusal.report.emitted_calls[0]
    assert sent in refused.message
    assert (refusal.by, refusal.binding.backend, refusal.session) == ("provider", "almost", session.id)
    assert isinstance(fault, ProjectionFault)
    assert (fault.rule, fault.call_ids, refusal.report.calls) == (
        "MIS-01",
        ("hist_tool_1",),
        ("hist_tool_1",),
    )
    assert refusal.report.synthetic == (("hist_tool_1", "cancelled"),)
    assert refusal.report.dedupe == (("hist_tool_1", "late"),)
    assert refusal.report.emitted_results == (sent,)
    (record,) = [r.getMessage() for r in caplog.records if "transcript_refused" in r.getMessage()]
    for said in (
        "by='provider'",
        "dialect='almost'",
        "faults=['projection MIS-01 hist_tool_1']",
        f"calls=['hist_tool_1={sent}']",
        f"results=['{sent}']",
        "synthetic=['hist_tool_1: cancelled']",
        "dedupe=['hist_tool_1: late']",
    ):
        assert said in record
    assert [event.type for event in events].count("lane_rewritten") == 1


@pytest.mark.requirement("REQ-915-039", "REQ-915-040")
@pytest.mark.parametrize(
    ("make_server", "writer", "rule"),
    [(openai, OpenAIChatWriter, "OAC-01"), (anthropic, AnthropicWriter, "ANT-01")],
)
async def test_a_transcript_refused_by_the_strict_rules_names_the_calls_of_the_history(
    make_server: Callable[..., LoopbackServer],
    writer: type[OpenAIChatWriter | AnthropicWriter],
    rule: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    real = writer.write_result

    def write_once(
        self: Any,  # Any: either writer
        call_id: str,
        name: str,
        json: Json,
        failed: bool,
        media: Sequence[TitledMedia],
    ) -> None:
        if json != quote("b is done"):
            real(self, call_id, name, json, failed, media)

    monkeypatch.setattr(writer, "write_result", write_once)
    gate = Gate()
    gate.open("a", "b")
    server = make_server(
        Turn(Call("work", {"name": "a"}), Call("work", {"name": "b"})), Turn(Say("Rewritten."))
    )
    async with scripted(server, tools=[gate.tool]) as (_, runtime, session):
        answer = await session.ask("Do both.")
        assert (answer.status, answer.text) == ("complete", "Rewritten.")
        (refusal,) = runtime.refusals
        await runtime.journal.delete("another")
        assert list(runtime.refusals) == [refusal]
        await runtime.journal.delete(refusal.session)
        assert not runtime.refusals
    (fault, *_) = refusal.report.faults
    assert (refusal.by, fault.rule, fault.call_ids) == ("judge", rule, ("hist_tool_2",))
    assert isinstance(fault, RenderingFault)
    assert refusal.report.calls == ("hist_tool_1", "hist_tool_2")
    (record,) = [r.getMessage() for r in caplog.records if "transcript_refused" in r.getMessage()]
    assert "by='judge'" in record
    assert f"'rendering {rule} hist_tool_2'" in record
