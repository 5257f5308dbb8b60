"""Fixtures and settings of all tests: async tests run on asyncio and trio, generated tests have no deadline.

A run of the whole suite uses several processes. A run of named files uses this process alone, which starts
faster; `-n` overrides both. Each fragment that a test passes to the judge is also read by its strict path,
and both results are compared.
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
from tests.folding import fold_cases
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
    # Tests write to memory if there is enough: none depends on a machine that survives a power failure, and
    # the tests of power loss simulate the disk's writes themselves.
    tempfile.tempdir = os.environ["TMPDIR"] = MEMORY
_DATA = TemporaryDirectory(
    prefix="actors-data-"
)  # keeps the user's own conversations out of reach of the tests
os.environ["XDG_DATA_HOME"] = _DATA.name
os.environ.pop("ACTORS_JOURNAL", None)
# Each new client of an SDK loads the trusted certificates, which takes 30 ms for those of the system.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).with_name("authority.pem"))
gc.disable()  # during collection: the collector would scan a million objects that stay alive


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
    "deploy/test_kubernetes.py",
    "deploy/test_systemd.py",
    "journal/test_damage.py",
    "journeys/test_web_servers.py",
    "project/test_docs.py",
    "commands/test_failover_matrix.py",
    "tools/test_mcp_import.py",
    "commands/test_hosts_matrix.py",
    "hosts/test_workers.py",
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
"""Files that `-m "not long"` excludes: thousands of cases, child processes, faults at every moment, vendor SDKs."""
ALTERNATING = (
    "adapters",
    "cli",
    "commands",
    "config",
    "hosts",
    "journal",
    "live",
    "provider",
    "renderer",
    "runtime",
    "scenarios",
    "session",
    "strict",
    "subagents",
    "telemetry",
    "testing",
    "tools",
)
"""Folders whose cases alternate between the event loops in a run of the whole suite.

This code uses the loop through the kernel, the transport and the scheduler, whose tests always run on both loops. A run
of named tests and the profile `thorough` also run the tests of these folders on both.
"""
QUICK = "not long"
_LONG = {Path(__file__).parent / name for name in LONG}


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Return the name of the event loop that the test runs on."""
    backend: str = request.param
    return backend


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the delay before a retry to a hundredth. The decision whether to retry stays unchanged."""
    monkeypatch.setattr(Retries, "wait_seconds", short_wait)


@pytest.fixture
def short_graces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the grace period of stopped tools to a fifth, for tests whose tool outlasts any grace period."""
    for place in ("scheduler.calls", "scheduler.scheduler_actor", "kernel.system"):
        monkeypatch.setattr(f"actors.{place}.GRACE", GRACE / 5)


_TESTS = itertools.count(1)
FREEZE = 250
"""Number of tests after which the surviving objects are excluded from garbage collection, as after collection."""


def pytest_runtest_setup() -> None:
    """Reset process-wide state before each test: SIGINT handler, loggers, size of the collected heap.

    Caches and reports of thousands of tests stay referenced, and `gc.collect` in a test would scan all of
    them.
    """
    if next(_TESTS) % FREEZE == 0:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ResourceWarning
            )  # objects left behind by tests that expect such warnings
            gc.collect()
        gc.freeze()
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    logging.disable(logging.NOTSET)
    for name in ("actors", "actors.tools"):  # a command line that ran in this process may have changed them
        logger = logging.getLogger(name)
        logger.propagate, logger.disabled = True, False
        logger.setLevel(logging.NOTSET)


def pytest_configure(config: pytest.Config) -> None:
    """Generate fewer examples in a quick run, unless a profile is given.

    A run of the whole suite writes bytecode, even if the environment forbids it. Otherwise hundreds of child
    processes would each compile their imports, and each worker every test file.
    """
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        sys.dont_write_bytecode = False
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if config.option.markexpr == QUICK and not config.option.hypothesis_profile:
        settings.load_profile("quick")


def pytest_collection(session: pytest.Session) -> None:
    """Let each worker import a different share of the files first, so that the others find them compiled."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if not worker or session.config.args_source is pytest.Config.ArgsSource.ARGS:
        return
    root, count = Path(__file__).parent, int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    files = sorted(
        path for path in root.rglob("test_*.py") if not pytest_ignore_collect(path, session.config)
    )
    for path in files[int(worker.removeprefix("gw")) :: count]:
        with suppress(Exception):  # collection reports the error
            import_module(".".join(("tests", *path.relative_to(root).with_suffix("").parts)))


def pytest_collection_finish() -> None:
    """Exclude collected objects from garbage collection: they are a million, and a test creates few.

    Benchmarks unfreeze all objects when they end; disable that.
    """
    gc.freeze()
    pytest.MonkeyPatch().setattr(gc, "unfreeze", lambda: None)
    gc.set_threshold(20_000, 20, 20)  # scan the few objects that tests keep alive less often
    gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip even the import of long files in a quick run: a third of them would import vendor SDKs."""
    return (config.option.markexpr == QUICK and collection_path in _LONG) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the cases outside the sample of large matrices, and mark the tests of long files.

    A run of the whole suite uses one event loop for each test in the folders of `ALTERNATING`, and runs the cases
    of a plain function as one test.
    """
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        for item in items:
            if item.path.relative_to(Path(__file__).parent).parts[0] in ALTERNATING:
                item.add_marker("alternating")
    if dropped := sample(items, config.args):
        config.hook.pytest_deselected(items=dropped)
    for item in items:
        if item.path in _LONG:
            item.add_marker("long")
    if config.args_source is not pytest.Config.ArgsSource.ARGS and not config.option.keyword:
        items[:] = fold_cases(items)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Return the default number of worker processes: five for two cores, or none for named files.

    The tests of one process spend two thirds of the time waiting for processes, servers and leases.
    """
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    return (
        0 if named and all(".py" in argument for argument in config.args) else 5 * (os.cpu_count() or 2) // 2
    )
