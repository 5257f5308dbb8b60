"""Mutations of the kernel and of its users in sessions: journal batches, ledger versions, the state table."""

from tests.teeth.mutations.mutation import Mutation

LIFECYCLE = "tests/kernel/test_actor_lifecycle.py"
SEMANTICS = "tests/kernel/test_actor_semantics.py"
NEXT_TURN = "tests/kernel/test_next_turn.py"
PASSIVATE = "tests/kernel/test_passivate.py"
RECOVERY = "tests/runtime/test_recovery_of_sessions.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "kernel: a program on trio imports asyncio too",
        "actors/kernel/event_loop.py:sys",
        "import sys",
        """
        import asyncio
        import sys
        """,
        ("tests/project/test_public.py::test_creating_a_runtime_imports_no_event_loop_and_no_lazy_module",),
    ),
    Mutation(
        "kernel: each next turn of trio wakes the loop through its socket",
        "actors/kernel/event_loop.py:TrioTurnQueue.call_next",
        "sys.modules['trio'].lowlevel.spawn_system_task(self._run, name='turns', context=Context())",
        "self._soon(self._call_due)",
        (f"{NEXT_TURN}::test_trio_calls_functions_at_the_next_turn_in_order_without_a_system_call",),
    ),
    Mutation(
        "kernel: a next turn is lost at the end of trio's run",
        "actors/kernel/event_loop.py:TrioTurnQueue.call_next",
        "self._soon(self._call_due)",
        "raise",
        (f"{NEXT_TURN}::test_trio_calls_a_function_even_after_trios_system_tasks_have_ended",),
    ),
    Mutation(
        "kernel: the task of trio's next turn outlives its system",
        "actors/kernel/system.py:SystemHost._run",
        "self._loop.end_idle_task()",
        "",
        (f"{NEXT_TURN}::test_the_task_that_calls_functions_at_trios_next_turn_ends_with_the_system",),
    ),
    Mutation(
        "kernel: a next turn is lost once trio has cancelled its task",
        "actors/kernel/event_loop.py:TrioTurnQueue._abort",
        "self._parked, self._is_running = None, False",
        "self._parked = None",
        (f"{NEXT_TURN}::test_trio_calls_a_function_even_after_trios_system_tasks_have_ended",),
    ),
    Mutation(
        "kernel: a message is handled at once although senders wait for space",
        "actors/kernel/receiver.py:Receiver.accept",
        "queue is None and self.control is None and (not self.busy) and (not dispatcher.busy) and ...",
        "not queue and self.control is None and (not self.busy) and (not dispatcher.busy) and ...",
        (f"{SEMANTICS}::test_no_message_overtakes_senders_that_wait_for_mailbox_space",),
    ),
    Mutation(
        "kernel: an asker's messages are handled on its stack without yielding",
        "actors/kernel/receiver.py:Receiver.accept",
        """
        queue is None and self.control is None and (not self.busy) and (not dispatcher.busy) and (
            dispatcher.stretch < STRETCH
        )
        """,
        "queue is None and self.control is None and (not self.busy) and (not dispatcher.busy)",
        (f"{SEMANTICS}::test_a_task_whose_asks_are_answered_at_once_still_yields_regularly",),
    ),
    Mutation(
        "kernel: the loop gets no turn between messages of actors",
        "actors/kernel/shared.py:Dispatcher._handle_ready",
        """
        while ready and self.stretch < STRETCH:
            ...
            if handler(min(BATCH, STRETCH - self.stretch)):
                ...
        """,
        """
        while ready:
            ...
            if handler(BATCH):
                ...
        """,
        (f"{SEMANTICS}::test_an_actor_with_many_messages_yields_to_other_actors_and_the_event_loop",),
    ),
    Mutation(
        "kernel: a handler runs inside its sender's handler",
        "actors/kernel/receiver.py:Receiver.accept",
        "queue is None and self.control is None and (not self.busy) and (not dispatcher.busy) and ...",
        """
        queue is None and self.control is None and (not self.busy) and (
            dispatcher.acting is not self
        ) and ...
        """,
        (f"{SEMANTICS}::test_messages_sent_by_a_handler_are_handled_in_order_after_the_handler_returns",),
    ),
    Mutation(
        "kernel: an actor crashes after its sender continued",
        "actors/kernel/cell.py:Cell.crash",
        "self.system.dispatcher.run_after_handler",
        "self.system.loop.soon",
        (f"{LIFECYCLE}::test_an_actor_crash_stops_its_group_before_the_sender_continues",),
    ),
    Mutation(
        "kernel: only the crashed member goes down at once",
        "actors/kernel/cell.py:Group.take_down",
        "member.go_down",
        "self.members[0].go_down",
        (f"{LIFECYCLE}::test_an_actor_crash_stops_its_group_before_the_sender_continues",),
    ),
    Mutation(
        "kernel: the child of a stopped actor receives an answer and continues",
        "actors/kernel/ref.py:Ref.ask",
        "caller is not None and caller.is_cancelled",
        "False",
        (f"{LIFECYCLE}::test_a_child_task_ends_without_continuing_if_its_actor_crashes_during_its_ask",),
    ),
    Mutation(
        "kernel: leftovers of a crash affect the next generation",
        "actors/kernel/actor.py:Context.fail",
        """
        if not self.is_over:
            self.receiver.crash(error)
        """,
        "self.receiver.crash(error)",
        (f"{SEMANTICS}::test_each_hold_of_an_actor_needs_a_release_by_a_context_of_the_same_generation",),
    ),
    Mutation(
        "kernel: handlers see their sender's context variables",
        "actors/kernel/receiver.py:Receiver.accept",
        "dispatcher.run(self.handle, command)",
        "self.handle(command)",
        (f"{LIFECYCLE}::test_the_context_of_a_sender_does_not_leak_into_actors",),
    ),
    Mutation(
        "kernel: an interrupt hits a handler midway",
        "actors/kernel/system.py:System.__aenter__",
        "self.loop.protect(function)",
        "pass",
        (f"{LIFECYCLE}::test_an_interrupt_is_raised_between_handlers",),
    ),
    Mutation(
        "kernel: a slow handler is not reported",
        "actors/kernel/cell.py:Cell.handle",
        "took > system.slow",
        "False",
        (f"{SEMANTICS}::test_a_slow_handler_is_reported",),
    ),
    Mutation(
        "kernel: an actor continues before its messages are sent",
        "actors/kernel/actor.py:Context.send",
        'self.start(self._send_outbox, self.outbox, name="outbox", holds=True)',
        'self.start(self._send_outbox, self.outbox, name="outbox")',
        (f"{SEMANTICS}::test_an_actor_handles_no_message_while_its_outgoing_messages_wait_for_space",),
    ),
    Mutation(
        "kernel: an empty used queue keeps its actor alive",
        "actors/kernel/cell.py:Cell.idle",
        "any((queue is not None and (not queue.is_unused) for queue in (self.mail, self.control)))",
        "self.mail is not None or self.control is not None",
        (f"{PASSIVATE}::test_queues_that_are_empty_again_do_not_prevent_passivation",),
    ),
    Mutation(
        "kernel: foreign code runs in a damaged nursery",
        "actors/kernel/tasks.py:ContainedTasks._reuse_nursery",
        "is_sound and len(self._spare) < MAX_SPARE_NURSERIES",
        "len(self._spare) < MAX_SPARE_NURSERIES",
        (
            "tests/kernel/test_leaving.py::test_damage_that_host_code_does_to_its_task_does_not_affect_later_host_code",
        ),
    ),
    Mutation(
        "kernel: an actor that owes an answer is passivated",
        "actors/kernel/cell.py:Cell.idle",
        "is_acting or life.children or owes",
        "is_acting or life.children",
        (PASSIVATE,),
    ),
    Mutation(
        "kernel: a service is stopped while it is being asked",
        "actors/kernel/system.py:System._stop_all",
        "cells.sort(key=lambda cell: cell.rank[0])",
        "",
        (LIFECYCLE,),
    ),
    Mutation(
        "kernel: a query sent as a command is asked while it still waits",
        "actors/kernel/message.py:prepare_to_send",
        "attach_reply(message, NO_REPLY) if message.reply.is_done else message",
        "message",
        (f"{SEMANTICS}::test_one_query_object_may_be_asked_and_sent_several_times",),
    ),
    Mutation(
        "ledger: a request is sealed on an outdated version",
        "actors/ledger/ledger_actor.py:LedgerActor.receive",
        "version != self.current.version",
        "version > self.current.version",
        (
            "tests/session/test_cancel.py::test_a_rendered_request_is_not_sent_if_another_result_arrived_since_rendering",
        ),
    ),
    Mutation(
        "ledger: a change has no version",
        "actors/ledger/ledger_actor.py:LedgerActor._write_and_reply",
        "LedgerSnapshot(*..., before.version + 1)",
        "LedgerSnapshot(*..., before.version)",
        (
            "tests/session/test_cancel.py::test_a_rendered_request_is_not_sent_if_another_result_arrived_since_rendering",
        ),
    ),
    Mutation(
        "session: the end of an ask interrupted by a crash ends the next",
        "actors/session/session_actor.py:SessionActor.receive",
        "number != self._generation.number",
        "False",
        (f"{RECOVERY}::test_messages_sent_before_an_actor_crash_do_not_end_the_next_ask",),
    ),
    Mutation(
        "session: it ends while an ask is in flight",
        "actors/core/session/phases.py:_LEADS_TO",
        '{**..., ("asking", "end"): "ending", **...}',
        '{**..., ("asking", "end"): "closing", **...}',
        ("tests/core/test_phases.py",),
    ),
    Mutation(
        "journal: a failed write fails the events written with it",
        "actors/journal/journal_actor.py:JournalActor._commit",
        """
        for single in group.single_operations:
            await self._commit(single)
        """,
        """
        for append in group.appends:
            append.fail(error)
        """,
        ("tests/journal/test_journal.py",),
    ),
    Mutation(
        "journal: each append is written separately",
        "actors/journal/journal_actor.py:JournalActor._run_group",
        "await self._commit(group)",
        "[await self._commit(single) for single in group.single_operations]",
        ("tests/journal/test_journal.py",),
    ),
    Mutation(
        "journal: a read overtakes earlier appends",
        "actors/journal/journal_actor.py:JournalActor._run_group",
        """
        await self._commit(group)
        for read in group.reads:
            ...
        """,
        """
        for read in group.reads:
            await self._run_read(read)
        await self._commit(group)
        """,
        ("tests/journal/test_journal.py",),
    ),
)
