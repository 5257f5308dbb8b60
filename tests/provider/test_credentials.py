"""Credentials from a token command: tokens are used until they expire or are revoked."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from actors import Runtime
from actors.core.data.persistent import Segments
from actors.errors import CredentialFailed
from actors.kernel.event_loop import Scope
from actors.provider.attempts import SilenceTimeout
from actors.provider.configured_credentials import Tokens
from actors.provider.credentials import Keys, OutgoingRequest
from actors.provider.rounds import Round
from actors.testing import OpenAIServer, Status, serve
from actors.transport import Response

pytestmark = pytest.mark.anyio

NOTHING = OutgoingRequest("http://127.0.0.1:1", Segments())
COUNTS = """
import pathlib, sys
runs = pathlib.Path(sys.argv[1])
number = int(runs.read_text()) + 1 if runs.exists() else 1
runs.write_text(str(number))
print(sys.argv[2].replace("#", str(number)))
"""


def command(directory: Path, printed: str) -> list[str]:
    """Return a command that prints `printed`, with each `#` replaced by the number of the run."""
    return [sys.executable, "-c", COUNTS, str(directory / "runs"), printed]


class Clock:
    """A Unix clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


async def authorization(tokens: Tokens) -> str:
    ((name, value),) = await tokens.headers(NOTHING)
    assert name == "authorization"
    return value


async def test_a_token_is_used_until_shortly_before_it_expires(tmp_path: Path) -> None:
    clock = Clock()
    tokens = Tokens(command(tmp_path, "t-#"), 600.0, clock)
    assert [await authorization(tokens), await authorization(tokens)] == ["Bearer t-1"] * 2
    clock.now += 539.0
    assert await authorization(tokens) == "Bearer t-1"
    clock.now += 2.0
    assert await authorization(tokens) == "Bearer t-2"


@pytest.mark.parametrize(
    "printed",
    [
        '{"access_token": "t-#", "expires_in": 100}',
        '{"token": "t-#", "expires_at": 1000100}',
        '{"token": "t-#", "expiry": "1970-01-12T13:48:20+00:00"}',
    ],
)
async def test_a_token_command_may_print_when_its_token_expires(tmp_path: Path, printed: str) -> None:
    clock = Clock()
    tokens = Tokens(command(tmp_path, printed), 600.0, clock, Clock())
    assert await authorization(tokens) == "Bearer t-1"
    clock.now += 49.0
    assert await authorization(tokens) == "Bearer t-1"
    clock.now += 2.0
    assert await authorization(tokens) == "Bearer t-2"


async def test_concurrent_requests_share_one_run_of_the_token_command(tmp_path: Path) -> None:
    tokens = Tokens(command(tmp_path, "t-#"), 600.0)
    got: list[str] = []

    async def one() -> None:
        got.append(await authorization(tokens))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(one)
    assert got == ["Bearer t-1"] * 5


async def test_a_refused_token_is_renewed_and_a_refused_key_is_not(tmp_path: Path) -> None:
    tokens = Tokens(command(tmp_path, "t-#"), 600.0)
    assert await authorization(tokens) == "Bearer t-1"
    first = (("authorization", "Bearer t-1"),)
    assert tokens.record_rejection(first)
    assert await authorization(tokens) == "Bearer t-2"
    assert tokens.record_rejection(first)  # a late refusal of the old token keeps the new one
    assert await authorization(tokens) == "Bearer t-2"
    assert Keys().record_rejection(first) is False


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ["no-such-program-here"],
            "Token command 'no-such-program-here' cannot be run: No such file or directory",
        ),
        ([sys.executable, "-c", "print('s3cret'); raise SystemExit(3)"], "failed with exit status 3"),
        ([sys.executable, "-c", "print('s3cret and more')"], "printed no token"),
        ([sys.executable, "-c", "print('{s3cret')"], "neither a token nor JSON"),
        ([sys.executable, "-c", "pass"], "printed no token"),
        ([sys.executable, "-c", "print('[' * 100000)"], "printed more than 65536 bytes"),
        ([sys.executable, "-c", "print('{\"a\":' + '[' * 5000)"], "neither a token nor JSON"),
        ([sys.executable, "-c", "while True: print('s3cret')"], "printed more than 65536 bytes"),
        (["a\0b"], "cannot be run"),
    ],
)
async def test_a_failing_token_command_is_reported_without_its_output(
    argv: Sequence[str], message: str
) -> None:
    with pytest.raises(CredentialFailed) as failed:
        await Tokens(argv, 600.0).headers(NOTHING)
    assert message in str(failed.value)
    assert "s3cret" not in str(failed.value)


TOML = """
[backends.b]
kind = "openai"
model = "m"
base_url = "{url}"
auth = {{ command = {command}, lifetime = 600 }}
"""


async def test_a_session_continues_after_its_token_is_revoked(tmp_path: Path) -> None:
    server = OpenAIServer(api_key="t-2")  # the first token has been revoked
    async with serve(server):
        path = tmp_path / "actors.toml"
        path.write_text(TOML.format(url=server.base_url, command=json.dumps(command(tmp_path, "t-#"))))
        async with Runtime(path, environ={}) as runtime:
            session = await runtime.open("b")
            with anyio.fail_after(60):
                assert (await session.ask("Hello.")).text == "ok"
                assert (await session.ask("Again.")).text == "ok"
    assert [exchange.status for exchange in server.requests] == [401, 200, 200]


async def test_the_repr_of_a_round_contains_no_credential_or_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = list[str]()
    read = Round._read_answer

    async def show(self: Round, response: Response, scope: Scope, silence: SilenceTimeout) -> None:
        shown.append(repr(self))
        await read(self, response, scope, silence)

    monkeypatch.setattr(Round, "_read_answer", show)
    server = OpenAIServer(api_key="t-1")
    async with serve(server):
        path = tmp_path / "actors.toml"
        path.write_text(TOML.format(url=server.base_url, command=json.dumps(command(tmp_path, "t-#"))))
        async with Runtime(path, environ={}) as runtime:
            session = await runtime.open("b", id="one")
            with anyio.fail_after(60):
                assert (await session.ask("Hello.")).text == "ok"
    assert shown == ["<Round one/1/1>"]


async def test_a_token_that_is_refused_twice_is_not_renewed_again(tmp_path: Path) -> None:
    server = OpenAIServer(api_key="another")
    async with serve(server):
        path = tmp_path / "actors.toml"
        path.write_text(TOML.format(url=server.base_url, command=json.dumps(command(tmp_path, "t-#"))))
        async with Runtime(path, environ={}) as runtime:
            session = await runtime.open("b")
            with anyio.fail_after(60):
                assert (await session.ask("Hello.", check=False)).status == "failed"
    assert [exchange.status for exchange in server.requests] == [401, 401]


async def test_all_sessions_that_share_a_revoked_token_continue(tmp_path: Path) -> None:
    server = OpenAIServer(api_key="t-2")
    async with serve(server):
        path = tmp_path / "actors.toml"
        path.write_text(TOML.format(url=server.base_url, command=json.dumps(command(tmp_path, "t-#"))))
        async with Runtime(path, environ={}) as runtime:
            ends: list[str] = []

            async def one() -> None:
                ends.append((await (await runtime.open("b")).ask("Hello.")).status)

            with anyio.fail_after(60):
                async with anyio.create_task_group() as tasks:
                    for _ in range(10):
                        tasks.start_soon(one)
    assert ends == ["complete"] * 10
    assert (tmp_path / "runs").read_text() == "2"


async def test_requests_that_wait_for_a_failing_token_command_share_its_error(tmp_path: Path) -> None:
    code = f"import pathlib; open({str(tmp_path / 'runs')!r}, 'a').write('x'); raise SystemExit(3)"
    tokens = Tokens([sys.executable, "-c", code], 600.0)
    told: list[str] = []

    async def one() -> None:
        with pytest.raises(CredentialFailed) as failed:
            await tokens.headers(NOTHING)
        told.append(str(failed.value))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(one)
    assert len(told) == 5
    assert (tmp_path / "runs").read_text() == "x"


async def test_a_token_that_a_server_echoes_is_removed_from_the_result(tmp_path: Path) -> None:
    refusal = Status(401, message="Unknown credential 'opaque-9f2c7d-1' for this gateway")
    server = OpenAIServer(faults={0: refusal, 1: refusal})
    async with serve(server):
        path = tmp_path / "actors.toml"
        text = TOML.format(url=server.base_url, command=json.dumps(command(tmp_path, "opaque-9f2c7d-1")))
        path.write_text(text)
        async with Runtime(path, environ={}) as runtime:
            session = await runtime.open("b")
            with anyio.fail_after(60):
                ended = await session.ask("Hello.", check=False)
    assert ended.status == "failed"
    assert "[removed]" in ended.error
    assert "9f2c7d" not in repr(ended)
