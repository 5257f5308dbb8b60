"""Mutations of the journal and of sessions while it cannot write."""

from tests.teeth.mutations.mutation import Mutation

_DISK = "tests/journal/test_unavailable.py::test_writes_fail_with_a_typed_error_during_a_disk_fault_and_lose_nothing"
_ENDS = "tests/kernel/test_ends.py"
_BROKEN = "tests/journal/test_journal.py::test_an_event_after_a_refused_event_is_refused"
_OUTAGES = "tests/journal/test_outages.py"
_ANYWHERE = f"{_OUTAGES}::test_an_ask_fails_at_any_refused_write_and_the_session_resumes"
_FENCED = f"{_OUTAGES}::test_a_session_that_another_writer_has_claimed_ends_and_affects_no_other_session"
_DROPPED = f"{_OUTAGES}::test_a_passivated_session_keeps_no_log_state_in_memory"
_WAITING = f"{_OUTAGES}::test_passivation_after_an_outage_fails_callers_and_cancels_tools"
_IDLE = f"{_OUTAGES}::test_an_outage_refuses_requests_and_leaves_an_idle_session_unchanged"
_SLOW = "tests/journal/test_slow_journal.py"
_TOO_SLOW = f"{_SLOW}::test_a_slow_journal_first_delays_callers_and_then_refuses_new_work"
_STATS = f"{_SLOW}::test_stats_and_prometheus_report_an_outage_with_its_start_and_reason"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "journal: a heartbeat waits behind earlier operations",
        "actors/journal/storage_calls.py:StorageThreads.write",
        "work = partial(call_and_renew_lease, work, *...)",
        "",
        (f"{_SLOW}::test_a_host_busy_with_deletions_keeps_its_lease",),
    ),
    Mutation(
        "journal: every operation renews the lease",
        "actors/journal/storage_calls.py:StorageThreads.write",
        "self._system.now() - self._renewed_at > lease / 2",
        "self._system.now() >= 0",
        (f"{_SLOW}::test_a_host_busy_with_deletions_keeps_its_lease",),
    ),
    Mutation(
        "journal: the fold of a passivated session stays in memory",
        "actors/runtime/session_actors.py:SessionActors.reset_state",
        "self._state, self._lanes, self._session_actor = (*..., None)",
        "self._state, self._lanes = (*...,)",
        (_DROPPED,),
    ),
    Mutation(
        "journal: the replayed state stays beside the live state",
        "actors/journal/log.py:Generation._hand_over_replay",
        "self._replay = None",
        "pass",
        (_DROPPED,),
    ),
    Mutation(
        "journal: a claim overtakes earlier events of its session",
        "actors/journal/journal_actor.py:JournalActor._run_batch",
        "not isinstance(command, ClaimSession) or group.appends_to(command.session)",
        "not isinstance(command, ClaimSession)",
        ("tests/journal/test_journal.py::test_a_claim_of_a_session_is_processed_after_events_sent_earlier",),
    ),
    Mutation(
        "journal: each claim is a separate commit",
        "actors/journal/journal_actor.py:JournalActor._run_batch",
        "group.claims.append(command)",
        "await self._run_query(command)",
        ("tests/journal/test_sqlite.py::test_concurrent_opens_share_commits",),
    ),
    Mutation(
        "journal: rows of a failed commit are remembered",
        "actors/journal/storage/sqlite/connection.py:Connections._transaction",
        "self._data_version = -1",
        "",
        ("tests/journal/test_sqlite.py::test_a_failed_commit_undoes_the_whole_transaction",),
    ),
    Mutation(
        "journal: logs cannot be read while writes fail",
        "actors/journal/storage/sqlite/connection.py:Connections._ensure_prepared",
        "self._writer",
        "self._reader",
        (_DISK,),
    ),
    Mutation(
        "journal: a full disk counts as damage",
        "actors/journal/storage/sqlite/faults.py:_UNAVAILABLE",
        '{sqlite3.SQLITE_FULL: "the disk is full; free some space", **...}',
        "{**...}",
        (_DISK,),
    ),
    Mutation(
        "kernel: an end is reported as a crash",
        "actors/kernel/cell.py:Cell._take_down",
        "not self.is_regular_end(error)",
        "True",
        (_ENDS,),
    ),
    Mutation(
        "kernel: a message after an end is reported as a crash",
        "actors/kernel/actor.py:_ContextChild.on_end",
        """
        if not owner.is_regular_end(error):
            system.on_crash(owner.name, error)
        """,
        "system.on_crash(owner.name, error)",
        (_ENDS,),
    ),
    Mutation(
        "kernel: queued senders do not receive the error of an end",
        "actors/kernel/cell.py:Cell.finish",
        "self._drop_queues(*..., error or self.stopped_error())",
        "self._drop_queues(*..., self.stopped_error())",
        (_ENDS,),
    ),
    Mutation(
        "kernel: waiting callers do not receive the error of an end",
        "actors/kernel/cell.py:Cell._caller_error",
        """
        if self.is_regular_end(cause):
            return cause
        """,
        "",
        (_ENDS,),
    ),
    Mutation(
        "kernel: an end does not end the group at once",
        "actors/kernel/cell.py:Group.continue_when_down",
        "self.end_error is not None or len(self.crashes) > self.restart.intensity",
        "len(self.crashes) > self.restart.intensity",
        (_ENDS,),
    ),
    Mutation(
        "journal: an event after a refused event is written",
        "actors/journal/journal_actor.py:JournalActor._reject",
        "self._broken[command.session] = error",
        "pass",
        (_BROKEN,),
    ),
    Mutation(
        "journal: reading a log clears a refusal",
        "actors/journal/journal_actor.py:JournalActor._send_answer",
        "not isinstance(command, ReadLog) or command.as_writer",
        "True",
        (_BROKEN,),
    ),
    Mutation(
        "journal: an outage counts as a crash",
        "actors/runtime/session_actors.py:RESTART",
        "(JournalError,)",
        "(OSError,)",
        (_ANYWHERE,),
    ),
    Mutation(
        "journal: a fence counts as a crash",
        "actors/runtime/session_actors.py:RESTART",
        "(JournalError,)",
        "(OSError,)",
        (_FENCED,),
    ),
    Mutation(
        "journal: a fenced session continues",
        "actors/runtime/lifecycle.py:SessionLifecycle._handle_actors_end",
        "error is None or isinstance(error, Fenced)",
        "error is None",
        (_FENCED,),
    ),
    Mutation(
        "journal: a passivated session cannot be used again",
        "actors/runtime/lifecycle.py:SessionLifecycle._handle_actors_end",
        "error is None or isinstance(error, Fenced)",
        "error is None or isinstance(error, JournalError)",
        (_ANYWHERE,),
    ),
    Mutation(
        "journal: the caller of the running ask does not receive the outage",
        "actors/session/pending.py:PendingAsks.end_all",
        "self.current.sink.close(copy_error(error))",
        "self.current.sink.close()",
        (_ANYWHERE,),
    ),
    Mutation(
        "journal: the callers of waiting asks do not receive the outage",
        "actors/session/pending.py:PendingAsks.drop_queued",
        "self._close(submit, error)",
        "self._close(submit, None)",
        (_WAITING,),
    ),
    Mutation(
        "journal: a written switch does not change the target of the next ask",
        "actors/session/configuration.py:ActiveConfig.confirm_written",
        "self._configuration.target = event.target",
        "pass",
        (_IDLE,),
    ),
    Mutation(
        "journal: an unwritten switch is reported",
        "actors/journal/log.py:LogWriter.send",
        "self._apply_to_state(event)",
        """
self._report_change(event, None, 0)
self._apply_to_state(event)
        """,
        (_IDLE,),
    ),
    Mutation(
        "journal: unwritten tools are live",
        "actors/runtime/session_actors.py:SessionActors.start",
        "self.active_config.restore()",
        "",
        (_IDLE,),
    ),
    Mutation(
        "journal: a refused change stays pending",
        "actors/session/held_changes.py:HeldChanges.configure",
        "self._apply_change(context, drop_on_failure=True)",
        "self._apply_change(context, drop_on_failure=False)",
        (_IDLE,),
    ),
    Mutation(
        "journal: callers do not wait for a passivation in progress",
        "actors/runtime/delivery.py:SessionCaller._send",
        "await self._lifecycle.actors_ended()",
        "pass",
        (_IDLE,),
    ),
    Mutation(
        "journal: the pending events of one session are unbounded",
        "actors/journal/log.py:LogWriter.send",
        """
        if self._sent == MAX_SENT:
            context.hold_messages()
        """,
        "",
        (f"{_SLOW}::test_a_flood_of_writes_from_one_session_does_not_delay_other_sessions",),
    ),
    Mutation(
        "journal: a session that waited for the journal stays stopped",
        "actors/journal/log.py:LogWriter.send",
        """
        if self._sent == MAX_SENT - 1:
            context.release_messages()
        """,
        "",
        (f"{_SLOW}::test_a_flood_of_writes_from_one_session_does_not_delay_other_sessions",),
    ),
    Mutation(
        "journal: new work is accepted while the journal is too slow",
        "actors/runtime/session_host.py:SessionHost.check_capacity",
        "lag > LAG",
        "lag > 1000 * LAG",
        (_TOO_SLOW,),
    ),
    Mutation(
        "journal: continuing work is refused while the journal is too slow",
        "actors/runtime/delivery.py:SessionCaller._send",
        "isinstance(command, Submit | Resolve | Switch | Configure)",
        "command",
        (_TOO_SLOW,),
    ),
    Mutation(
        "journal: sessions are opened while the journal is too slow",
        "actors/runtime/session_access.py:SessionAccess._opening_host",
        "host.check_capacity()",
        "",
        (_TOO_SLOW,),
    ),
    Mutation(
        "journal: each event of a batch counts as a wait",
        "actors/journal/health.py:JournalHealth.lag",
        "ceil((mailbox_size + self.queued) / max_batch)",
        "mailbox_size + self.queued",
        (f"{_SLOW}::test_the_expected_wait_covers_the_running_and_queued_batches",),
    ),
    Mutation(
        "journal: the stats hide an outage",
        "actors/journal/journal_actor.py:JournalActor._reject",
        "self._meter.record_failure(error)",
        "pass",
        (_STATS,),
    ),
    Mutation(
        "journal: the stats hide the end of an outage",
        "actors/journal/health.py:JournalHealth.record_success",
        'self.outage_began, self.outage_reason = (None, "")',
        "pass",
        (_STATS,),
    ),
    Mutation(
        "journal: an outage is logged repeatedly",
        "actors/journal/health.py:JournalHealth.record_failure",
        "self.outage_began is None",
        "True",
        (_STATS,),
    ),
    Mutation(
        "journal: a file that was moved away is written",
        "actors/journal/storage/sqlite/connection.py:Connections.transaction",
        "self._check_files_in_place()",
        "",
        (_DISK,),
    ),
    Mutation(
        "journal: a log is read from another file",
        "actors/journal/storage/sqlite/connection.py:Connections.read_snapshot",
        "self._check_files_in_place()",
        "",
        (
            "tests/journal/test_unavailable.py::test_a_journal_that_is_not_open_is_not_read_from_a_replaced_file",
        ),
    ),
    Mutation(
        "journal: a deleted lock file does not exclude a second writer",
        "actors/journal/storage/sqlite/locks.py:WriteLock.__enter__",
        "_try_lock(self._open_file()) and self._is_current_file()",
        "_try_lock(self._open_file())",
        ("tests/journal/test_unavailable.py::test_a_deleted_lock_file_still_excludes_a_second_writer",),
    ),
    Mutation(
        "journal: leaving a runtime fails while its journal is unavailable",
        "actors/runtime/runtime.py:StorageOwner._close",
        "call_host(self._storage.close, logger.journal_unclosed)",
        "self._storage.close()",
        (
            "tests/journal/test_outages_of_files.py"
            "::test_exiting_the_runtime_during_a_file_fault_keeps_durable_events",
        ),
    ),
    Mutation(
        "journal: a subagent outlives its call if its end cannot be written",
        "actors/scheduler/children.py:Subagents.close",
        "await owned.close(in_order=False)",
        "pass",
        (f"{_OUTAGES}::test_a_subagent_ends_with_its_call_at_any_refused_write",),
    ),
    Mutation(
        "ledger: a result is shown before it is durable",
        "actors/ledger/ledger_actor.py:LedgerActor.receive",
        "durable.send(self._durable)",
        "durable.send(self.current.ledger)",
        ("tests/journal/test_slow_journal.py::test_ledger_history_and_preview_show_only_durable_results",),
    ),
)
