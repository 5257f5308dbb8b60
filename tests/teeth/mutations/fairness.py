"""Mutations of the order among waiting requests, and of state shared by forked processes."""

from tests.teeth.mutations.mutation import Mutation

FORKED = "tests/runtime/test_forked_children.py::test_a_forked_child_has_its_own_threads"
WORKERS = "tests/runtime/test_forked_children.py::test_workers_forked_from_one_runtime_count_as_two_hosts"
SEED = (
    "tests/runtime/test_forked_children.py::test_runtimes_with_the_same_seed_have_different_idempotency_keys"
)
SAME_RUN = "tests/commands/test_simulation.py::test_a_seed_gives_the_same_run_in_every_process"
THREADS = "tests/scheduler/test_threads.py::"
TURNS = f"{THREADS}test_tenants_and_their_sessions_take_turns_with_the_threads"
NOT_LOST = f"{THREADS}test_no_thread_slot_is_lost_and_no_request_waits_while_a_slot_is_free"
TOO_LATE = f"{THREADS}test_a_thread_granted_to_a_withdrawn_request_goes_to_the_next_request"
DEAF = f"{THREADS}test_a_thread_is_not_granted_to_a_call_whose_loop_has_ended"
REFUSED = f"{THREADS}test_waiting_requests_fail_once_tools_of_closed_calls_block_every_thread"
FINISHED = "tests/provider/test_finishing_turns.py::"
BEGUN = f"{FINISHED}test_a_turn_that_has_begun_is_finished_before_other_turns_begin"
FAIR = "tests/core/test_fair.py::"
NO_MORE = f"{FAIR}test_a_queued_item_with_a_head_start_moves_ahead_by_exactly_that_amount"
TENANTS = f"{FAIR}test_a_head_start_does_not_change_the_order_of_tenants"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "forked: a child remembers its parent's threads",
        "actors/kernel/event_loop.py:reset_after_fork",
        "os.register_at_fork(after_in_child=reset)",
        "pass",
        (FORKED,),
    ),
    Mutation(
        "forked: a child uses its parent's watchdog",
        "actors/scheduler/watchdog.py:Watchdog.reset",
        "self._thread: threading.Thread | None = None",
        "self._thread: threading.Thread | None = getattr(self, '_thread', None)",
        (FORKED,),
    ),
    Mutation(
        "forked: two sessions with one id share their idempotency keys",
        "actors/runtime/registry.py:session_key",
        "os.urandom(8).hex()",
        "'0' * 16",
        (WORKERS, SEED),
    ),
    Mutation(
        "forked: a simulation's keys do not depend on its seed",
        "actors/testing/simulation/world.py:World.create_runtime",
        "runtime._registry.draw_key = lambda: keys.randbytes(8).hex()",
        "",
        (SAME_RUN,),
    ),
    Mutation(
        "forked: workers wait equally long before a retry",
        "actors/runtime/runtime.py:Runtime.__aenter__",
        "self._random.seed()",
        "pass",
        (WORKERS,),
    ),
    Mutation(
        "forked: hosts of one file share their name",
        "actors/journal/storage/sqlite/locks.py:Hosts.become_host",
        "self.name = host_name()",
        "self.name = 'host'",
        (f"{WORKERS}[asyncio-sqlite]",),
    ),
    Mutation(
        "forked: hosts of one database share their name",
        "actors/journal/storage/postgres/storage.py:PostgresStorage.open",
        "self._choose_names()",
        "pass",
        (f"{WORKERS}[asyncio-postgres]",),
    ),
    Mutation(
        "forked: a session without an id is not opened while another host uses its next id",
        "actors/runtime/claims.py:Claims.claim_new",
        """
if requested_id is not None:
    raise
last = 1
        """,
        "raise",
        (f"{WORKERS}[asyncio-sqlite]",),
    ),
    Mutation(
        "places: requests are served in order of arrival",
        "actors/scheduler/threads.py:Threads.request_slot",
        "queue.put(request.tenant, request.session, request)",
        "queue.put('', '', request)",
        (TURNS,),
    ),
    Mutation(
        "places: all tenants are treated as one",
        "actors/runtime/session_actors.py:SessionActors.__init__",
        "spec.tenant",
        "''",
        (TURNS,),
    ),
    Mutation(
        "places: the slot of a stopped call is lost",
        "actors/scheduler/threads.py:Threads.withdraw",
        "slot.give_back()",
        "pass",
        (TOO_LATE, NOT_LOST),
    ),
    Mutation(
        "places: a stopped call continues to wait",
        "actors/scheduler/threads.py:Threads.withdraw",
        "queue.remove(request.tenant, request.session, request)",
        "pass",
        (
            NOT_LOST,
            f"{THREADS}test_a_call_cancelled_while_it_waits_for_a_thread_does_not_block_the_next_call",
        ),
    ),
    Mutation(
        "places: a slot is given to a loop that has ended, and is lost",
        "actors/scheduler/threads.py:Threads._answer_requests",
        "self.taken -= sum(request.slot is not None for request in unreachable)",
        "pass",
        (DEAF,),
    ),
    Mutation(
        "places: a waiting caller does not learn that closed calls hold every thread",
        "actors/scheduler/threads.py:Threads._answer_waiting",
        "self.stuck >= limit",
        "False",
        (REFUSED, NOT_LOST),
    ),
    Mutation(
        "places: a returned slot stays free while calls wait",
        "actors/scheduler/threads.py:Threads._free_slot",
        "self._answer_requests()",
        "",
        (NOT_LOST,),
    ),
    Mutation(
        "finishing: a continuing request waits like any other",
        "actors/provider/rounds.py:Round._try_once",
        "command.round > 1",
        "False",
        (BEGUN,),
    ),
    Mutation(
        "finishing: a lead has no effect",
        "actors/core/policy/fair.py:_Flows._push_flow",
        "tag - lead",
        "tag",
        (BEGUN, NO_MORE),
    ),
    Mutation(
        "finishing: a request with a lead is not charged",
        "actors/core/policy/fair.py:_Flows.charge_first",
        "rank, _, name, tag = heapq.heappop(self._heap)",
        "tag, _, name, _ = heapq.heappop(self._heap); rank = tag",
        (NO_MORE,),
    ),
    Mutation(
        "finishing: a tenant overtakes others with its turns",
        "actors/core/policy/fair.py:FairQueue.put",
        "self._tenants.add_flow(tenant)",
        "self._tenants.add_flow(tenant, self._lead(item))",
        (TENANTS,),
    ),
)
