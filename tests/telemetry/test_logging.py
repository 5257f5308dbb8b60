"""Log events: their destination, their content, and the protection against injected text."""

import json
import logging
import operator
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from actors import tool
from actors.adapters.failure import Failure
from actors.config import BackendLimits, PoolSettings
from actors.core.stats.measures import AskCounts
from actors.core.values.identity import Binding
from actors.core.values.stream import Usage
from actors.errors import AskFailed, Fenced, QueueFull, SessionClosed, ToolsetFailed
from actors.journal.health import ClaimedLogs
from actors.journal.storage import Claim
from actors.kernel.host_code import call_host
from actors.provider.admission import Admission, Pace, Ticket
from actors.telemetry import logger
from actors.telemetry.emission import MARGIN, emit, escape, format_traceback
from actors.testing import SERVER_ERROR, Call, Say, Status, Turn
from tests.naming import case
from tests.runtime_support import Gate, openai, runtime_with
from tests.scripted import scripted
from tests.telemetry.log_capture import (
    RecordLines,
    capture_output,
    configure_structlog,
    events_in_source,
    events_named,
)

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "logging.md"
SECRET, CONTENT = "sk-canary-5f1d7a90", "the patient's name is Ola Nordmann"
ANSWER = Turn(Say("Done."))
DOWN = Failure("transient", "retry", "It is down.", status=503)
TEXTS = st.text(st.characters(codec=None), max_size=60) | st.sampled_from(
    (
        "\x1b[2J\x1b[H",
        "fine\n2026-11-26 12:00:00 ERROR actors: event='forged'",
        "a\r\nb\u2028c\u2029d\x85e\x0bf\x0cg",
        "\u202egnirts\u2066",
        "\ud800",
        "' event='forged",
        'x" level=critical',
        "%s %(name)s {0}",
        f"{MARGIN}more",
    )
)
"""Untrusted texts: arbitrary ones, and known ones that forge lines, move a cursor or break a formatter."""


@tool
async def fails(name: str) -> str:
    """Fail."""
    raise LookupError(f"{name} is not here")


# ---- destinations


@pytest.mark.anyio
async def test_events_use_the_structlog_configuration_of_the_program() -> None:
    render = structlog.processors.JSONRenderer()
    written = RecordLines()
    server = openai(Turn(Call("fails", {"name": "a"})), ANSWER)
    with configure_structlog(render, written) as seen:
        async with runtime_with(a=server) as runtime:
            session = await runtime.open("a", tools=[fails], id="mine")
            await session.ask("Do it.")
    (event,) = events_named(seen, "tool_failed")
    assert {**event, "timestamp": "", "place": ""} == {
        "event": "tool_failed",
        "level": "info",
        "logger": "actors.tools",
        "timestamp": "",
        "session": "mine",
        "call": "hist_tool_1",
        "tool": "fails",
        "error": "LookupError",
        "place": "",
    }
    assert event["timestamp"] > "2026"
    (trace,) = events_named(seen, "tool_traceback")
    assert (trace["level"], "LookupError: a is not here" in trace["exception"]) == ("debug", True)
    assert [json.loads(line)["event"] for line in written.lines] == [event["event"] for event in seen]


def test_the_level_filter_of_a_configured_structlog_applies() -> None:
    quiet = structlog.make_filtering_bound_logger(logging.WARNING)
    with configure_structlog(wrapper_class=quiet) as seen:
        logger.tool_failed("s", "c", "t", ValueError())
        logger.tool_barred("t", 3)
    assert [event["event"] for event in seen] == ["tool_barred"]


def test_an_asynchronous_structlog_logger_receives_events_at_once() -> None:
    asynchronous = structlog.stdlib.AsyncBoundLogger
    factory = structlog.stdlib.LoggerFactory()
    with configure_structlog(wrapper_class=asynchronous, logger_factory=factory) as seen:
        logger.tool_barred("t", 3)
    assert [event["event"] for event in seen] == ["tool_barred"]


def test_without_structlog_a_record_has_its_fields_as_attributes(caplog: pytest.LogCaptureFixture) -> None:
    logger.tool_barred("t\x1b", 3)
    (record,) = caplog.records
    assert (record.name, record.levelname, record.created > 0) == ("actors.tools", "WARNING", True)
    fields = vars(record)
    assert (fields["event"], fields["tool"], fields["running"]) == ("tool_barred", "t\\x1b", 3)
    assert record.getMessage().startswith(
        r"event='tool_barred' tool='t\x1b' running=3 advice='the tool ignores"
    )


def test_a_tool_exception_is_one_line_at_info_and_a_traceback_at_debug() -> None:
    plain = logging.Formatter("%(levelname)s %(name)s %(message)s")
    failing = call_host(partial(operator.getitem, [], 0), lambda error: error)
    assert isinstance(failing, IndexError)
    with capture_output(plain, logging.INFO) as told:
        logger.tool_failed("s", "c", "t", failing)
    (line,) = told.getvalue().splitlines()
    assert line.startswith(
        "INFO actors.tools event='tool_failed' session='s' call='c' tool='t' error='IndexError'"
    )
    with capture_output(plain, logging.DEBUG) as told:
        logger.tool_failed("s", "c", "t", failing)
    _, second, *trace = told.getvalue().splitlines()
    assert second == "DEBUG actors.tools event='tool_traceback' session='s' call='c' tool='t'"
    assert (trace[0], trace[-1]) == (
        f"{MARGIN}Traceback (most recent call last):",
        f"{MARGIN}IndexError: list index out of range",
    )


# ---- protection


def _log_untrusted_text(text: str) -> None:
    """Log events with an untrusted text in every possible place: of tools, their errors, servers and providers."""
    error = type("Odd", (ValueError,), {})(text)
    error.add_note(text)
    logger.tool_failed(text, text, text, error)
    logger.tool_failed("s", "c", "t", ExceptionGroup(text or "-", [error]))
    name = text.replace("\0", "").encode(errors="ignore").decode()
    logger.tool_failed("s", "c", "t", type(name, (KeyError,), {})(text))
    logger.tool_spoiled(text, text, error)
    logger.toolset_lost(text, ToolsetFailed(text), 1.0)
    logger.answer_refused(text, ToolsetFailed(text))
    logger.tool_left_out(text, text, ToolsetFailed(text))
    logger.tools_held(text, text)
    logger.tools_running([text, "b"])
    logger.answer_left_out(text, {text: 1})
    logger.input_withheld(text, [text])
    logger.parameter_refused(Binding(text, text, text, text, text), text, is_value=False)
    logger.journal_unavailable(text)
    logger.loop_stalled(text, text, text, 1.0, text)


EVENTS = 13
RENDERERS: dict[str, Callable[[], object]] = {
    "console": lambda: structlog.dev.ConsoleRenderer(colors=False),
    "json": structlog.processors.JSONRenderer,
    "pairs": structlog.processors.KeyValueRenderer,
    "logfmt": structlog.processors.LogfmtRenderer,
}


def _assert_unforged(log: str, lead: str) -> None:
    """Check that no text moves a cursor, and that each line has the log's own lead or belongs to a traceback."""
    lines = log.split("\n")
    assert all(line.isprintable() for line in lines)
    assert all(line.startswith((lead, MARGIN)) for line in lines if line)
    log.encode()


@given(text=TEXTS)
def test_untrusted_text_cannot_forge_a_log_line_or_control_the_terminal(text: str) -> None:
    with capture_output(logging.Formatter("LEAD %(levelname)s %(message)s")) as told:
        _log_untrusted_text(text)
    log = told.getvalue()
    _assert_unforged(log, "LEAD ")
    events = [line.split(" ")[2] for line in log.split("\n") if line.startswith("LEAD ")]
    assert events.count("event='tool_failed'") == events.count("event='tool_traceback'") >= 2
    assert "event='forged'" not in events
    for line in log.split("\n"):
        if line.startswith("LEAD "):
            assert re.fullmatch(_LINE, line.removeprefix("LEAD ")), line


_LITERAL = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|-?[\d.e+-]+|None|True|False)"
_LINE = rf"[A-Z]+ (?:[a-z_]+=(?:{_LITERAL}|\[.*\]|\{{.*\}}) ?)+"


@given(text=TEXTS)
def test_untrusted_text_cannot_forge_a_structlog_event_in_any_renderer(text: str) -> None:
    for name, renderer in RENDERERS.items():
        written = RecordLines()
        with case(name), configure_structlog(renderer(), written) as seen:
            _log_untrusted_text(text)
            assert len(written.lines) == len(seen) >= EVENTS
            for line, event in zip(written.lines, seen, strict=True):
                first, *others = line.split("\n")
                assert first.isprintable()
                assert all(other.isprintable() and other.startswith(MARGIN) for other in others if other)
                assert bool(others) <= ("exception" in event)


@given(value=TEXTS | st.lists(TEXTS, max_size=3) | st.dictionaries(TEXTS, st.integers(), max_size=3))
def test_escaping_makes_text_printable_and_keeps_printable_text(
    value: str | list[str] | dict[str, int],
) -> None:
    escaped = escape(value)
    texts = [escaped] if isinstance(escaped, str) else [*escaped]  # type: ignore[misc]  # no number is given
    assert all(text.isprintable() for text in texts)
    assert escape(escaped) == escaped


def test_long_texts_and_tracebacks_are_cut() -> None:
    assert escape("x" * 10_000) == "x" * 1_994 + " [cut]"
    lines = format_traceback(ValueError("\n" * 10_000 + "end")).split("\n")
    assert len(lines) == 201
    assert lines[100] == f"{MARGIN}[9801 lines cut]"


# ---- content


@pytest.mark.anyio
async def test_retries_failovers_and_failed_asks_are_logged_as_structured_events() -> None:
    pools = {"pool": PoolSettings(members=("a", "b"), policy="failover", cooldown=0)}
    a = openai(faults={0: SERVER_ERROR, 1: SERVER_ERROR})
    b = openai(faults={0: Status(401, message=f"Bad key {SECRET}. You said: {CONTENT}")})
    with configure_structlog() as seen:
        async with runtime_with(pools=pools, backend=BackendLimits(attempts=2), a=a, b=b) as runtime:
            session = await runtime.open("pool", id="mine")
            with pytest.raises(AskFailed):
                await session.ask(CONTENT)
    (retried,) = events_named(seen, "request_retried")
    assert retried["wait"] >= 0
    about = {"session": "mine", "backend": "a", "model": "gpt", "kind": "transient", "http_status": 500}
    assert about.items() <= retried.items()
    first, second = events_named(seen, "request_failed")
    assert about.items() <= first.items()
    (over,) = events_named(seen, "ask_failed_over")
    assert {**about, "following": "b", "level": "info"}.items() <= over.items()
    (failed,) = events_named(seen, "ask_failed")
    assert failed["http_status"] == second["http_status"] == 401
    assert {"session": "mine", "backend": "b", "attempts": 3, "level": "warning"}.items() <= failed.items()
    assert "check that b accepts" in failed["advice"]
    text = repr(seen)
    assert SECRET not in text
    assert CONTENT not in text


@pytest.mark.anyio
async def test_refused_and_dropped_asks_are_logged_as_events() -> None:
    gate = Gate()
    server = openai(Turn(Call("work", {"name": "a"})), ANSWER)
    with configure_structlog() as seen:
        async with runtime_with(a=server) as runtime:
            session = await runtime.open("a", tools=[gate.tool], id="mine")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(session.ask, "Do it.")
                await gate.started("a")
                for _ in range(8):
                    tasks.start_soon(_try_ask, session.ask)
                while runtime.stats().asks_waiting < 8:
                    await anyio.lowlevel.checkpoint()
                with pytest.raises(QueueFull):
                    await session.ask("One too many.")
                await session.close()
            stats = runtime.stats()
    (refused,) = events_named(seen, "ask_refused")
    assert {"session": "mine", "level": "info"}.items() <= refused.items()
    assert refused["error"].startswith("QueueFull: Session 'mine' already has 8 queued asks")
    assert stats.asks == {**AskCounts().outcomes, "cancelled": 1, "refused": 1, "dropped": 8}
    assert (stats.asks_waiting, stats.asking, stats.awaiting) == (0, 0, 0)


async def _try_ask(ask: Callable[[str], object]) -> None:
    with pytest.raises(SessionClosed):
        await ask("And then?")  # type: ignore[misc]  # a coroutine


@pytest.mark.anyio
async def test_a_failed_ask_is_logged_with_the_context_bound_by_its_caller() -> None:
    server = openai(faults={0: Status(401, message="No."), 1: Status(401, message="No.")})
    with configure_structlog() as seen:
        async with scripted(server) as (_, _, session):
            for number in range(2):
                with structlog.contextvars.bound_contextvars(request=number):
                    await session.ask("Hello.", check=False)
    assert [event["request"] for event in events_named(seen, "ask_failed")] == [0, 1]


@pytest.mark.anyio
async def test_a_learned_refusal_is_logged_without_the_message_of_the_provider() -> None:
    words = f"Unsupported parameter: 'temperature' is not supported with this model. You said: {CONTENT}"
    refusal = Status(400, message=words)
    with configure_structlog() as seen:
        async with runtime_with(a=openai(ANSWER, faults={0: refusal})) as runtime:
            session = await runtime.open("a")
            await session.ask(CONTENT, temperature=0.5)
    (learned,) = events_named(seen, "parameter_refused")
    assert {"parameter": "temperature", "what": "parameter", "level": "warning"}.items() <= learned.items()
    assert learned["binding"].startswith("a:gpt")
    assert CONTENT not in repr(seen)


@pytest.mark.anyio
async def test_a_takeover_is_logged_on_both_hosts() -> None:
    with configure_structlog() as seen:
        async with runtime_with(a=openai(ANSWER, ANSWER)) as runtime:
            session = await runtime.open("a", id="mine")
            await session.ask("Hello.")
            runtime._storage.claim("mine")  # as another host does
            with pytest.raises(Fenced):
                await session.ask("Are you there?")
        ClaimedLogs().record_claim("mine", Claim(3, 5, "there:1:ab"))
        ClaimedLogs().record_claim("mine", Claim(4, 5))
    (fenced,) = events_named(seen, "session_fenced")
    assert {"session": "mine", "level": "warning"}.items() <= fenced.items()
    assert fenced["error"].startswith("Fenced: Session 'mine' now has another writer")
    assert [(event["session"], event["host"]) for event in events_named(seen, "session_taken_over")] == [
        ("mine", "there:1:ab")
    ]


@pytest.mark.anyio
async def test_opening_and_closing_of_a_circuit_breaker_are_logged() -> None:
    now = [0.0]
    admission = Admission("a", Pace(failures=1, cooldown=30.0), lambda: now[0], lambda at, look: None)
    with configure_structlog() as seen:
        for failure in (DOWN, DOWN, None, None):
            ticket = Ticket("", "mine", 10)
            await admission.wait_to_start(ticket)
            admission.record_end(ticket, failure, Usage())
            now[0] += 60.0
    assert [event["event"] for event in seen] == ["circuit_opened", "circuit_closed"]
    assert {"backend": "a", "seconds": 30.0, "failures": 1, "level": "warning"}.items() <= seen[0].items()
    assert seen[1]["backend"] == "a"


# ---- the table of the documentation


def test_the_logging_page_lists_each_event_with_level_logger_and_fields() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| `([\w.]+)` \| ([^|]*) \|", PAGE.read_text(), re.MULTILINE)
    told = {(name, level, logger, *re.findall(r"`(\w+)`", fields)) for name, level, logger, fields in rows}
    logged: dict[tuple[str, str, str], dict[str, None]] = {}
    for event in events_in_source():
        known = logged.setdefault((event.name, event.level, event.logger), {})
        known.update(dict.fromkeys(event.fields))
    assert told == {(*about, *fields) for about, fields in logged.items()}
    assert len(told) == len(rows)


def test_no_event_field_conflicts_with_logging_or_structlog() -> None:
    record = logging.makeLogRecord({})
    taken = {
        *vars(record),
        "message",
        "asctime",
        "event",
        "level",
        "logger",
        "timestamp",
        "exception",
        "stack",
    }
    assert not {field for event in events_in_source() for field in event.fields} & taken


def test_each_event_is_always_logged_at_the_same_level() -> None:
    levels: dict[str, set[str]] = {}
    for event in events_in_source():
        levels.setdefault(event.name, set()).add(event.level)
    assert {name: found for name, found in levels.items() if len(found) > 1} == {}


def test_events_can_be_logged_before_and_after_structlog_is_configured(
    caplog: pytest.LogCaptureFixture,
) -> None:
    emit("warning", "first", count=1)
    with configure_structlog() as seen:
        emit("warning", "second", count=2)
    emit("warning", "third", count=3)
    assert [event["event"] for event in seen] == ["second"]
    assert caplog.messages == ["event='first' count=1", "event='third' count=3"]
