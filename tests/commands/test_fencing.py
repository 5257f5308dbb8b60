"""One writer of each session, whoever else opens it meanwhile: a sample of `python -m tests.commands.fencing`."""

from pathlib import Path

import pytest

from tests.commands.fencing import opened_at_once, raced


@pytest.mark.anyio
@pytest.mark.requirement("PROMISE-6")
async def test_of_many_who_open_one_session_at_once_in_two_runtimes_one_has_it(tmp_path: Path) -> None:
    await opened_at_once(tmp_path, 64)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["trio"])
@pytest.mark.requirement("PROMISE-6")
async def test_of_two_processes_that_open_one_session_at_once_one_has_it(tmp_path: Path) -> None:
    await raced(tmp_path, 2, "trio")
