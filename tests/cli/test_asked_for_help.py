"""`actors doctor`, `models` and `explain`."""

import json
from pathlib import Path

import pytest

from actors.adapters.failure import ACTIONS
from actors.cli.exits import MEANING
from actors.core.rulebook import RULES
from actors.testing import OpenAIServer, serve
from tests.cli.command import actors, actors_now

SECRET = "sk-very-secret"


def _config(folder: Path, *lines: str) -> str:
    path = folder / "actors.toml"
    path.write_text("\n".join(lines))
    return str(path)


def test_the_doctor_command_lists_the_environment_and_shows_no_key() -> None:
    done = actors_now("doctor", env={"OPENAI_API_KEY": SECRET})
    assert done.code == 0
    assert "ok    set: OPENAI_API_KEY" in done.out
    assert "psycopg" in done.out
    (kept,) = [line for line in done.out.splitlines() if line.startswith("ok    SQLite ")]
    assert "sessions.db" in kept
    assert SECRET not in done.out + done.err


def test_the_doctor_command_without_a_key_suggests_the_offline_option() -> None:
    done = actors_now("doctor")
    assert (
        done.code,
        "--    no key of a provider is set; actors run --offline needs no key" in done.out,
    ) == (
        0,
        True,
    )


@pytest.mark.parametrize(
    ("lines", "code", "says"),
    [
        (["[backends.a]", 'kind = "openai"', 'model = "m"'], 4, "OPENAI_API_KEY; it is not set"),
        (["[backends.a]", 'kind = "openia"', 'model = "m"'], 3, "openai"),
    ],
)
def test_a_configuration_error_gives_one_line_and_its_exit_code(
    lines: list[str], code: int, says: str, tmp_path: Path
) -> None:
    done = actors_now("doctor", "--config", _config(tmp_path, *lines))
    assert done.code == code
    (fault,) = [line for line in done.out.splitlines() if line.startswith("FAIL")]
    assert says in fault


@pytest.mark.anyio
async def test_the_doctor_command_contacts_a_server_only_with_the_network_option(tmp_path: Path) -> None:
    server = OpenAIServer()
    async with serve(server):
        url = f'base_url = "{server.base_url}"'
        config = _config(tmp_path, "[backends.a]", 'kind = "openai_compatible"', 'model = "m"', url)
        quiet = await actors("doctor", "--config", config)
        assert (quiet.code, server.received) == (0, 0)
        there = await actors("doctor", "--config", config, "--network")
        assert (there.code, "answers (" in there.out) == (0, True)
    gone = await actors("doctor", "--config", config, "--network")
    assert (gone.code, "FAIL  backend a: " in gone.out) == (6, True)


def test_the_models_command_lists_the_targets_of_a_file_or_the_providers(tmp_path: Path) -> None:
    lines = [
        "[backends.a]",
        'kind = "ollama"',
        'model = "qwen3"',
        "[pools.p]",
        'members = ["a"]',
        'policy = "failover"',
    ]
    named = actors_now("models", "--config", _config(tmp_path, *lines))
    assert [line.split() for line in named.out.splitlines()] == [
        ["a", "ollama", "qwen3", "http://127.0.0.1:11434/v1"],
        ["p", "pool", "failover", "a"],
    ]
    known = actors_now("models", env={"OPENAI_API_KEY": SECRET})
    assert "openai:MODEL" in known.out
    assert "OPENAI_API_KEY is set" in known.out
    assert "ANTHROPIC_API_KEY is not set" in known.out
    assert SECRET not in known.out


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("ANT-12", RULES["ANT-12"].demand),
        ("ant-12", RULES["ANT-12"].demand),
        ("8", MEANING[8]),  # type: ignore[index]  # an exit code is an int
        ("429", "Too many requests"),
        ("outcome_unknown", "its effect is unknown"),
        ("SessionClosed", "Open another"),
        *((kind, kind) for kind in ACTIONS),
    ],
)
def test_the_explain_command_describes_a_term(word: str, says: str) -> None:
    done = actors_now("explain", word)
    assert (done.code, done.err) == (0, "")
    assert says.replace("`", "") in done.out.replace("`", "")


def test_the_explain_command_classifies_a_refusal_and_names_its_rule(tmp_path: Path) -> None:
    words = "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    words += "'tool_call_id'. The following tool_call_ids did not have response messages: call_1"
    body = json.dumps({"error": {"message": words, "type": "invalid_request_error"}})
    (tmp_path / "refused.json").write_text(body)
    read = actors_now("explain", str(tmp_path / "refused.json"))
    piped = actors_now("explain", "-", stdin=body)
    assert (read.code, read.out) == (piped.code, piped.out)
    assert "a bug of this library" in read.out
    assert "OAC-01: " in read.out


def test_the_explain_command_suggests_the_nearest_word() -> None:
    done = actors_now("explain", "outcome_unknwon")
    assert (done.code, done.complaint) == (
        2,
        "unknown word 'outcome_unknwon'; did you mean 'outcome_unknown'?",
    )


@pytest.mark.parametrize(
    ("parameter", "message", "says", "is_sampling"),
    [
        (
            "max_tokens",
            "Unsupported parameter: 'max_tokens' is not supported.",
            "not supported at all",
            False,
        ),
        (
            "temperature",
            "Unsupported parameter: 'temperature' is not supported.",
            "not supported at all",
            True,
        ),
        (
            "temperature",
            "Unsupported value: 'temperature' does not support 0.2.",
            "this value is refused",
            True,
        ),
    ],
)
def test_the_explain_command_names_a_refused_parameter(
    tmp_path: Path, parameter: str, message: str, says: str, is_sampling: bool
) -> None:
    code = "unsupported_value" if "value" in says else "unsupported_parameter"
    body = {"error": {"message": message, "param": parameter, "code": code}}
    (tmp_path / "refused.json").write_text(json.dumps(body))
    done = actors_now("explain", str(tmp_path / "refused.json"))
    assert f"refused parameter: {parameter}; " in done.out
    assert says in done.out
    assert ("sampling" in done.out) is is_sampling
