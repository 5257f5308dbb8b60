"""`actors stress` in a separate process."""

import json

import pytest

from tests.cli.command import actors_now

TOOLS = "tests/cli/stressed.py"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_many_sessions_use_the_tools_of_a_module_and_the_report_is_json(backend: str) -> None:
    line = ("stress", "--tools", "tests.cli.stressed:good", "--sessions", "5", "--turns", "3", "--json")
    done = actors_now(*line, "--cancelling", "0", "--backend", backend)
    told = json.loads(done.out)
    assert (done.code, told["asks"], told["refusals"]) == (0, {"complete": 15}, 0)
    assert told["counters"]["requests"] == told["rounds"] == 30
    assert told["leaks"] == {"tasks": 0, "threads": 0, "descriptors": 0}


def test_a_tool_that_leaks_is_reported_and_gives_exit_code_1() -> None:
    done = actors_now("stress", "--tools", TOOLS, "--sessions", "2", "--turns", "4", "--cancelling", "0")
    assert done.code == 1
    assert "8 asks in" in done.out
    assert " descriptors" in done.out


@pytest.mark.parametrize(
    ("line", "code", "complaint"),
    [
        (
            ("openai:gpt-5.2",),
            3,
            "Backend 'openai' is at api.openai.com, where a stress test may cost money; "
            "to use it anyway, pass --allow-network",
        ),
        (("--switch-to", "mine"), 2, "--config and --switch-to need a TARGET"),
        (("--tools", "no_such_module:tools"), 3, "Cannot load tools from no_such_module:tools"),
        (("--tools", "json:dumps"), 3, "Cannot load tools from json:dumps"),
        (("--tools", "tests.cli.stressed:none"), 3, "is neither a tool nor a list of tools; decorate"),
        (("--switching", "2"), 2, "expected a number from 0 to 1, not '2'"),
    ],
)
def test_invalid_options_of_stress_are_reported_in_one_line(
    line: tuple[str, ...], code: int, complaint: str
) -> None:
    done = actors_now("stress", *line, env={"OPENAI_API_KEY": "k"})
    assert done.code == code
    assert complaint in done.complaint
