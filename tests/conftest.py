"""What every test shares: each async test runs on asyncio and on trio, and no generated one is judged by the clock.

Many tests run on every core, a named file in this one process, which starts at once. `-n` says otherwise.
Every fragment that a test has judged is read in both ways, which must come to the same.
"""

import gc
import itertools
import logging
import os
import shutil
import signal
import sys
import tempfile
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings

from actors.kernel.system import GRACE
from actors.provider.attempts import Retries
from tests.journal.postgres import postgres as postgres  # a fixture, for every test
from tests.readings import compare_readings
from tests.sampling import sample
from tests.short_waits import short_wait

for _profile, _examples in (
    ("sixteenth", 50),
    ("thorough", 100),
    ("quick", 20),
):  # see `tests.commands.at_scale.share`
    settings.register_profile(
        _profile, max_examples=_examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("sixteenth")
compare_readings()
MEMORY = "/dev/shm"
if "TMPDIR" not in os.environ and os.path.isdir(MEMORY) and shutil.disk_usage(MEMORY).free > 2 << 30:
    # What tests write is on no disk, where there is room: no promise of theirs is about a machine that loses its power,
    # but for those that say themselves which write had come to the disk.
    tempfile.tempdir = os.environ["TMPDIR"] = MEMORY
_DATA = TemporaryDirectory(
    prefix="actors-data-"
)  # no test writes where the user's own conversations are kept
os.environ["XDG_DATA_HOME"] = _DATA.name
os.environ.pop("ACTORS_JOURNAL", None)
gc.disable()  # until all is collected: a million objects that stay would be looked through again and again


LONG = (
    "adapters/test_decode_cuts.py",
    "adapters/test_every_dialect_cut.py",
    "adapters/test_memory.py",
    "cli/test_bad_input.py",
    "cli/test_chat_terminal.py",
    "cli/test_demo.py",
    "cli/test_modes.py",
    "cli/test_round_trips.py",
    "cli/test_run.py",
    "cli/test_simulate.py",
    "cli/test_simulate_sdk_loops.py",
    "core/test_check_fold.py",
    "core/test_check_readings.py",
    "core/test_codec.py",
    "core/test_conservation.py",
    "core/test_families.py",
    "core/test_lane.py",
    "live/test_stand_ins.py",
    "plants/test_plants.py",
    "adapters/test_all_dialects.py",
    "commands/test_bad_tools.py",
    "benchmarks/test_measures.py",
    "benchmarks/test_peers.py",
    "session/test_cancel.py",
    "commands/test_cut_sessions.py",
    "journal/test_damage.py",
    "journeys/test_web_servers.py",
    "project/test_docs.py",
    "commands/test_failover_matrix.py",
    "tools/test_mcp_import.py",
    "runtime/test_durability.py",
    "session/test_faulty_streams.py",
    "journal/test_fsck.py",
    "commands/test_generated_histories.py",
    "commands/test_killing.py",
    "tools/test_mcp.py",
    "adapters/test_outside_frames.py",
    "adapters/test_outside_gemini.py",
    "adapters/test_outside_judges.py",
    "adapters/test_outside_judges_of_vendors.py",
    "commands/test_power_loss.py",
    "journal/test_postgres_sessions.py",
    "runtime/test_rebuild.py",
    "runtime/test_recovery_of_sessions.py",
    "commands/test_shutdowns.py",
    "commands/test_simulation.py",
    "commands/test_soak.py",
    "session/test_switching.py",
    "runtime/test_takeover.py",
    "commands/test_walks.py",
    "strict/test_anthropic_server_tools.py",
    "strict/test_bedrock.py",
    "strict/test_family_clients.py",
    "strict/test_gemini_client.py",
    "strict/test_mistral_judge.py",
    "strict/test_responses.py",
    "strict/test_responses_resources.py",
    "strict/test_sdk_clients.py",
    "strict/test_sdk_schemas.py",
    "testing/test_sdk_loops.py",
    "strict/test_sdk_params_anthropic.py",
    "strict/test_sdk_params_chat.py",
    "strict/test_sdk_params_google.py",
    "strict/test_sdk_params_openai_responses.py",
    "transport/test_cancelling.py",
    "transport/test_crowd.py",
)
"""Files that `-m "not long"` leaves out: cases by the thousand, processes of their own, every moment in turn,
and vendors' code, which takes seconds to import."""
QUICK = "not long"
_LONG = {Path(__file__).parent / name for name in LONG}


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Name of the backend the test runs on."""
    backend: str = request.param
    return backend


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a hundredth of the time pass before a retry. Whether there is one stays as it is."""
    monkeypatch.setattr(Retries, "wait", short_wait)


@pytest.fixture
def short_graces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a tool that was told to end a fifth of its time. For one that goes on past either."""
    for place in ("scheduler.calls", "scheduler.scheduler_actor", "kernel.system"):
        monkeypatch.setattr(f"actors.{place}.GRACE", GRACE / 5)


_TESTS = itertools.count(1)
FREEZE = 250
"""Tests after which everything that is still referenced is kept out of the collector's rounds, as after collection."""


def pytest_runtest_setup() -> None:
    """Give each test Python's own handler of SIGINT, readable logs and a small heap, whatever ran before it.

    Caches and reports of thousands of tests stay referenced, and `gc.collect` in a test would go through all of them.
    """
    if next(_TESTS) % FREEZE == 0:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ResourceWarning
            )  # tests that expect some have left them to be collected
            gc.collect()
        gc.freeze()
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    logging.disable(logging.NOTSET)
    for name in ("actors", "actors.tools"):  # a command line that ran in this process may have changed these
        logger = logging.getLogger(name)
        logger.propagate, logger.disabled = True, False
        logger.setLevel(logging.NOTSET)


def pytest_configure(config: pytest.Config) -> None:
    """Take fewer generated cases in a quick run, if nothing else is asked for.

    A run of all tests writes bytecode, whatever the environment says. Otherwise each of hundreds of processes would
    compile what it imports, and each worker every test file.
    """
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        sys.dont_write_bytecode = False
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if config.option.markexpr == QUICK and not config.option.hypothesis_profile:
        settings.load_profile("quick")


def pytest_collection(session: pytest.Session) -> None:
    """Have each of several processes begin with other files: what one has compiled the others read."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if not worker or session.config.args_source is pytest.Config.ArgsSource.ARGS:
        return
    root, count = Path(__file__).parent, int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    files = sorted(
        path for path in root.rglob("test_*.py") if not pytest_ignore_collect(path, session.config)
    )
    for path in files[int(worker.removeprefix("gw")) :: count]:
        with suppress(Exception):  # it is told when it is collected
            import_module(".".join(("tests", *path.relative_to(root).with_suffix("").parts)))


def pytest_collection_finish() -> None:
    """Keep what was collected out of the garbage collector's rounds: it is a million objects, and a test makes few.

    Also after a measurement, which lets go of all that is frozen when it is over.
    """
    gc.freeze()
    pytest.MonkeyPatch().setattr(gc, "unfreeze", lambda: None)
    gc.set_threshold(20_000, 20, 20)  # what few tests keep is looked through less often
    gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import the long files in a quick run: a third of them would be the vendors' SDKs."""
    return (config.option.markexpr == QUICK and collection_path in _LONG) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run a sample of large matrices, and mark the tests of long files."""
    if dropped := sample(items, config.args):
        config.hook.pytest_deselected(items=dropped)
    for item in items:
        if item.path in _LONG:
            item.add_marker("long")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Return how many processes share the tests where the command line does not say: three for two cores.

    A third of the time the tests of one process wait for something.
    """
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    return (
        0 if named and all(".py" in argument for argument in config.args) else 3 * (os.cpu_count() or 2) // 2
    )
