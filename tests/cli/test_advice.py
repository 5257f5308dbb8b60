"""A base URL that is a little wrong: the URL that was tried, and the likely fix."""

import pytest

from actors.cli.advice import advice
from actors.core.identity import Binding
from actors.core.progress import Attempt, Cause
from actors.testing import AnthropicServer, OpenAIServer, Say, Turn, serve
from tests.cli.command import actors


def attempt(dialect: str, url: str, why: str, status: int | None = None) -> Attempt:
    return Attempt(Binding("server", dialect, url, "", "m"), "failed", why, Cause("config", status))


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
            "goes without /chat/completions: try http://h/v1",
        ),
        ("anthropic", "http://h/v1", "no", 404, "goes without /v1: try http://h"),
        ("openai_chat", "http://h/v1", "Method Not Allowed", 405, "a server that speaks openai_chat?"),
        ("openai_chat", "http://h/v1", "HTTP 301 without a message", 301, "a redirect is not followed"),
        (
            "openai_chat",
            "https://h/v1",
            "[SSL: WRONG_VERSION_NUMBER] wrong",
            None,
            "plain HTTP: try http://h",
        ),
        ("openai_chat", "http://h/v1", "Name or service not known", None, "is h spelt right?"),
        (
            "openai_chat",
            "http://h:9/v1",
            "All connection attempts failed",
            None,
            "is the server running at h:9?",
        ),
    ],
)
def test_the_likely_fix_is_named(dialect: str, url: str, why: str, status: int | None, says: str) -> None:
    assert says in advice(attempt(dialect, url, why, status))


@pytest.mark.parametrize("status", [400, 401, 429, 500, 529])
def test_other_failures_get_no_advice_on_the_address(status: int) -> None:
    assert advice(attempt("openai_chat", "http://h", "whatever it says", status)) == ""


def test_a_dialect_of_ones_own_gets_none() -> None:
    assert advice(attempt("my_dialect", "http://h", "404 page not found", 404)) == ""


@pytest.mark.anyio
async def test_a_url_that_lacks_its_path_is_told_which_was_tried() -> None:
    server = OpenAIServer([Turn(Say("hello"))])
    async with serve(server):
        root = server.base_url.removesuffix("/v1")
        done = await actors("run", "x", "-m", "m", "--base-url", root)
        assert f"tried POST {root}/chat/completions" in done.complaint
        assert f"try {server.base_url}" in done.complaint
        again = await actors("run", "x", "-m", "m", "--base-url", server.base_url)
    assert (again.code, again.out) == (0, "hello\n")


@pytest.mark.anyio
async def test_a_url_with_a_path_too_much_is_told_which_goes() -> None:
    server = AnthropicServer([Turn(Say("hello"))])
    async with serve(server):
        done = await actors(
            "run", "x", "-m", "m", "--dialect", "anthropic", "--base-url", f"{server.base_url}/v1"
        )
        assert f"try {server.base_url}" in done.complaint
