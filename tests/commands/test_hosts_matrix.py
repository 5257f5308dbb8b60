"""A sample of `python -m tests.commands.hosts_matrix`: a killed host is started again under load."""

from pathlib import Path

import anyio
import pytest

from tests.commands.hosts_matrix import run_case


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_every_ask_is_answered_once_while_a_killed_host_is_replaced(tmp_path: Path) -> None:
    with anyio.fail_after(100):
        line = await run_case("replace", str(tmp_path / "sessions.db"), count=2, sessions=4)
    assert "each once, no error" in line
