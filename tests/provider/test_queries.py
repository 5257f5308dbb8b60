"""Base URLs with a query: every request contains it, and no output shows its values."""

import logging
from pathlib import Path

import anyio
import pytest

from actors import Runtime
from actors.config import load
from actors.errors import AskFailed, ConfigError
from actors.provider.credentials import query_secrets, with_query
from actors.testing import GeminiServer, OpenAIServer, Say, Status, Turn, serve

pytestmark = pytest.mark.anyio

SECRET = "canary-7f3a9c"
QUERY = f"api-version=2024-10-21&subscription-key={SECRET}"


def test_a_configured_query_is_appended_to_any_path() -> None:
    assert with_query("http://h/v1/chat", "") == "http://h/v1/chat"
    assert with_query("http://h/v1/chat", "a=1&b=2") == "http://h/v1/chat?a=1&b=2"
    assert with_query("http://h/m:stream?alt=sse", "a=1") == "http://h/m:stream?alt=sse&a=1"


def test_every_query_parameter_except_a_version_is_a_secret() -> None:
    assert query_secrets("") == ()
    assert query_secrets("api-version=2024-10-21&key=a%2Fb") == (("key", "a%2Fb"), ("key", "a/b"))


@pytest.mark.parametrize("url", ["http://h/v1?", "http://h/v1/?"])
def test_an_empty_query_is_ignored(url: str) -> None:
    backend = load(None, {"OPENAI_BASE_URL": url}).backend("openai:m")
    assert (backend.endpoint, backend.query) == ("http://h/v1", None)


@pytest.mark.parametrize("place", ["file", "environment"])
def test_a_query_is_not_part_of_the_binding_or_any_repr(tmp_path: Path, place: str) -> None:
    url = f"https://h.example/v1/?{QUERY}"
    if place == "file":
        path = tmp_path / "actors.toml"
        path.write_text(f'[backends.a]\nkind = "openai"\nmodel = "m"\nbase_url = "{url}"\n')
        config, name = load(path, {}), "a"
    else:
        config, name = load(None, {"OPENAI_BASE_URL": url}), "openai:m"
    backend = config.backend(name)
    assert backend.endpoint == backend.binding.endpoint == "https://h.example/v1"
    assert backend.query is not None
    assert backend.query.get_secret_value() == QUERY
    assert SECRET not in f"{config!r} {config.settings!r} {backend!r} {backend.binding!r}"


@pytest.mark.parametrize("url", ["https://h/v1?a=1#b", "https://user@h/v1?a=1", "https://h/v1?a= b"])
def test_a_base_url_with_parts_other_than_a_query_is_rejected_with_a_redacted_error(url: str) -> None:
    with pytest.raises(ConfigError, match="OPENAI_BASE_URL must be") as refused:
        load(None, {"OPENAI_BASE_URL": f"{url}&key={SECRET}"}).backend("openai:m")
    assert SECRET not in str(refused.value)


def test_an_mcp_server_accepts_no_query(tmp_path: Path) -> None:
    path = tmp_path / "actors.toml"
    path.write_text(f'[mcp.files]\nurl = "https://h.example/mcp?key={SECRET}"\n')
    with pytest.raises(ConfigError, match="password, query or fragment") as refused:
        load(path, {})
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_configured_query_is_sent_in_addition_to_the_query_of_the_dialect(
    tmp_path: Path, stream: bool
) -> None:
    chat, gemini = OpenAIServer([Turn(Say("Yes."))]), GeminiServer([Turn(Say("No."))])
    path = tmp_path / "actors.toml"
    with anyio.fail_after(60):
        async with serve(chat, gemini):
            path.write_text(
                f'[backends.a]\nkind = "openai"\nmodel = "m"\nbase_url = "{chat.base_url}?{QUERY}"\n'
                f"stream = {str(stream).lower()}\n"
                f'[backends.b]\nkind = "gemini"\nmodel = "m"\nbase_url = "{gemini.endpoint}/?{QUERY}"\n'
                f"stream = {str(stream).lower()}\n"
            )
            async with Runtime(path, environ={}) as runtime:
                session = await runtime.open("a")
                assert (await session.ask("Is it?")).text == "Yes."
                await session.switch("b")
                assert (await session.ask("Is it?")).text == "No."
    assert [exchange.query for exchange in chat.requests] == [QUERY]
    assert [exchange.query for exchange in gemini.requests] == [f"alt=sse&{QUERY}" if stream else QUERY]


@pytest.mark.usefixtures("short_waits")
async def test_no_error_log_or_journal_shows_a_query(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    told = Status(400, message=f"The request to /v1/chat/completions?{QUERY} cannot be read.")
    chat = OpenAIServer([Turn(Say("Yes."))], faults={0: told})
    environ, shown = {"OPENAI_BASE_URL": ""}, list[str]()
    with anyio.fail_after(60):
        async with serve(chat):
            environ["OPENAI_BASE_URL"] = f"{chat.base_url}?{QUERY}"
            shown += await ask_once(environ, tmp_path / "log.sqlite")
        shown += await ask_once(environ, tmp_path / "log.sqlite")  # the server no longer listens
    assert "2024-10-21" in shown[0]
    journal = (tmp_path / "log.sqlite").read_bytes()
    assert SECRET not in f"{shown} {caplog.text} {journal!r}"


async def ask_once(environ: dict[str, str], journal: Path) -> list[str]:
    """Return all output of an ask that fails."""
    async with Runtime(environ=environ, journal=journal) as runtime:
        session = await runtime.open("openai:m")
        with pytest.raises(AskFailed) as raised:
            await session.ask("Is it?")
        result = raised.value.result
        preview = await session.preview("openai:m")
        return [result.error, f"{raised.value!r} {result!r}", f"{preview!r}", f"{runtime.stats()!r}"]
