"""One writer per session, however many try to open it: a sample of `python -m tests.commands.fencing`."""

from pathlib import Path

import pytest

from tests.commands.fencing import open_concurrently, race


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-6")
async def test_only_one_of_many_concurrent_open_calls_gets_the_session(tmp_path: Path) -> None:
    await open_concurrently(tmp_path, 64)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["trio"])
@pytest.mark.requirement("PROMISE-6")
async def test_only_one_of_two_competing_processes_gets_the_session(tmp_path: Path) -> None:
    await race(tmp_path, 2, "trio")
