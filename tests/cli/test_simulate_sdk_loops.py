"""The vendors' SDKs as clients of `actors simulate`, over HTTP and from another process."""

import json
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from tests.cli.test_simulate import run_simulate
from tests.testing.sdk_loops import LIMITED, LOOPS, TURNS

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning"
    ),  # Google's SDK closes connections when it is garbage-collected
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.mark.alternating
@pytest.mark.parametrize("dialect", LOOPS)
async def test_each_vendor_sdk_works_with_the_simulate_command(
    dialect: str, tmp_path: Path, anyio_backend_name: str
) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps(TURNS))
    options = ("--dialect", dialect, "--mode", "strict", "--script", str(script), "--fault", f"{LIMITED}:429")
    with anyio.fail_after(120):
        async with run_simulate(*options, "--requests", "10", "--backend", anyio_backend_name) as running:
            await anyio.to_thread.run_sync(LOOPS[dialect], running.told["base_url"])
            code, lines = await running.wait_for_end()
    assert code == 1  # one request was refused: the broken transcript of each loop
    assert [" 200 accepted" in line for line in lines] == [True] * 8 + [False, False]
    assert ": " in lines[8].partition(" 400 ")[2]
    assert lines[9].endswith("429 fault: status")
