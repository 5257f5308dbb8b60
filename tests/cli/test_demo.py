"""The output and the exit codes of `actors demo`."""

import json
import re
import sys

import pytest

from actors.cli import demo, main
from actors.cli.demo import script
from actors.cli.demo.script import STOPS
from actors.cli.demo.show import DemoPrinter, SentRequest
from actors.strict.loopback import HttpRequest
from actors.strict.server import LoopbackServer
from actors.testing import SERVERS, Status
from tests.cli.test_screen import Terminal

BACKENDS = ("asyncio", "trio")


def demo_servers(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, LoopbackServer]]:
    """Return a list that collects the servers of each demo."""
    made: list[dict[str, LoopbackServer]] = []
    servers = script.servers

    def collect(gates: script.Gates, *, all_dialects: bool) -> dict[str, LoopbackServer]:
        made.append(servers(gates, all_dialects=all_dialects))
        return made[-1]

    monkeypatch.setattr(script, "servers", collect)
    return made


@pytest.mark.requirement("REQ-915-041", "REQ-915-042", "REQ-915-043", "REQ-915-044", "PROMISE-1")
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_demo_moves_a_conversation_between_providers_without_refusals(
    backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--backend", backend]) == 0
    shown = capsys.readouterr().out
    for said in (
        "another result for call 'call_0' kept as a duplicate",
        "result for unknown call 'call_77' kept as text",
        "synthetic R9 R10 R11 R12 (cancelled)",
        "synthetic R2 (lost)",
        "not sent R12 (late)",
        "4 thinking",
        "deferred to its end",
        'c5 weather({"city": "Ber ...',
        "gpt 500 ",
        "claude continues the same ask",
        "No request was refused",
    ):
        assert said in " ".join(shown.split()), said
    lines = shown.splitlines()
    assert len(lines) < 80
    assert max(map(len, lines)) <= 80


def test_the_demo_begins_with_a_history_that_both_providers_refuse(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["demo"]) == 0
    first = capsys.readouterr().out.split("\n1. ")[1].split("\n2. ")[0]
    assert re.search(r"^  gpt +400 .*'call_0' not found", first, re.MULTILINE)
    assert re.search(r"^  claude +400 .*`tool_use` ids were found without `tool_result`", first, re.MULTILINE)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("columns", [60, 72, 100])
def test_the_output_of_the_demo_fits_the_width_of_the_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["demo", "--all"]) == 0
    assert max(map(len, terminal.getvalue().splitlines())) <= columns


def test_the_claude_server_of_the_demo_refuses_thinking_after_a_changed_prefix(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = demo_servers(monkeypatch)
    assert main(["demo"]) == 0
    claude = made[0]["claude"]
    sent = claude.requests[-1].body
    headers = dict(claude.requests[-1].headers)
    changed = sent.replace(b"Find me a warm city", b"Find me a cold city", 1)
    assert claude.judge(HttpRequest("POST", "/v1/messages", headers, sent, False)) is None
    refusal = claude.judge(HttpRequest("POST", "/v1/messages", headers, changed, False))
    assert refusal is not None
    assert "thinking" in refusal.message


def test_the_demo_continues_through_every_dialect(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = demo_servers(monkeypatch)
    assert main(["demo", "--all"]) == 0
    assert sorted(server.dialect for server in made[0].values()) == sorted(SERVERS)
    assert demo.EXPECTED_WITH_ALL["dialects"] == len(SERVERS)
    shown = capsys.readouterr().out.splitlines()
    for stop in STOPS:
        asked, answered = made[0][stop.dialect].requests
        assert (asked.status, answered.status) == (200, 200)
        assert stop.weather.encode() in answered.body
        first, second = [line for line in shown if line.startswith(f"  {stop.dialect} ")]
        assert f"thinks: {stop.city}?" in first
        assert f" weather({stop.city}"[:11] in first
        assert second.endswith(f"{stop.city} has {stop.weather}.")
    for home in ("gpt", "claude"):
        last = made[0][home].requests[-1].body
        assert all(stop.weather.encode() in last for stop in STOPS)


def test_a_refusal_in_the_demo_gives_exit_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    strict = script.servers

    def refuse(gates: script.Gates, *, all_dialects: bool) -> dict[str, LoopbackServer]:
        made = strict(gates, all_dialects=all_dialects)
        made["kimi"].faults = {1: Status(400, message="no")}
        return made

    monkeypatch.setattr(script, "servers", refuse)
    assert main(["demo", "--all"]) == 1
    shown = capsys.readouterr().out
    assert re.search(r"^  kimi +400 ", shown, re.MULTILINE)
    assert "expected 0" in shown


def test_the_demo_prints_the_same_on_asyncio_and_trio(capsys: pytest.CaptureFixture[str]) -> None:
    shown = set()
    for backend in BACKENDS:
        main(["demo", "--all", "--backend", backend])
        shown.add(capsys.readouterr().out)
    assert len(shown) == 1
    assert not any(ord(char) < 32 and char != "\n" for char in shown.pop())


def test_a_wrong_count_in_the_demo_is_shown_and_gives_exit_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(demo.EXPECTED, "failovers", 2)
    assert main(["demo"]) == 1
    shown = capsys.readouterr().out
    assert "expected 2" in shown
    assert "No request was refused" not in shown


def test_the_demo_prints_the_requests_that_the_servers_received(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, shown = demo_servers(monkeypatch), list[SentRequest]()
    monkeypatch.setattr(DemoPrinter, "print_request", lambda _, request: shown.append(request))
    assert main(["demo", "--all"]) == 0
    received = [exchange for server in made[0].values() for exchange in server.requests]
    assert len(shown) == len(received) == demo.EXPECTED_WITH_ALL["requests"]
    for name, server in made[0].items():
        of_backend = [request for request in shown if request.backend == name]
        for request, exchange in zip(of_backend, server.requests, strict=True):
            assert request.status == exchange.status
            body = json.loads(exchange.body)
            messages = body.get("messages") or body.get("contents") or body["input"]
            assert request.same_count + len(request.new_words) == len(messages)
            assert "?" not in " ".join(request.new_words)
