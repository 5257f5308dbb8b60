"""Mistakes in who is served next where many wait, and in what forked processes share."""

from tests.teeth.mutations.mutation import Mutation

FORKED = "tests/test_forked_children.py::test_a_forked_child_has_threads_of_its_own"
WORKERS = "tests/test_forked_children.py::test_workers_forked_after_their_runtime_was_made_are_two_hosts"
SEED = "tests/test_forked_children.py::test_runtimes_of_one_seed_have_idempotency_keys_of_their_own"
SAME_RUN = "tests/test_simulation.py::test_the_same_seed_is_the_same_run_in_every_process"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "forked: a child remembers its parent's threads",
        "actors/kernel/forking.py:reset_after_fork",
        "os.register_at_fork(after_in_child=reset)",
        "pass",
        (FORKED,),
    ),
    Mutation(
        "forked: a child takes its parent's watchdog for its own",
        "actors/execution/watchdog.py:Watchdog.reset",
        "self._thread: threading.Thread | None = None",
        "self._thread: threading.Thread | None = getattr(self, '_thread', None)",
        (FORKED,),
    ),
    Mutation(
        "forked: two sessions of one id share their idempotency keys",
        "actors/hosting/sessions.py:session_key",
        "secrets.token_hex(8)",
        "'0' * 16",
        (WORKERS, SEED),
    ),
    Mutation(
        "forked: the keys of a simulation do not come from its seed",
        "actors/testing/simulation/world.py:World.runtime",
        "runtime._sessions.draw_key = lambda: keys.randbytes(8).hex()",
        "",
        (SAME_RUN,),
    ),
    Mutation(
        "forked: workers wait equally long before they try again",
        "actors/runtime.py:Runtime.__aenter__",
        "self._random.seed()",
        "pass",
        (WORKERS,),
    ),
    Mutation(
        "forked: hosts of one file share their name",
        "actors/storage/sqlite/hosts.py:Hosts.begin",
        "self.name = host_name()",
        "self.name = 'host'",
        (f"{WORKERS}[asyncio-sqlite]",),
    ),
    Mutation(
        "forked: hosts of one database share their name",
        "actors/storage/postgres/storage.py:PostgresStorage.open",
        "self._take_names()",
        "pass",
        (f"{WORKERS}[asyncio-postgres]",),
    ),
    Mutation(
        "forked: a session without an id is not opened while another host has the id that it would get",
        "actors/hosting/sessions.py:Sessions._claimed",
        "given is not None or not isinstance(error, SessionElsewhere)",
        "True",
        (f"{WORKERS}[asyncio-sqlite]",),
    ),
)
