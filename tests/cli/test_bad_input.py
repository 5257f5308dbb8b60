"""Errors in options, configuration and tools: one clear line, a typed error, a documented exit code."""

from pathlib import Path

import anyio
import pytest

from actors.testing import Call, OpenAIServer, Say, Turn, serve
from tests.cli.command import SHORT_WAITS, actors, actors_now

KEY = {"OPENAI_API_KEY": "sk-secret-value"}


@pytest.mark.parametrize(
    ("arguments", "env", "code", "says"),
    [
        (["-m", "opnai:gpt"], KEY, 3, "No provider 'opnai'; did you mean 'openai'?"),
        (["-m", "openai"], KEY, 3, "use openai:MODEL"),
        (["-m", "claude"], KEY, 3, "PROVIDER:MODEL"),
        ([], KEY, 3, "use -m with PROVIDER:MODEL"),
        (["-m", "openai:gpt"], {}, 4, "OPENAI_API_KEY; it is not set"),
        (
            ["-m", "openai:gpt"],
            {"OPENAI_API_KEY": "a\nb"},
            3,
            "OPENAI_API_KEY contains characters that are not allowed in a key",
        ),
        (["-m", "m", "--base-url", "ftp://host"], {}, 3, "--base-url must be an http or https URL"),
        (["-m", "m", "--base-url", "http://u:p@host"], {}, 3, "--base-url must be a URL without user"),
        (["--base-url", "http://127.0.0.1:9"], {}, 3, "add -m MODEL"),
        (
            ["-m", "m", "--base-url", "http://127.0.0.1:9", "--dialect", "mystral"],
            {},
            3,
            "No dialect 'mystral'; did you mean 'mistral'?",
        ),
        (["-m", "m", "--base-url", "http://127.0.0.1:9", "--auth", "sk-x"], {}, 3, "--auth must be the name"),
        (["-m", "m", "--base-url", "http://127.0.0.1:9", "--auth", "UNSET"], {}, 4, "UNSET; it is not set"),
        (["-m", "openai:gpt", "--tools", "none.py"], KEY, 3, "No file 'none.py'; --tools must be"),
        (
            ["-m", "openai:gpt", "--dialect", "anthropic"],
            KEY,
            3,
            "--dialect describes the server at --base-url",
        ),
        (["-m", "openai:gpt", "--auth", "OTHER_KEY"], KEY, 3, "--auth describes the server at --base-url"),
        (["-m", "m", "--base-url", "http://127.0.0.1:9", "--config", "a.toml"], {}, 3, "omit one of them"),
        (["--config", "none.toml"], {}, 3, "Cannot read none.toml: no such file"),
    ],
)
def test_an_unusable_option_is_reported_in_one_line(
    arguments: list[str], env: dict[str, str], code: int, says: str
) -> None:
    done = actors_now("run", "x", *arguments, env=env)
    assert (done.code, done.out) == (code, "")
    assert says in done.complaint
    assert "secret" not in done.err


@pytest.mark.anyio
async def test_a_command_with_an_unreachable_provider_gives_exit_code_6() -> None:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    await listener.aclose()  # the port is free again
    done = await actors(
        "run", "x", "-m", "m", "--base-url", f"http://127.0.0.1:{port}/v1", before=SHORT_WAITS
    )
    assert (done.code, done.out) == (6, "")
    assert f"127.0.0.1:{port}" in done.complaint


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ('[backends.a\nkind = "openai"', "is not valid TOML"),
        ('[backends.a]\nkind = "opnai"\nmodel = "m"', "line 2, column 1"),
        ('[backends.a]\nkind = "openai"', "lacks the key 'model'"),
        ('[backends.a]\nkind = "openai"\nmodel = "m"\nauth = "sk-secret-value"', "never"),
        ('[pools.p]\nmembers = ["nobody"]', "no backend 'nobody'"),
    ],
)
def test_an_error_in_actors_toml_names_the_position_and_never_the_value(
    toml: str, says: str, tmp_path: Path
) -> None:
    (tmp_path / "actors.toml").write_text(toml)
    done = actors_now("run", "x", "--config", str(tmp_path / "actors.toml"), "-m", "a")
    assert (done.code, done.out) == (3, "")
    assert done.complaint.startswith("actors.toml")
    assert says in done.complaint or says == "never"
    assert "secret" not in done.err


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("from actors import Tool\nt = Tool('t', 'd', b'{\"type\": 5}', print)", "'t'"),
        ("from actors import tool\n@tool\ndef f(*args: int): ...", "'f'"),
        ("from actors import tool\n@tool(name='no good')\ndef f(): ...", "'no good' is invalid"),
        ("x = 1", "defines no tool"),
        ("def (", "SyntaxError"),
        ("import nothing_of_that_name", "ModuleNotFoundError"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_tool_that_no_provider_accepts_gives_exit_code_3(source: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(source)
    done = actors_now("run", "x", "-m", "openai:gpt", "--tools", str(tmp_path / "tools.py"), env=KEY)
    assert (done.code, done.out) == (3, "")
    assert says in done.complaint


@pytest.mark.anyio
async def test_a_tool_may_return_values_that_are_not_json(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        "from actors import tool\n"
        "class Odd:\n"
        "    def __repr__(self): raise ValueError\n"
        "@tool\n"
        "def odd() -> object:\n"
        "    knot = [Odd(), float('nan'), b'x', {1: 2}]\n"
        "    knot.append(knot)\n"
        "    return knot\n"
    )
    server = OpenAIServer([Turn(Call("odd")), Turn(Say("Odd indeed."))])
    async with serve(server):
        url = ["--base-url", server.base_url, "-m", "m"]
        done = await actors("run", "x", *url, "--tools", str(tmp_path / "tools.py"))
    assert (done.code, done.out, done.err) == (0, "Odd indeed.\n", "")
    assert server.refusals == []


def test_the_traceback_is_shown_only_with_the_debug_option() -> None:
    quiet = actors_now("run", "x", "-m", "nobody:m")
    loud = actors_now("run", "x", "-m", "nobody:m", "--debug")
    assert "Traceback" not in quiet.err
    assert "Traceback" in loud.err
    assert "UnknownTarget" in loud.err
