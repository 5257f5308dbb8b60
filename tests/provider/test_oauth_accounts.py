"""OAuth accounts: a token command, extra headers, and no secret in any output.

The strict servers run in OAuth mode, so a request without the token, the beta header or the project never reaches the
rules. The first reports of refused tool conversations came from users of such accounts.
"""

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from actors import Runtime, tool
from actors.config import load
from actors.core.check import check
from actors.core.data.persistent import Segments
from actors.core.dialects.profiles import dialect
from actors.errors import ConfigError, MissingKey
from actors.strict.server import LoopbackServer
from actors.testing import (
    AnthropicServer,
    Call,
    GeminiServer,
    OAuth,
    OpenAIServer,
    Say,
    Status,
    Think,
    Turn,
    serve,
)
from actors.tools import Tool
from actors.transport import HttpTransport, Response, Timeouts

pytestmark = pytest.mark.anyio

TEAM = "opaque-team-9f2c7d"
FIVE_TURNS = [
    turn
    for number in range(5)
    for turn in (
        Turn(
            Think("Both at once."), Call("work", {"name": f"a{number}"}), Call("work", {"name": f"b{number}"})
        ),
        Turn(Say(f"Turn {number} is done.")),
    )
]
FILE = """
[backends.b]
kind = "{kind}"
model = "{model}"
base_url = "{url}"
account = "personal"
auth = {{ command = ["cat", "{token}"], lifetime = 3600 }}
headers = {{ {header}, "X-Team" = {{ variable = "TEAM" }} }}
"""


class Account:
    """An account whose token expires while a turn runs."""

    def __init__(self, oauth: OAuth, file: Path) -> None:
        self.oauth, self.file = oauth, file
        self.token = "token-0"
        file.write_text(self.token)

    @property
    def tool(self) -> Tool[..., Any]:  # Any: any function
        """A tool that replaces the account's token during the calls whose names start with b2 and a4."""

        async def work(name: str) -> str:
            """Do a piece of work."""
            if name in ("b2", "a4"):
                self.oauth.expire(self.token)
                self.token = f"token-{name}"
                self.oauth.grant(self.token)
                self.file.write_text(self.token)
            return f"{name} is done"

        return tool(work)


def anthropic(oauth: OAuth) -> tuple[LoopbackServer, dict[str, str]]:
    header = '"anthropic-beta" = "oauth-2025-04-20"'
    return AnthropicServer(FIVE_TURNS, oauth=oauth), {
        "kind": "anthropic",
        "model": "claude-x",
        "header": header,
    }


def gemini(oauth: OAuth) -> tuple[LoopbackServer, dict[str, str]]:
    header = '"x-goog-user-project" = "project-1"'
    return GeminiServer(FIVE_TURNS, oauth=oauth), {"kind": "gemini", "model": "gemini-x", "header": header}


@pytest.mark.requirement("REQ-915-004", "REQ-915-008", "PROMISE-1", "PROMISE-2", "PROMISE-11")
@pytest.mark.parametrize("host", [anthropic, gemini])
async def test_five_turns_of_parallel_calls_survive_an_expiring_token(
    host: Callable[[OAuth], tuple[LoopbackServer, dict[str, str]]],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    oauth = OAuth({"token-0": None}, project="project-1")
    server, words = host(oauth)
    account, told = Account(oauth, tmp_path / "token"), list[str]()
    async with serve(server):
        file = tmp_path / "actors.toml"
        file.write_text(FILE.format(url=server.endpoint, token=account.file, **words))
        async with Runtime(file, environ={"TEAM": TEAM}) as runtime:
            session = await runtime.open("b", tools=[account.tool])
            with anyio.fail_after(60):
                for number in range(5):
                    answer = await session.ask(f"Do part {number}.")
                    assert (answer.status, answer.text) == ("complete", f"Turn {number} is done.")
                    told.append(repr(answer))
            told += [repr(runtime.config), repr(runtime.config.resolve("b")), caplog.text]
            told += [repr(event) for event in runtime._storage.read(session.id)]
    statuses = [exchange.status for exchange in server.requests]
    assert (statuses.count(401), statuses.count(200)) == (2, 10)
    assert server.refusals == []  # refusals of bodies; the account counts the two refused tokens
    assert oauth.refusals == 2
    assert all(dict(exchange.headers)["x-team"] == TEAM for exchange in server.requests)
    last = server.requests[-1].body
    assert check(last, dialect(server.dialect)) == []
    done = [f"{name}{number} is done" for name in "ab" for number in range(5)]
    assert [last.count(text.encode()) for text in done] == [1] * 10
    assert b"No result was recorded" not in last
    assert not [text for text in told if TEAM in text or "token-" in text]


async def test_an_oauth_request_without_the_beta_header_is_refused(tmp_path: Path) -> None:
    server, words = anthropic(OAuth({"token-0": None}))
    (tmp_path / "token").write_text("token-0")
    async with serve(server):
        file = tmp_path / "actors.toml"
        words["header"] = '"x-other" = "1"'
        file.write_text(FILE.format(url=server.endpoint, token=tmp_path / "token", **words))
        async with Runtime(file, environ={"TEAM": TEAM}) as runtime:
            ended = await (await runtime.open("b")).ask("Hello.", check=False)
    assert ended.status == "failed"
    assert "OAuth authentication is currently not supported." in ended.error


async def test_a_header_that_a_server_echoes_is_removed_from_the_result(tmp_path: Path) -> None:
    server = OpenAIServer(faults={0: Status(400, message=f"No team {TEAM!r} here")})
    async with serve(server):
        file = tmp_path / "actors.toml"
        file.write_text(
            f'[backends.b]\nkind = "openai"\nmodel = "m"\nbase_url = "{server.base_url}"\n'
            'headers = { x-team = { variable = "TEAM" } }\n'
        )
        async with Runtime(file, environ={"TEAM": TEAM}) as runtime:
            ended = await (await runtime.open("b")).ask("Hello.", check=False)
    assert ended.status == "failed"
    assert "[removed]" in ended.error
    assert TEAM not in repr(ended)


class RecordingTransport(HttpTransport):
    """The real transport, which records the headers of each request."""

    def __init__(self) -> None:
        super().__init__()
        self.headers_sent: list[list[tuple[str, str]]] = []

    @asynccontextmanager
    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], segments: Segments, timeouts: Timeouts
    ) -> AsyncIterator[Response]:
        """Record the headers and send the request."""
        self.headers_sent.append([(name.lower(), value) for name, value in headers])
        async with super().send(url, headers, segments, timeouts) as response:
            yield response


async def test_a_header_is_resolved_per_request_and_replaces_the_default(
    tmp_path: Path,
) -> None:
    server = AnthropicServer([Turn(Say("one")), Turn(Say("two"))])
    environ, transport = {"TEAM": "first"}, RecordingTransport()
    async with serve(server):
        file = tmp_path / "actors.toml"
        file.write_text(
            f'[backends.b]\nkind = "anthropic"\nmodel = "m"\nbase_url = "{server.base_url}"\n'
            'headers = { Anthropic-Version = "2024-01-01", X-Team = { variable = "TEAM" } }\n'
        )
        async with Runtime(file, environ=environ, transport=transport) as runtime:
            session = await runtime.open("b")
            await session.ask("Hello.")
            environ["TEAM"] = "second"
            await session.ask("Again.")
    versions = [
        [value for name, value in sent if name == "anthropic-version"] for sent in transport.headers_sent
    ]
    assert versions == [["2024-01-01"], ["2024-01-01"]]
    assert [dict(sent)["x-team"] for sent in transport.headers_sent] == ["first", "second"]


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ('{ authorization = "opaque" }', "must not contain 'authorization'; put credentials into auth"),
        ('{ X-Api-Key = "opaque" }', "must not contain 'x-api-key'; put credentials into auth"),
        ('{ Host = "opaque" }', "must not contain 'host', which is set for each request"),
        ('{ "bad name" = "opaque" }', "must have names of letters, digits and '-'"),
        ('{ x = "opaque\\r\\ny: 1" }', "must be 1 to 4096 printable ASCII characters"),
        ('{ x = "" }', "must be 1 to 4096 printable ASCII characters"),
        ("{ x = 1 }", 'must contain strings, or { variable = "NAME" } for a secret'),
        ('{ x = { variable = "opaque" } }', "must be the name of an environment variable in capitals"),
        ('{ x = { variable = "A", more = "opaque" } }', 'must contain strings, or { variable = "NAME" }'),
        ('["opaque"]', "must be a table of at most 32 headers"),
    ],
)
def test_an_invalid_header_raises_a_config_error_that_does_not_show_its_value(
    headers: str, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "actors.toml"
    file.write_text(f'[backends.b]\nkind = "openai"\nmodel = "m"\nheaders = {headers}\n')
    with pytest.raises(ConfigError) as refused:
        load(file, {})
    told = str(refused.value)
    assert "[backends.b] headers: " in told
    assert problem in told
    assert "opaque" not in told
    assert "\n" not in told


def test_a_header_with_a_missing_or_invalid_variable_is_an_error(
    tmp_path: Path,
) -> None:
    file = tmp_path / "actors.toml"
    file.write_text(
        '[backends.b]\nkind = "openai"\nmodel = "m"\nbase_url = "http://x/v1"\n'
        'headers = { x-team = { variable = "TEAM" } }\n'
    )
    with pytest.raises(
        MissingKey, match="needs the header 'x-team' in the environment variable TEAM; it is not set"
    ):
        load(file, {}).resolve("b")
    with pytest.raises(
        ConfigError, match="variable TEAM does not contain a valid header value; use printable ASCII"
    ) as refused:
        load(file, {"TEAM": "opaque\r\nx: 1"}).resolve("b")
    assert "opaque" not in str(refused.value)
