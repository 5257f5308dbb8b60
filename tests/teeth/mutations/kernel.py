"""Mutations of the kernel and of its users in sessions: journal batches, ledger versions, the state table."""

from tests.teeth.mutations.mutation import Mutation

LIFECYCLE = "tests/kernel/test_actor_lifecycle.py"
SEMANTICS = "tests/kernel/test_actor_semantics.py"
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
        "kernel: a message is handled at once although senders wait for space",
        "actors/kernel/receiver.py:Receiver.take",
        "self.mail is None and self.control is None and (not self.busy) and (not dispatcher.busy) and ...",
        "not self.mail and self.control is None and (not self.busy) and (not dispatcher.busy) and ...",
        (f"{SEMANTICS}::test_nothing_is_handled_at_once_ahead_of_senders_that_wait",),
    ),
    Mutation(
        "kernel: an asker's messages are handled on its stack without yielding",
        "actors/kernel/receiver.py:Receiver.take",
        """
        self.mail is None and self.control is None and (not self.busy) and (not dispatcher.busy) and (
            dispatcher.stretch < STRETCH
        )
        """,
        "self.mail is None and self.control is None and (not self.busy) and (not dispatcher.busy)",
        (f"{SEMANTICS}::test_an_asker_gives_way_now_and_then_though_its_answers_come_at_once",),
    ),
    Mutation(
        "kernel: the loop gets no turn between messages of actors",
        "actors/kernel/dispatch.py:Dispatcher._visit_ready",
        """
        while ready and self.stretch < STRETCH:
            ...
            if visit(min(BATCH, STRETCH - self.stretch)):
                ...
        """,
        """
        while ready:
            ...
            if visit(BATCH):
                ...
        """,
        (f"{SEMANTICS}::test_an_actor_with_much_mail_gives_way_to_the_next_and_to_the_loop",),
    ),
    Mutation(
        "kernel: a handler runs inside its sender's handler",
        "actors/kernel/receiver.py:Receiver.take",
        "self.mail is None and self.control is None and (not self.busy) and (not dispatcher.busy) and ...",
        """
        self.mail is None and self.control is None and (not self.busy) and (
            dispatcher.acting is not self
        ) and ...
        """,
        (f"{SEMANTICS}::test_what_a_handler_sends_is_handled_after_it_and_in_order",),
    ),
    Mutation(
        "kernel: an actor crashes after its sender continued",
        "actors/kernel/cell.py:Cell.crash",
        "self.system.dispatcher.afterwards",
        "self.system.loop.soon",
        (f"{LIFECYCLE}::test_a_crash_takes_its_whole_group_down_before_the_sender_goes_on",),
    ),
    Mutation(
        "kernel: only the crashed member goes down at once",
        "actors/kernel/cell.py:Group.take_down",
        "member.go_down",
        "self.members[0].go_down",
        (f"{LIFECYCLE}::test_a_crash_takes_its_whole_group_down_before_the_sender_goes_on",),
    ),
    Mutation(
        "kernel: the child of a stopped actor receives an answer and continues",
        "actors/kernel/ref.py:Ref.ask",
        "caller is not None and caller.is_cancelled",
        "False",
        (f"{LIFECYCLE}::test_a_child_whose_actor_went_down_while_it_asked_hears_of_that_first",),
    ),
    Mutation(
        "kernel: leftovers of a crash affect the next generation",
        "actors/kernel/actor.py:Context.fail",
        """
        if not self.is_over:
            self.receiver.crash(error)
        """,
        "self.receiver.crash(error)",
        (f"{SEMANTICS}::test_an_actor_held_twice_is_released_twice_and_an_old_life_releases_nobody",),
    ),
    Mutation(
        "kernel: handlers see their sender's context variables",
        "actors/kernel/receiver.py:Receiver.take",
        "dispatcher.run(self.handle, command)",
        "self.handle(command)",
        (f"{LIFECYCLE}::test_a_senders_context_does_not_leak_into_actors",),
    ),
    Mutation(
        "kernel: an interrupt hits a handler midway",
        "actors/kernel/system.py:System.__aenter__",
        "self.loop.protect(function)",
        "pass",
        (f"{LIFECYCLE}::test_an_interrupt_comes_between_handlers_and_not_into_one",),
    ),
    Mutation(
        "kernel: a slow handler is not reported",
        "actors/kernel/cell.py:Cell.handle",
        "took > system.slow",
        "False",
        (f"{SEMANTICS}::test_a_slow_handler_is_reported_for_nobody_can_interrupt_it",),
    ),
    Mutation(
        "kernel: an actor continues before its messages are sent",
        "actors/kernel/actor.py:Context.send",
        'self.start(self._send, self.outbox, name="outbox", holds=True)',
        'self.start(self._send, self.outbox, name="outbox")',
        (
            f"{SEMANTICS}::test_what_a_handler_sends_goes_out_when_there_is_room_and_until_then_it_handles_nothing",
        ),
    ),
    Mutation(
        "kernel: an empty used queue keeps its actor alive",
        "actors/kernel/cell.py:Cell.idle",
        "any((queue is not None and (not queue.is_unused) for queue in (self.mail, self.control)))",
        "self.mail is not None or self.control is not None",
        (f"{PASSIVATE}::test_queues_that_were_used_and_are_empty_keep_nobody",),
    ),
    Mutation(
        "kernel: foreign code runs in a damaged nursery",
        "actors/kernel/contained.py:Containment._reuse_nursery",
        "is_sound and len(self._spare) < SPARES",
        "len(self._spare) < SPARES",
        (
            "tests/kernel/test_leaving.py::test_foreign_code_that_runs_after_other_foreign_code_hears_nothing_of_it",
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
        "actors/kernel/message.py:sendable",
        "with_reply(message, TOLD) if message.reply.is_done else message",
        "message",
        (f"{SEMANTICS}::test_a_query_may_be_asked_again_and_told",),
    ),
    Mutation(
        "ledger: a request is sealed on an outdated version",
        "actors/ledger/ledger_actor.py:LedgerActor.receive",
        "version != self.known.version",
        "version > self.known.version",
        ("tests/session/test_cancel.py::test_a_request_is_rendered_again_if_a_result_arrives_meanwhile",),
    ),
    Mutation(
        "ledger: a change has no version",
        "actors/ledger/ledger_actor.py:LedgerActor._write",
        "LedgerSnapshot(*..., known.version + 1)",
        "LedgerSnapshot(*..., known.version)",
        ("tests/session/test_cancel.py::test_a_request_is_rendered_again_if_a_result_arrives_meanwhile",),
    ),
    Mutation(
        "session: the end of an ask interrupted by a crash ends the next",
        "actors/session/session_actor.py:SessionActor.receive",
        "number != self._generation.number",
        "False",
        (f"{RECOVERY}::test_what_a_dead_sessions_ask_says_does_not_end_the_next",),
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
        for alone in group.parts:
            await self._commit(alone)
        """,
        """
        for append in group.appends:
            append.fail(error)
        """,
        ("tests/journal/test_journal.py",),
    ),
    Mutation(
        "journal: each append is written separately",
        "actors/journal/journal_actor.py:JournalActor._carry_out",
        "await self._commit(group)",
        "[await self._commit(alone) for alone in group.parts]",
        ("tests/journal/test_journal.py",),
    ),
    Mutation(
        "journal: a read overtakes earlier appends",
        "actors/journal/journal_actor.py:JournalActor._carry_out",
        """
        await self._commit(group)
        for read in group.reads:
            ...
        """,
        """
        for read in group.reads:
            await self._start_read(read)
        await self._commit(group)
        """,
        ("tests/journal/test_journal.py",),
    ),
)
