"""Mutations of ownership: claims, logs, storages, and shared sessions."""

from tests.teeth.mutations.mutation import Mutation

TESTS = "tests/runtime/test_ownership.py"
GET, ACTIVATION = "tests/runtime/test_get_or_create.py", "actors/runtime/lifecycle.py"
CLAIMS, SESSIONS = "actors/runtime/claims.py", "actors/runtime/sessions.py"
OPEN = (f"{TESTS}::test_open_cancelled_at_any_await_leaves_no_session_claimed",)
FORK = (f"{TESTS}::test_cancelling_a_fork_at_any_await_leaves_no_claim_and_no_orphaned_log",)
LATE = (f"{TESTS}::test_a_storage_is_closed_even_if_its_waiting_callers_are_cancelled",)

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "ownership: a claim of a departed caller is kept",
        f"{CLAIMS}:_PendingClaim.set_claim",
        "self._release()",
        "pass",
        OPEN,
    ),
    Mutation(
        "ownership: a claim with a lost answer is kept",
        f"{CLAIMS}:_PendingClaim.abandon",
        "self._release()",
        "pass",
        OPEN,
    ),
    Mutation(
        "ownership: the log of a cancelled open stays",
        "actors/runtime/claims.py:Claims.roll_back",
        "await self._host.journal.ask(DeleteLog(name))",
        "pass",
        OPEN,
    ),
    Mutation(
        "ownership: a cancelled fork stays under an unknown_session_error id",
        "actors/runtime/claims.py:claiming",
        'host.start(claims.roll_back, "claims")',
        "claims.release()",
        FORK,
    ),
    Mutation(
        "ownership: a storage opened after its runtime was left stays open",
        "actors/runtime/runtime.py:StorageOwner._open",
        "not self._is_closed",
        "True",
        LATE,
    ),
    Mutation(
        "ownership: a storage with a cancelled close stays open",
        "actors/runtime/runtime.py:StorageOwner.close",
        "not self._is_closed",
        "False",
        LATE,
    ),
    Mutation(
        "ownership: a connection to a file that is not a journal stays open",
        "actors/journal/storage/sqlite/connection.py:Connections._connect",
        "connection.close()",
        "pass",
        (f"{TESTS}::test_a_runtime_may_be_entered_again_after_its_journal_failed_to_open",),
    ),
    Mutation(
        "ownership: a runtime with a cancelled entry leaves its journal open",
        "actors/runtime/runtime.py:Runtime.__aenter__",
        "await self._system.__aexit__(type(error), error, error.__traceback__)",
        "pass",
        (f"{TESTS}::test_cancelling_a_runtime_at_any_await_leaves_no_resource_open",),
    ),
    Mutation(
        "ownership: a runtime that could not be entered raises that it is shutting down",
        "actors/runtime/runtime.py:Runtime.__aenter__",
        "self._was_entered = self._has_ended = False",
        "self._was_entered = False",
        (f"{TESTS}::test_a_runtime_that_could_not_be_entered_is_not_shutting_down",),
    ),
    Mutation(
        "ownership: a runtime that its event loop has ended raises that it was never entered",
        "actors/runtime/runtime.py:Runtime._release_resources",
        "self._has_ended = True",
        "self._has_ended = self._was_left",
        (f"{TESTS}::test_a_runtime_has_exited_once_its_event_loop_has_cancelled_all_tasks",),
    ),
    Mutation(
        "get or create: a caller during an open is refused",
        "actors/runtime/registry.py:SessionRegistry.find_settled",
        "(reservation := self._reserved.get(name)) is not None",
        "(reservation := self._reserved.get(name)) is not reservation",
        (f"{GET}::test_concurrent_callers_receive_the_same_session",),
    ),
    Mutation(
        "get or create: a closing session is shared",
        "actors/runtime/registry.py:SessionRegistry.find_settled",
        "(closing := session._lifecycle.closing) is None",
        "(closing := session._lifecycle.closing) is closing",
        (f"{GET}::test_a_caller_that_arrives_during_a_close_receives_a_new_open_session",),
    ),
    Mutation(
        "get or create: a session that is being released is shared",
        "actors/runtime/opening.py:SessionOpener._find_open",
        "not session._lifecycle.is_departing or is_called_from_tool(self._host.system, name)",
        "True",
        (f"{GET}::test_a_caller_that_arrives_during_a_release_receives_a_session_that_stays_usable",),
    ),
    Mutation(
        "get or create: a tool waits for the release of its own session",
        "actors/runtime/opening.py:SessionOpener._find_open",
        "not session._lifecycle.is_departing or is_called_from_tool(self._host.system, name)",
        "not session._lifecycle.is_departing",
        (f"{GET}::test_a_tool_can_look_up_its_own_session_while_the_session_is_released",),
    ),
    Mutation(
        "sync: a block gives back a session that another caller has opened",
        "actors/sync/runtime.py:BlockingRuntime.session",
        "BlockingSession(self._calls, session, is_held=False)",
        "BlockingSession(self._calls, session, is_held=True)",
        (
            "tests/runtime/test_sync.py::test_leaving_a_with_block_releases_only_a_session_that_the_caller_has_opened",
        ),
    ),
    Mutation(
        "sync: a session is given back twice",
        "actors/sync/session.py:BlockingSession.__exit__",
        "is_held, self._is_held = self._is_held, False",
        "is_held = self._is_held",
        (
            "tests/runtime/test_sync.py::test_leaving_a_with_block_releases_only_a_session_that_the_caller_has_opened",
        ),
    ),
    Mutation(
        "get or create: a session of another tenant is returned",
        "actors/runtime/opening.py:_check_tenant",
        "caller_tenant and session_tenant != caller_tenant",
        "False",
        (f"{GET}::test_a_resumed_session_keeps_the_target_and_prompt_of_its_log",),
    ),
    Mutation(
        "get or create: a session closed in memory cannot be opened again",
        "actors/runtime/claims.py:Claims.claim_any",
        "not self._host.is_durable",
        "self._host.is_durable",
        (f"{GET}::test_a_session_closed_in_memory_storage_is_opened_again_from_scratch",),
    ),
    Mutation(
        "handles: releasing a session cancels its turn",
        "actors/runtime/lifecycle.py:SessionLifecycle._hibernate_if_unused",
        "not self.busy",
        "True",
        (f"{GET}::test_releasing_a_session_does_not_cancel_a_running_turn",),
    ),
    Mutation(
        "handles: the first release passivates a shared session",
        "actors/runtime/lifecycle.py:SessionLifecycle._hibernate_if_unused",
        "self.handles or self.is_over",
        "self.is_over",
        (f"{GET}::test_a_session_opened_with_await_stays_open_when_other_users_release_it",),
    ),
    Mutation(
        "handles: a session released while busy stays active",
        f"{ACTIVATION}:SessionLifecycle.on_ask_end",
        "self.is_given_back and (not self.handles)",
        "False",
        (f"{GET}::test_releasing_a_session_does_not_cancel_a_running_turn",),
    ),
    Mutation(
        "handles: an unreferenced session keeps its actors",
        "actors/runtime/lifecycle.py:SessionLifecycle._hibernate_if_unused",
        "self.host.residency.add_unused(self)",
        "pass",
        (f"{GET}::test_a_session_is_passivated_when_its_last_user_releases_it",),
    ),
)
