"""Advice after a failed ask: the variable of the key, the nearest model, a refused parameter, the base URL."""

import pytest

from actors.config import BackendSettings, Config, FileSettings, PoolSettings
from actors.config.settings import Auth
from actors.core.data.record import replace
from actors.core.stream_events.ask_events import AskResult
from actors.core.values.identity import Binding
from actors.core.values.progress import Attempt, Cause
from actors.core.values.stream import Usage
from actors.provider.advice import advice, no_answer_message
from actors.testing import AnthropicServer, OpenAIServer, Say, Turn, serve
from tests.cli.command import actors

NO_FILE = Config(FileSettings(), {})


def failed_result(binding: Binding, why: str, cause: Cause | None) -> AskResult:
    return AskResult("", "failed", binding, (Attempt(binding, "failed", why, cause),), 1, Usage(), why)


def advice_for_url(dialect: str, url: str, why: str, status: int | None = None) -> str:
    return advice(
        failed_result(Binding("server", dialect, url, "", "m"), why, Cause("config", status)), NO_FILE
    )


@pytest.mark.parametrize(
    ("dialect", "url", "why", "status", "says"),
    [
        ("openai_chat", "http://h:1", "404 page not found", 404, "tried POST http://h:1/chat/completions; "),
        ("openai_chat", "http://h:1", "404 page not found", 404, "try http://h:1/v1"),
        (
            "openai_chat",
            "http://h/v1/chat/completions",
            "no",
            404,
            "must not end in /chat/completions: try http://h/v1",
        ),
        ("anthropic", "http://h/v1", "no", 404, "must not end in /v1: try http://h"),
        ("openai_chat", "http://h/v1", "Method Not Allowed", 405, "a server with the dialect openai_chat"),
        ("openai_chat", "http://h/v1", "HTTP 301 without a message", 301, "redirects are not followed"),
        (
            "openai_chat",
            "https://h/v1",
            "[SSL: WRONG_VERSION_NUMBER] wrong",
            None,
            "plain HTTP: try http://h",
        ),
        ("openai_chat", "http://h/v1", "Name or service not known", None, "check the spelling of h"),
        (
            "openai_chat",
            "http://h:9/v1",
            "All connection attempts failed",
            None,
            "check that the server is running at h:9",
        ),
    ],
)
def test_the_likely_fix_of_a_base_url_is_suggested(
    dialect: str, url: str, why: str, status: int | None, says: str
) -> None:
    assert says in advice_for_url(dialect, url, why, status)


@pytest.mark.parametrize("status", [400, 429, 500, 529])
def test_failures_with_other_causes_get_no_advice_on_the_base_url(status: int) -> None:
    assert advice_for_url("openai_chat", "http://h", "whatever it says", status) == ""


def test_an_unknown_dialect_gets_no_advice() -> None:
    assert advice_for_url("my_dialect", "http://h", "404 page not found", 404) == ""


FILE = Config(
    FileSettings(
        backends={
            "own": BackendSettings(
                kind="openai", model="m", auth=Auth(key="OUR_KEY"), base_url="https://h/v1"
            ),
            "open": BackendSettings(kind="openai", model="m", base_url="https://h/v1"),
            "command": BackendSettings(kind="openai", model="m", auth=Auth(command=("print-token",))),
            "aws": BackendSettings(kind="bedrock", model="m", auth=Auth(aws="eu-west-1")),
            "usual": BackendSettings(kind="mistral", model="m"),
        },
        pools={"all": PoolSettings(members=("own", "usual"))},
    ),
    {},
)


@pytest.mark.parametrize(
    ("backend", "says"),
    [
        ("own", "the key in OUR_KEY"),
        ("open", "requests without a key (set auth, or --auth, to the name of a variable with the key)"),
        ("command", "the output of its token command"),
        ("aws", "the AWS keys"),
        ("usual", "the key in MISTRAL_API_KEY"),
        ("anthropic", "the key in ANTHROPIC_API_KEY"),
    ],
)
def test_the_advice_names_the_source_of_a_refused_key(backend: str, says: str) -> None:
    binding = Binding(backend, "openai_chat", "https://h/v1", "", "m")
    for cause in (Cause("config", 401), Cause("config", 400)):
        assert (
            advice(failed_result(binding, "API key not valid", cause), FILE)
            == f"check that {backend} accepts {says}"
        )
    assert (
        advice(failed_result(binding, "Forbidden", Cause("config", 403)), FILE)
        == f"check that {says} may use m"
    )


@pytest.mark.parametrize(
    ("model", "why", "status", "says"),
    [
        (
            "gpt-5.6-sool",
            "The model `gpt-5.6-sool` does not exist or you do not have access",
            404,
            "'gpt-5.6-sol'",
        ),
        ("claude-sonet-5", "model: claude-sonet-5", 404, "'claude-sonnet-5'"),
        ("openai/gpt-5.6-sool", "openai/gpt-5.6-sool: no such model", 400, "'openai/gpt-5.6-sol'"),
    ],
)
def test_the_nearest_name_of_an_unknown_model_is_suggested(
    model: str, why: str, status: int, says: str
) -> None:
    binding = Binding("openai", "openai_chat", "https://api.openai.com/v1", "", model)
    assert advice(failed_result(binding, why, Cause("config", status)), NO_FILE) == f"did you mean {says}?"


def test_a_model_name_without_a_similar_known_name_is_questioned() -> None:
    binding = Binding("openai", "openai_chat", "https://api.openai.com/v1", "", "q")
    said = advice(failed_result(binding, "The model 'q' does not exist", Cause("config", 404)), NO_FILE)
    assert said == "check that openai has a model named 'q', and that this account may use it"


@pytest.mark.parametrize(
    ("why", "says"),
    [
        ("Unsupported parameter: 'temperature' is not supported with this model.", "omit temperature"),
        ("top_p: must be at most 1", "set top_p to another value, or omit it"),
        ("Unknown parameter: 'stream_options'.", ""),
        ("tool_call_ids did not have response messages", ""),
    ],
)
def test_the_advice_names_a_refused_parameter(why: str, says: str) -> None:
    binding = Binding("openai", "openai_chat", "https://api.openai.com/v1", "", "gpt-5.6-sol")
    assert advice(failed_result(binding, why, Cause("transcript", 400)), NO_FILE) == says


def test_an_ask_ended_by_a_limit_is_reported_as_stopped() -> None:
    binding = Binding("openai", "openai_chat", "http://h", "", "m")
    assert no_answer_message(failed_result(binding, "60 seconds are over", Cause("time")), NO_FILE) == (
        "stopped: 60 seconds are over"
    )
    assert no_answer_message(failed_result(binding, "no", None), NO_FILE) == "openai:m gave no answer: no"


def test_a_timeout_during_retries_names_the_retried_failure() -> None:
    binding = Binding("openai", "openai_chat", "http://h:1/v1", "", "m")
    refused = Attempt(
        binding, "retried", "cannot connect to http://h:1/v1/chat/completions", Cause("transient")
    )
    over = Attempt(binding, "failed", "5 seconds are over", Cause("time"), wait=0.4)
    result = replace(failed_result(binding, over.error, over.cause), attempts=(refused, over))
    help_ = "check that the server is running at h:1"
    assert advice(result, NO_FILE) == help_
    assert no_answer_message(result, NO_FILE) == (
        f"stopped: 5 seconds are over; its request had failed: {refused.error}; {help_}"
    )
    answered = replace(result, finish_reason="tool_calls")
    later = replace(result, attempts=(refused, replace(over, wait=0.0)))
    for each in (answered, later):
        assert (advice(each, NO_FILE), no_answer_message(each, NO_FILE)) == (
            "",
            "stopped: 5 seconds are over",
        )


@pytest.mark.anyio
async def test_the_error_for_a_base_url_without_its_path_shows_the_requested_url_and_the_fix() -> None:
    server = OpenAIServer([Turn(Say("hello"))])
    async with serve(server):
        root = server.base_url.removesuffix("/v1")
        done = await actors("run", "x", "-m", "m", "--base-url", root)
        assert f"tried POST {root}/chat/completions" in done.complaint
        assert f"try {server.base_url}" in done.complaint
        again = await actors("run", "x", "-m", "m", "--base-url", server.base_url)
    assert (again.code, again.out) == (0, "hello\n")


@pytest.mark.anyio
async def test_a_base_url_with_too_long_a_path_is_corrected() -> None:
    server = AnthropicServer([Turn(Say("hello"))])
    async with serve(server):
        done = await actors(
            "run", "x", "-m", "m", "--dialect", "anthropic", "--base-url", f"{server.base_url}/v1"
        )
        assert f"try {server.base_url}" in done.complaint
