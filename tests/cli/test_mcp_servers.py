"""`--mcp`: tools of MCP servers from the configuration or the command line."""

import json
import shlex
from pathlib import Path

import pytest

from actors.cli.targets import with_servers
from actors.config import Config, load
from actors.config.settings import FileSettings
from actors.errors import ConfigError
from actors.testing import Call, OpenAIServer, Say, Turn, serve
from tests.cli.command import actors, actors_now
from tests.tools.mcp_servers.forking import command

pytestmark = pytest.mark.anyio

SDK = (
    "actors.tools.mcp.configured",
    "actors.tools.mcp.connection",
)  # its models take a second to load
CALLS = Turn(Call("add", {"one": 1, "other": 2}), Call("store", {"key": "k"}))


def reference_server() -> str:
    """Return the reference server as an argument of `--mcp`."""
    return f"ref={shlex.join(command())}"


async def tool_results(*options: str, code: int = 0) -> dict[str, str]:
    """Run with a server that calls two tools; return the result of each, by tool."""
    server = OpenAIServer([CALLS, Turn(Say("Done."))])
    async with serve(server):
        done = await actors("run", "Go.", "-m", "m", "--base-url", server.base_url, *options, loaded=SDK)
    assert done.code == code, done.err
    sent = json.loads(server.requests[-1].body)
    results = [message["content"] for message in sent["messages"] if message["role"] == "tool"]
    return dict(zip(("add", "store"), results, strict=True))


async def test_tools_of_a_server_on_the_command_line_need_approval() -> None:
    results = await tool_results("--mcp", reference_server(), code=8)
    assert results["add"] == "3"
    assert "not approved" in results["store"]


async def test_a_tool_of_a_server_is_allowed_or_denied_by_name() -> None:
    results = await tool_results("--mcp", reference_server(), "--allow-tool", "store", "--deny-tool", "add")
    assert "not approved" in results["add"]
    assert results["store"] == "stored k"


async def test_options_override_the_approval_of_a_configured_server(tmp_path: Path) -> None:
    file = tmp_path / "actors.toml"
    server = OpenAIServer([CALLS, Turn(Say("Done."))])
    async with serve(server):
        program, *arguments = command()
        file.write_text(
            f'[backends.a]\nkind = "openai"\nmodel = "m"\nbase_url = "{server.endpoint}"\n'
            f"[mcp.ref]\ncommand = {json.dumps(program)}\nargs = {json.dumps(arguments)}\n"
            'approval = "deny"\n'
        )
        env = {"OPENAI_API_KEY": "k"}
        options = ("--config", str(file), "--mcp", "ref", "--allow-tool", "store")
        done = await actors("chat", *options, env=env, stdin="Go.\n", loaded=SDK)
    assert done.code == 0
    sent = json.loads(server.requests[-1].body)
    said = [message["content"] for message in sent["messages"] if message["role"] == "tool"]
    assert "not approved" in said[0]
    assert said[1] == "stored k"


SECRET = "s3cr3t-canary"

WRONG = [
    (
        ["files"],
        "No MCP server 'files' in --config, which has none; correct the name, or use files=COMMAND or files=URL",
    ),
    (["npx -y x"], "--mcp must be NAME, NAME=COMMAND or NAME=URL"),
    ([f"a b={SECRET}"], "--mcp must have a name of letters"),
    (["files="], "--mcp 'files' is neither a command nor a URL; check the quotes"),
    ([f"files=run '{SECRET}"], "--mcp 'files' is neither a command nor a URL; check the quotes"),
    (
        [f"files=https://me:{SECRET}@host/mcp"],
        "--mcp 'files': url must be a URL without user, password, query",
    ),
    (
        [f"files=https://host/mcp?key={SECRET}"],
        "--mcp 'files': url must be a URL without user, password, query",
    ),
    ([f"files=ftp://{SECRET}"], "--mcp 'files': url must be an http or https URL"),
    (["files=one", "files=two"], "--mcp names 'files' twice; give each server its own name"),
]


@pytest.mark.parametrize(("given", "complaint"), WRONG)
def test_an_invalid_server_is_reported_without_its_secret(given: list[str], complaint: str) -> None:
    options = [word for text in given for word in ("--mcp", text)]
    done = actors_now("run", "--offline", "hello", *options)
    assert done.code == 3
    assert done.complaint.startswith(complaint)
    assert SECRET not in done.err + done.out


def test_the_name_of_a_configured_mcp_server_cannot_be_redefined(tmp_path: Path) -> None:
    (tmp_path / "actors.toml").write_text('[mcp.files]\nurl = "https://host/mcp"\napproval = {a = "deny"}\n')
    config = load(tmp_path / "actors.toml", {})
    with pytest.raises(ConfigError, match="'files' is already in --config"):
        with_servers(config, ["files=x"], {})
    with pytest.raises(ConfigError, match="No MCP server 'file' in --config, which has files;"):
        with_servers(config, ["file"], {})
    made, names = with_servers(config, ["files"], {"b": "allow"})
    assert names == ["files"]
    assert made.settings.mcp["files"].approval == {"a": "deny", "b": "allow"}


def test_the_mcp_option_accepts_a_url_or_a_program() -> None:
    config = Config(FileSettings(), {})
    made, names = with_servers(config, ["a=https://host/mcp/", "b=npx -y 'some server' /data"], {})
    assert names == ["a", "b"]
    assert made.settings.mcp["a"].url == "https://host/mcp"
    assert (made.settings.mcp["b"].command, made.settings.mcp["b"].args) == (
        "npx",
        ("-y", "some server", "/data"),
    )
    assert config.settings.mcp == {}


def test_allowing_an_unknown_tool_is_an_error_without_mcp_servers() -> None:
    done = actors_now("run", "--offline", "hello", "--allow-tool", "stor")
    assert (done.code, done.complaint) == (3, "--allow-tool names an unknown tool, 'stor'; --tools has roll")
    asked = ("run", "--offline", "hello", "--mcp", reference_server(), "--allow-tool", "stor")
    assert actors_now(*asked).code == 0
