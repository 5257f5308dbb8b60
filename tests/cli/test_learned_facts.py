"""`actors doctor` and `actors replay` read refused parameters from the journal."""

from pathlib import Path

import anyio.to_thread
import pytest

from actors.journal.storage.sqlite import SqliteStorage
from actors.testing import OpenAIServer, Say, Status, Turn
from tests.cli.command import actors_now
from tests.provider.test_refused_parameters import MODELS, refusing
from tests.runtime_support import runtime_with

UNSUPPORTED = Status(400, message="Unsupported parameter: 'temperature'.", param="temperature")
REJECTED = Status(400, message="Invalid value: 'top_p' must be 1.", param="top_p")


@pytest.mark.anyio
async def test_the_doctor_and_replay_commands_name_omitted_parameters(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    server = OpenAIServer([Turn(Say("Yes."))])
    refusals = [refusing("temperature", UNSUPPORTED), refusing("top_p", REJECTED)]
    server.faults = lambda number, request: refusals[0](number, request) or refusals[1](number, request)
    async with runtime_with(a=server, models=MODELS, storage=SqliteStorage(path)) as runtime:
        session = await runtime.open("a", id="trip")
        assert (await session.ask("Hello.", temperature=0.2, top_p=0.5)).status == "complete"
    doctor = await anyio.to_thread.run_sync(lambda: actors_now("doctor", "--journal", str(path)))
    assert doctor.code == 0
    lines = [line.removeprefix("--    ") for line in doctor.out.splitlines()]
    at = lines.index("a:house-model refused temperature; to omit them, add to actors.toml:")
    assert [line.strip() for line in lines[at + 1 : at + 3]] == [
        '[models."a:house-model"]',
        'sampling = "never"',
    ]
    assert "top_p" not in doctor.out
    replay = await anyio.to_thread.run_sync(
        lambda: actors_now("replay", "trip", "--to", "mistral", "--journal", str(path))
    )
    assert replay.out.splitlines()[-1].endswith(
        "sent without temperature, top_p, which the provider had refused"
    )


def test_the_doctor_command_creates_no_journal(tmp_path: Path) -> None:
    config = tmp_path / "actors.toml"
    config.write_text(f'[journal]\npath = "{tmp_path / "none.db"}"\n')
    actors_now("doctor", "--config", str(config))
    assert not (tmp_path / "none.db").exists()
