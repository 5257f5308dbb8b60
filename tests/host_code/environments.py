"""Environments that are mappings other than dict, such as a vault that can be down."""

from collections.abc import Iterator, Mapping

import anyio
import pytest

from actors.config import Config, FileSettings, PoolSettings
from actors.errors import ConfigError
from actors.runtime.runtime import Runtime
from actors.testing import Say, Turn, serve
from tests.host_code.rows import Bomb, row
from tests.runtime_support import backend_at, openai, restarted_actors


class Vault(Mapping[str, str]):
    """A mapping that raises on every access while it is down."""

    def __init__(self, known: Mapping[str, str], bomb: Bomb) -> None:
        self._known, self._bomb = known, bomb
        self.is_down = False

    def _mapping(self) -> Mapping[str, str]:
        return self._bomb() if self.is_down else self._known

    def __getitem__(self, name: str) -> str:
        return self._mapping()[name]

    def get(self, name: str, default: object = None) -> object:  # type: ignore[override]  # the signature of a real vault
        return self._mapping().get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapping())

    def __len__(self) -> int:
        return len(self._mapping())


@row("Runtime.environ", "run.environ")
async def asks_fail_while_a_vault_is_down_and_not_when_it_is_back(bomb: Bomb) -> None:
    server = openai(*[Turn(Say("Well.")) for _ in range(3)])
    with anyio.fail_after(60):
        async with serve(server):
            vault = Vault({"OPENAI_BASE_URL": server.base_url}, bomb)
            async with Runtime(environ=vault, seed=1) as runtime:
                session = await runtime.open("openai:gpt")
                assert (await session.ask("Hello.")).status == "complete"
                vault.is_down = True
                for _ in range(5):
                    result = await session.ask("And now?", check=False)
                    assert result.status == "failed"
                    assert f"environ= raised {type(bomb.error()).__name__}" in result.error
                with pytest.raises(ConfigError, match="environ= raised"):
                    await runtime.open("openai:gpt")
                with pytest.raises(ConfigError, match="environ= raised"):
                    await session.switch("openai:gpt-5")
                vault.is_down = False
                assert (await session.ask("And now?")).status == "complete"
                assert (await (await runtime.open("openai:gpt")).ask("And you?")).status == "complete"
                assert restarted_actors(runtime) == []


@row("Config.environ")
async def asks_of_a_pool_fail_while_a_vault_is_down_and_not_when_it_is_back(bomb: Bomb) -> None:
    server = openai(*[Turn(Say("Well.")) for _ in range(2)])
    with anyio.fail_after(60):
        async with serve(server):
            vault = Vault({"KEY_A": "one", "KEY_B": "two"}, bomb)
            backends = {name: backend_at(server, auth=f"KEY_{name.upper()}") for name in ("a", "b")}
            pool = PoolSettings(members=("a", "b"), policy="round_robin")
            async with Runtime(
                Config(FileSettings(backends=backends, pools={"main": pool}), vault), seed=1
            ) as runtime:
                session = await runtime.open("main")
                assert (await session.ask("Hello.")).status == "complete"
                vault.is_down = True
                for _ in range(5):
                    result = await session.ask("And now?", check=False)
                    assert (result.status, len(result.attempts)) == ("failed", 2)
                vault.is_down = False
                assert (await session.ask("And now?")).status == "complete"
                assert restarted_actors(runtime) == []
