"""`actors run` against strict servers on this machine, in a separate process."""

import json
import os
import signal
from pathlib import Path

import pytest

from actors.cli.conversation import incomplete_answer_notes
from actors.cli.exits import Exit
from actors.cli.parser import parse
from actors.cli.run import AnswerPrinter, _has_input
from actors.cli.targets import serve_target
from actors.config.providers import PROVIDERS
from actors.core.dialects.profiles import ALIASES, PROFILES, dialect
from actors.core.stream_events.ask_events import AskResult
from actors.core.stream_events.round_events import MessageEvent, TextEvent, ThinkingEvent
from actors.core.values.content import Message, Text, Thinking
from actors.core.values.identity import Binding
from actors.core.values.stream import Usage
from actors.testing import (
    OVERLOADED,
    AnthropicServer,
    Call,
    OpenAIServer,
    Say,
    Stall,
    Status,
    Think,
    Turn,
    serve,
    strict_server,
)
from tests.cli.command import SHORT_WAITS, Running, actors, run_in_background

pytestmark = pytest.mark.anyio

TOOLS = '''
from actors import tool

@tool
def weather(city: str) -> str:
    """Weather of a city."""
    return f"{city}: 21 C"

@tool(approval="ask")
def book(hotel: str) -> str:
    """Book a hotel."""
    return f"{hotel}: booked"
'''

WEATHER = Call("weather", {"city": "Oslo"})


@pytest.mark.alternating
async def test_standard_output_contains_only_the_answer() -> None:
    server = OpenAIServer([Turn(Say("It is\n21 C."))], api_key="secret")
    async with serve(server):
        env = {"OPENAI_API_KEY": "secret", "OPENAI_BASE_URL": server.base_url}
        done = await actors("run", "Weather?", "-m", "openai:gpt", "--system", "Be brief.", env=env)
    assert (done.code, done.out, done.err) == (0, "It is\n21 C.\n", "")
    sent = json.loads(server.requests[0].body)["messages"]
    assert [message["content"] for message in sent] == ["Be brief.", "Weather?"]


@pytest.mark.alternating
@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ([], "from stdin"),
        (["-"], "from stdin"),
        (["say", "-"], "say\n\nfrom stdin"),
        (["say", "it"], "say it\n\nfrom stdin"),
    ],
)
async def test_the_prompt_may_come_from_standard_input(arguments: list[str], sent: str) -> None:
    server = AnthropicServer([Turn(Think("hm"), Say("Yes."))])
    async with serve(server):
        url = ["--base-url", server.base_url, "--dialect", "anthropic"]
        done = await actors("run", *arguments, "-m", "claude", *url, "--backend", "trio", stdin="from stdin")
    assert (done.code, done.out) == (0, "Yes.\n")
    assert json.loads(server.requests[0].body)["messages"][0]["content"][0]["text"] == sent


def test_a_silent_pipe_on_standard_input_is_ignored(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    try:
        assert not _has_input(reading, 0)
        assert "a silent pipe" in capsys.readouterr().err
        os.write(writing, b"x")
        assert _has_input(reading, 0)
    finally:
        os.close(writing)
    assert _has_input(reading, 0)
    os.close(reading)
    with open(os.devnull) as nothing, (tmp_path / "told").open("w") as file:
        assert not _has_input(nothing.fileno())
        assert _has_input(file.fileno())
    assert capsys.readouterr().err == ""


@pytest.mark.alternating
@pytest.mark.parametrize(
    "name", ["openai_responses", "gemini_2", "vertex", "converse", "openrouter", "mistral"]
)
async def test_the_key_in_the_auth_setting_is_sent_to_a_server_of_any_dialect(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    script = [Turn(Call("weather", {"city": "Oslo"})), Turn(Say("21 C."))]
    server = strict_server(dialect(name).name, script, api_key="secret")
    async with serve(server):
        url = ["--base-url", server.endpoint, "--dialect", name, "-m", "m", "--auth", "HOUSE_KEY"]
        done = await actors(
            "run", "x", *url, "--tools", str(tmp_path / "tools.py"), env={"HOUSE_KEY": "secret"}
        )
    assert (done.code, done.out, done.err) == (0, "21 C.\n", "")
    assert [exchange.status for exchange in server.requests] == [200, 200]


@pytest.mark.parametrize("name", [*PROFILES, *ALIASES])
async def test_any_dialect_can_be_chosen_for_a_backend(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOUSE_KEY", "secret")
    line = [
        "run",
        "x",
        "--base-url",
        "http://127.0.0.1:9",
        "--dialect",
        name,
        "-m",
        "m",
        "--auth",
        "HOUSE_KEY",
    ]
    async with serve_target(parse(line), needs_target=True) as (config, named):
        assert named is not None
        backend = config.backend(named)
    assert backend.dialect == dialect(name).name
    assert PROFILES[PROVIDERS[backend.kind].dialect].family == dialect(name).family
    assert PROVIDERS[backend.kind].dialect in (backend.dialect, "gemini")


@pytest.mark.alternating
async def test_the_run_command_reports_an_empty_answer() -> None:
    server = OpenAIServer([Turn(), Turn(Think("I could read."))])
    async with serve(server):
        done = await actors("run", "x", "--base-url", server.base_url, "-m", "m")
    assert (done.code, done.out) == (Exit.FAILED, "")
    assert (
        done.complaint
        == "server:m gave no answer: the answer was empty: it had neither text nor a tool call, twice"
    )


def test_the_run_command_reports_a_call_written_as_text() -> None:
    result = AskResult(
        "<tool_call>{}", "complete", Binding("server", "openai_chat"), (), 2, Usage(), incomplete="unparsed"
    )
    (line,) = incomplete_answer_notes(result)
    assert line.endswith(": the answer contains a tool call as text, which was not run")


@pytest.mark.alternating
@pytest.mark.requirement("PROMISE-13")
async def test_a_truncated_answer_and_dropped_parts_are_reported() -> None:
    turn = Turn(Say("It is"), Call("weather", raw=""), stop="length")
    server = OpenAIServer([turn, turn])
    async with serve(server):
        url = ["--base-url", server.base_url, "-m", "m"]
        read = await actors("run", "x", *url)
        told = await actors("run", "x", "--json", *url)
    assert (read.code, read.out) == (0, "It is\n")
    assert "the answer was cut (length)" in read.err
    assert "stopped with 'length'" in read.err
    assert "dropped from the answer: 1 x cut_call" in read.err
    result = json.loads(told.out.splitlines()[-1])["result"]
    assert (result["status"], result["incomplete"], result["finish_reason"]) == (
        "complete",
        "length",
        "length",
    )
    assert result["dropped"] == {"cut_call": 1}
    (said,) = [e for e in map(json.loads, told.out.splitlines()) if e["type"] == "message"]
    assert (said["incomplete"], said["dropped"]) == ("length", {"cut_call": 1})


@pytest.mark.alternating
@pytest.mark.requirement("REQ-915-039", "REQ-915-040")
@pytest.mark.parametrize("debug", [False, True])
async def test_a_refusal_is_reported_and_the_debug_option_adds_its_class_and_calls(
    debug: bool, tmp_path: Path
) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    words = "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    words += "'tool_call_id'. The following tool_call_ids did not have response messages: call_A1"
    turns = [Turn(Call("weather", {"city": "Oslo"}, id="call_A1")), Turn(Say("21 C."))]
    server = OpenAIServer(turns, faults={1: Status(400, message=words)})
    async with serve(server):
        url = ["--base-url", server.base_url, "-m", "m", "--tools", str(tmp_path / "tools.py")]
        done = await actors("run", "x", *url, *(["--debug"] if debug else []))
    assert (done.code, done.out) == (0, "21 C.\n")
    assert "the request is rendered again: An assistant message" in done.err
    assert ("calls=['hist_tool_1=call_A1']" in done.err) is debug
    assert ("faults=['rendering OAC-01 hist_tool_1']" in done.err) is debug


@pytest.mark.alternating
async def test_the_offline_option_of_run_answers_without_a_key_or_a_network() -> None:
    said = await actors("run", "hello", "--offline")
    rolled = await actors("run", "please roll", "--offline", "-m", "claude", "--json")
    assert (said.code, said.out, said.err) == (0, "You said: hello\n", "")
    calls = [json.loads(line) for line in rolled.out.splitlines() if '"tool_call"' in line]
    assert [(call["name"], call["arguments"]) for call in calls] == [("roll", {})]
    assert json.loads(rolled.out.splitlines()[-1])["result"]["text"].startswith("The result is: ")


@pytest.mark.alternating
@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["-m", "openai:gpt-5.2"], 4, "OPENAI_API_KEY; it is not set; --offline uses a stand-in"),
        ([], 3, "or --offline for a stand-in"),
        (
            ["--offline", "-m", "gemini"],
            3,
            "Unknown offline model 'gemini'; --offline supports gpt and claude",
        ),
        (
            ["-m", "x", "--base-url", "http://127.0.0.1:9", "--max-cost", "1"],
            3,
            "needs the price of model 'x'",
        ),
        (["--offline", "--config", "x"], 3, "omit --config"),
        (
            ["--offline", "--deny-tool", "rol"],
            3,
            "--deny-tool names an unknown tool, 'rol'; --tools has roll",
        ),
        (["--offline", "--deny-tool", "roll", "--allow-tool", "roll"], 3, "both name 'roll'"),
    ],
)
async def test_a_missing_or_contradictory_option_is_reported_with_a_fix(
    arguments: list[str], code: int, says: str
) -> None:
    done = await actors("run", "x", *arguments)
    assert (done.code, done.out) == (code, "")
    assert says in done.complaint


@pytest.mark.alternating
async def test_tools_can_be_named_in_a_module() -> None:
    done = await actors("run", "the weather please", "--offline", "--tools", "tests.cli.stressed:good")
    assert (done.code, done.out, done.err) == (0, "The result is: text: 21 C\n", "")


@pytest.mark.alternating
async def test_a_configured_backend_is_used_by_name(tmp_path: Path) -> None:
    server = OpenAIServer([Turn(Say("ok"))])
    async with serve(server):
        config = tmp_path / "actors.toml"
        config.write_text(f'[backends.local]\nkind = "openai"\nmodel = "m"\nbase_url = "{server.base_url}"\n')
        named = await actors("run", "x", "--config", str(config), "-m", "local")
        alone = await actors("run", "x", "--config", str(config))
    assert (named.code, named.out, alone.code, alone.out) == (0, "ok\n", 0, "ok\n")


@pytest.mark.alternating
async def test_the_json_option_prints_one_event_per_line_and_finally_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    server = OpenAIServer([Turn(Call("weather", {"city": "Oslo"})), Turn(Say("21 C."))])
    async with serve(server):
        url = ["--base-url", server.base_url, "-m", "m"]
        done = await actors("run", "x", "--json", *url, "--tools", str(tmp_path / "tools.py"))
    events = [json.loads(line) for line in done.out.splitlines()]
    kinds = [event["type"] for event in events]
    assert [kind for kind in kinds if kind != "text"] == [
        "ask_started", "turn_started", "request_sent", "request_rendered", "message", "tool_call", "tool_results",
        "request_sent", "request_rendered", "message", "turn_ended", "complete",
    ]  # fmt: skip
    assert "".join(event["text"] for event in events if event["type"] == "text") == "21 C."
    assert (events[-1]["result"]["text"], events[-1]["result"]["rounds"]) == ("21 C.", 2)
    assert events[-1]["exit_code"] == 0
    assert [event["seq"] for event in events if event.get("seq")] == sorted(
        event["seq"] for event in events if event.get("seq")
    )
    call = next(event for event in events if event["type"] == "tool_call")
    assert (call["call_id"], call["name"], call["arguments"]) == ("hist_tool_1", "weather", {"city": "Oslo"})


@pytest.mark.alternating
@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        ([], 8, "not approved"),
        (["--approve", "deny"], 0, "not approved"),
        (["--approve", "allow"], 0, "Astoria: booked"),
        (["--allow-tool", "book"], 0, "Astoria: booked"),
        (["--approve", "allow", "--deny-tool", "book"], 0, "not approved"),
    ],
)
async def test_a_tool_that_changes_something_needs_approval(
    options: list[str], code: int, told: str, tmp_path: Path
) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    server = OpenAIServer([Turn(Call("book", {"hotel": "Astoria"})), Turn(Say("Done."))])
    async with serve(server):
        url = ["--base-url", server.base_url, "-m", "m"]
        done = await actors("run", "x", *url, *options, "--tools", str(tmp_path / "tools.py"))
    assert (done.code, done.out) == (code, "Done.\n")
    assert ("--approve allow" in done.err) is (not options)
    assert told in json.loads(server.requests[-1].body)["messages"][-1]["content"]


@pytest.mark.parametrize("lost", [(), (0,), (1,), (2,), (0, 1, 2)])
def test_the_complete_answer_is_printed_if_deltas_are_missing(
    lost: tuple[int, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    pieces: list[ThinkingEvent | TextEvent] = [ThinkingEvent("hm", 1, 1, 0)]
    for word in ("One ", "two ", "three."):
        pieces.append(TextEvent(word, 1, 1, pieces[-1].offset + len(pieces[-1].text)))
    said = Message("assistant", (Thinking("hm"), Text("One two three.")))
    answer = AnswerPrinter()
    for event in (
        *(piece for at, piece in enumerate(pieces) if at not in lost),
        MessageEvent(1, 1, 1, said),
    ):
        answer.print_event(event, Exit.OK)
    assert capsys.readouterr().out == "One two three."


@pytest.mark.alternating
async def test_an_answer_cannot_contain_an_escape_sequence() -> None:
    server = OpenAIServer([Turn(Say("a\x1b]52;c;eA==\x07b\r\x9bc"))])
    async with serve(server):
        done = await actors("run", "x", "--base-url", server.base_url, "-m", "m")
    assert done.out == "a\\x1b]52;c;eA==\\x07b\\r\\x9bc\n"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
async def test_a_signal_cancels_the_turn_and_determines_the_exit_code(
    number: signal.Signals, code: int, anyio_backend_name: str
) -> None:
    server = OpenAIServer(faults={0: Stall()})
    async with serve(server):
        url = ["--base-url", server.base_url, "-m", "m", "--backend", anyio_backend_name]
        async with run_in_background("run", "x", "--json", *url) as process:
            out = await _until(process, '"type": "request_sent"')
            process.signal(number)
            out += (await process.rest())[0]
            assert await process.wait_for_end() == code
    last = json.loads(out.splitlines()[-1])
    assert (last["type"], last["result"]["status"], last["exit_code"]) == ("complete", "cancelled", code)


BLOCKS = '''
import threading
from actors import tool

@tool
def work() -> str:
    """Block."""
    print("begun", flush=True)
    threading.Event().wait()
'''


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.requirement("PROMISE-12")
async def test_a_blocking_tool_does_not_delay_an_interrupt(
    times: int, tmp_path: Path, anyio_backend_name: str
) -> None:
    (tmp_path / "tools.py").write_text(BLOCKS)
    server = OpenAIServer([Turn(Call("work", {}))])
    async with serve(server):
        url = ["--base-url", server.base_url, "-m", "m", "--backend", anyio_backend_name]
        async with run_in_background("run", "x", *url, "--tools", str(tmp_path / "tools.py")) as process:
            await _until(process, "begun")
            for _ in range(times):
                process.signal(signal.SIGINT)
            _, told = await process.rest()
            assert await process.wait_for_end() == 130
    one = ["actors: interrupted; the turn was cancelled"]
    assert told.splitlines() in (
        [one] if times == 1 else [one, ["actors: interrupted"]]
    )  # two signals may arrive as one


RAISES = '''
from actors import tool

@tool
def work() -> str:
    """Raise."""
    raise LookupError("no \\x1b[31mshelf")
'''


@pytest.mark.alternating
async def test_the_traceback_of_a_tool_is_shown_only_with_the_debug_option(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(RAISES)
    server = OpenAIServer([Turn(Call("work", {})), Turn(Say("ok"))] * 2)
    async with serve(server):
        line = ["run", "x", "--base-url", server.base_url, "-m", "m", "--tools", str(tmp_path / "tools.py")]
        plain, debug = await actors(*line), await actors(*line, "--debug")
    assert (plain.code, plain.out, plain.err) == (0, "ok\n", "")
    assert (debug.code, debug.out) == (0, "ok\n")
    assert "tools.py" in debug.err
    assert "LookupError: no \\x1b[31mshelf" in debug.err
    assert "\x1b" not in debug.err


async def _until(process: Running, words: str) -> str:
    """Read the output of a process until it contains these words."""
    out = ""
    while words not in out:
        piece = await process.next_output()
        assert piece, await process.rest()
        out += piece.decode()
    return out


async def test_a_turn_that_takes_too_long_is_cancelled_with_exit_code_124(anyio_backend_name: str) -> None:
    server = OpenAIServer(faults={0: Stall()})
    async with serve(server):
        url = ["--base-url", server.base_url, "-m", "m", "--backend", anyio_backend_name]
        done = await actors("run", "x", *url, "--timeout", "0.2")
    assert (done.code, done.out) == (124, "")
    assert done.complaint == "stopped: the ask took longer than its timeout of 0.2 s"


@pytest.mark.alternating
@pytest.mark.parametrize(
    ("limit", "turns", "code", "out", "says"),
    [
        ("2", [Turn(WEATHER), Turn(Say("So far."))], 7, "So far.\n", "the limit of 2 rounds was reached"),
        (
            "2",
            [Turn(WEATHER), Turn(Say("On."), WEATHER)],
            7,
            "On.\n",
            "the last calls of the model were not run",
        ),
        ("3", [Turn(WEATHER), Turn(Say("21 C."))], 0, "21 C.\n", ""),
        ("1", [Turn(Say("Hm."))], 0, "Hm.\n", ""),
    ],
)
async def test_a_run_stopped_by_the_round_limit_ends_with_text_and_exit_code_7(
    limit: str, turns: list[Turn], code: int, out: str, says: str, tmp_path: Path
) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    server = OpenAIServer([*turns, *turns])
    async with serve(server):
        url = ["--base-url", server.base_url, "-m", "m", "--tools", str(tmp_path / "tools.py")]
        done = await actors("run", "x", *url, "--max-rounds", limit)
        told = await actors("run", "x", *url, "--max-rounds", limit, "--json")
    assert (done.code, done.out, told.code) == (code, out, code)
    assert says in done.err
    assert (not done.err) is (not says)
    assert json.loads(told.out.splitlines()[-1])["exit_code"] == code


PRICED = """
[backends.a]
kind = "openai"
model = "m"
base_url = "{url}"
[prices.m]
input = 1.0
output = 1.0
"""


@pytest.mark.parametrize(("most", "code"), [("0.0015", 7), ("1", 0)])
async def test_a_budget_of_money_ends_a_turn_before_its_next_request(
    most: str, code: int, tmp_path: Path, anyio_backend_name: str
) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    server = OpenAIServer([Turn(WEATHER, usage=(1000, 1000)), Turn(Say("21 C."))])
    async with serve(server):
        (tmp_path / "actors.toml").write_text(PRICED.format(url=server.base_url))
        line = ["--config", str(tmp_path / "actors.toml"), "--tools", str(tmp_path / "tools.py")]
        done = await actors("run", "x", *line, "--max-cost", most, "--backend", anyio_backend_name)
    assert (done.code, done.out) == (code, "" if code else "21 C.\n")
    assert ("stopped: the session's budget of 0.0015 is used up (0.002 was paid)" in done.err) is bool(code)
    assert len(server.requests) == (1 if code else 2)


EXTERNAL = """
from actors import Tool
look = Tool.external("look", "Look it up.", {"type": "object"}, read_only=True)
"""


@pytest.mark.alternating
async def test_a_run_that_needs_an_external_result_names_the_call_and_exits_with_code_8(
    tmp_path: Path,
) -> None:
    (tmp_path / "tools.py").write_text(EXTERNAL)
    server = OpenAIServer([Turn(Say("Wait."), Call("look", {"n": 1}), Call("look", {"n": 2}))] * 2)
    async with serve(server):
        line = ["run", "x", "--base-url", server.base_url, "-m", "m", "--tools", str(tmp_path / "tools.py")]
        done, told = await actors(*line), await actors(*line, "--json")
    assert (done.code, done.out, told.code) == (8, "Wait.\n", 8)
    assert done.complaint.startswith("the turn waits for external input: look(n=1), look(n=2);")
    last = json.loads(told.out.splitlines()[-1])
    assert (last["result"]["status"], last["exit_code"]) == ("awaiting", 8)
    assert [call["arguments"] for call in last["result"]["pending_calls"]] == [{"n": 1}, {"n": 2}]


@pytest.mark.alternating
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Status(401), 4),
        (Status(403), 4),
        (Status(404), 3),
        (Status(429, retry_after="3600"), 5),
        (OVERLOADED, 5),
    ],
)
async def test_a_provider_failure_gives_one_line_and_its_exit_code(fault: Status, code: int) -> None:
    server = OpenAIServer(faults=lambda _, __: fault)
    async with serve(server):
        config = ["--base-url", server.base_url, "-m", "m"]
        done = await actors("run", "x", *config, "--json", before=SHORT_WAITS)
    assert done.code == code
    assert done.complaint.startswith("server:m gave no answer: ")
    assert json.loads(done.out.splitlines()[-1])["exit_code"] == code
