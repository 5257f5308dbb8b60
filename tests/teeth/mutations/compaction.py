"""Mutations of compaction: cut points, named results, lanes, the summarizer, and the moment."""

from tests.teeth.mutations.mutation import Mutation

RULES, COMPACTOR, TURNS = (
    "actors/core/history/compaction.py",
    "actors/session/compactor.py",
    "actors/session/separate_turns.py",
)
STATE, TURN = "actors/core/session/state.py", "actors/core/turn/turn.py"
LANES = "actors/core/session/lanes.py"
CORE, SESSIONS = "tests/core/test_compaction.py", "tests/session/test_compaction.py"
ELSEWHERE = "tests/session/test_stored_compaction.py"

MUTATIONS = (
    Mutation(
        "compaction: a turn compacts three times, whatever its length",
        f"{TURN}:_TurnRules.next",
        "self._shrinks = 0",
        "",
        (
            f"{SESSIONS}::test_a_long_turn_compacts_each_time_its_window_is_full",
            "tests/core/test_turn.py::test_every_sequence_of_outcomes_follows_the_state_table_of_turns",
        ),
    ),
    Mutation(
        "compaction: a single long turn is never compacted",
        f"{COMPACTOR}:Compactor.compact_after_overflow",
        "replace(summarised, results=(await self._log_shortened(short)).results) if short else summarised",
        "summarised",
        (f"{SESSIONS}::test_a_turn_longer_than_the_window_trims_results_that_its_model_has_seen",),
    ),
    Mutation(
        "compaction: a result that the model has not seen becomes a mark",
        f"{RULES}:last_batch_index",
        "max((at for at, message in enumerate(messages) if message.calls), default=0)",
        "len(messages)",
        (f"{SESSIONS}::test_a_turn_longer_than_the_window_trims_results_that_its_model_has_seen",),
    ),
    Mutation(
        "compaction: the summarizer backend need not exist",
        "actors/runtime/backends.py:RuntimeBackends.__init__",
        "(summarizer := self.compaction.summarizer) is not None",
        "(summarizer := self.compaction.summarizer) == 0",
        (f"{ELSEWHERE}::test_the_compaction_argument_of_a_program_overrides_the_configuration_file",),
    ),
    Mutation(
        "compaction: a history is cut within a turn",
        f"{RULES}:_is_added_within_turn",
        "later is not None and later.turn == messages[answer_index].turn",
        "False",
        (f"{CORE}::test_compaction_cuts_only_at_the_start_of_a_turn",),
    ),
    Mutation(
        "compaction: results that the summary does not name are not listed",
        f"{RULES}:summary_message",
        "each not in mentioned",
        "each in mentioned",
        (f"{CORE}::test_a_summary_lists_the_calls_that_the_text_of_the_model_omits",),
    ),
    Mutation(
        "compaction: a second summary forgets the results of the first",
        f"{RULES}:summary_scope",
        "known.call_id not in visible and ... and ...",
        "... and ... and any((call.id == known.call_id for message in messages[:stop] for call in message.calls))",
        (f"{CORE}::test_a_second_summary_lists_the_calls_of_the_first_summary",),
    ),
    Mutation(
        "compaction: attachments are not counted",
        f"{RULES}:summary_message",
        "(*..., *kept)",
        "(*...,)",
        (f"{CORE}::test_compaction_keeps_the_newest_user_attachments_up_to_the_limit",),
    ),
    Mutation(
        "compaction: the later of two equal calls is trimmed",
        f"{RULES}:repeated_results",
        "reversed(messages)",
        "messages",
        (f"{CORE}::test_results_of_repeated_calls_and_long_results_are_shortened",),
    ),
    Mutation(
        "compaction: lanes continue as if the history were unchanged",
        f"{LANES}:_lane_after_shortening",
        '_mark_stale(lane, "compaction")',
        "lane",
        (f"{CORE}::test_a_trimmed_result_is_sent_as_a_placeholder_and_stays_complete_in_the_ledger",),
    ),
    Mutation(
        "compaction: a summary request enters its lane",
        f"{LANES}:Lanes.apply",
        """
        case RequestSent(is_for_summary=False):
            ...
        """,
        """
        case RequestSent():
            ...
        """,
        (f"{CORE}::test_a_summary_request_leaves_the_lane_unchanged",),
    ),
    Mutation(
        "compaction: a trimmed_answer does not state the original size",
        "actors/core/render/choose.py:trimmed_answer",
        'f"The result of {tool} was left out here, {len(words) - 2} bytes{beside}"',
        'f"The result of {tool} was left out here, 0 bytes{beside}"',
        (f"{CORE}::test_a_trimmed_result_is_sent_as_a_placeholder_and_stays_complete_in_the_ledger",),
    ),
    Mutation(
        "compaction: the renderer is not notified",
        f"{COMPACTOR}:Compactor._log_and_begin_epochs",
        "await self._ask.refs.renderer.send(Shrink(event))",
        "",
        (f"{SESSIONS}::test_no_summary_is_written_if_trimming_large_results_saves_enough",),
    ),
    Mutation(
        "compaction: a summary request turns tools off where this misses the cache",
        f"{COMPACTOR}:Compactor._tool_choice",
        'None if is_marked else "none"',
        '"none"',
        (f"{SESSIONS}::test_compacting_a_session_shortens_the_history_and_the_next_request_is_accepted",),
    ),
    Mutation(
        "compaction: without a summary nothing is trimmed",
        f"{COMPACTOR}:Compactor._summarise",
        "self._find_shortenable(ledger, include_small=bool(made.error), before_index=before_index)",
        "{}",
        (f"{SESSIONS}::test_if_no_summary_can_be_written_results_are_trimmed_instead",),
    ),
    Mutation(
        "compaction: a summary is requested although marks suffice",
        f"{COMPACTOR}:Compactor.shrink_next_request",
        "short and self._tokens_after_shortening(ledger, short) <= tokens",
        "not short",
        (f"{SESSIONS}::test_no_summary_is_written_if_trimming_large_results_saves_enough",),
    ),
    Mutation(
        "compaction: a too long request ends its turn",
        f"{TURN}:_TurnRules.next",
        "self._shrinks < SHRINKS",
        "self._shrinks < 0",
        (f"{SESSIONS}::test_a_request_that_was_too_long_is_retried_with_a_shorter_history",),
    ),
    Mutation(
        "compaction: a history is compacted endlessly",
        f"{TURN}:_TurnRules.next",
        "self._shrinks += 1",
        "",
        ("tests/core/test_turn.py::test_every_sequence_of_outcomes_follows_the_state_table_of_turns",),
    ),
    Mutation(
        "compaction: kept turns are never trimmed although a request is still too long",
        f"{COMPACTOR}:Compactor.compact_after_overflow",
        "self._summarise_in_parts(0 if is_repeated else self._settings.keep_turns)",
        "self._summarise_in_parts(self._settings.keep_turns)",
        (f"{SESSIONS}::test_a_history_that_is_still_too_long_is_shortened_again",),
    ),
    Mutation(
        "compaction: no other backend summarises for one that cannot",
        f"{TURNS}:CompactionTurns.can_compact_elsewhere",
        "return self._has_compacted_elsewhere",
        "return False",
        (f"{SESSIONS}::test_a_history_too_long_for_the_current_backend_is_compacted_by_another_backend",),
    ),
    Mutation(
        "compaction: no compaction runs before a turn",
        "actors/provider/resolver.py:compaction_limit",
        "expected_tokens(resolver, state, ledger, binding) < most",
        "most",
        (f"{SESSIONS}::test_compaction_before_the_window_is_full_avoids_too_long_requests",),
    ),
    Mutation(
        "compaction: the smaller backend writes the summary",
        f"{TURNS}:CompactionTurns._summary_backend",
        "resolver.member(measured.binding)",
        "member",
        (
            f"{SESSIONS}::test_before_a_switch_to_a_smaller_window_the_backend_with_the_larger_window_compacts",
        ),
    ),
    Mutation(
        "compaction: an ask is assumed to begin with its turn",
        f"{STATE}:SessionState._apply_ask_event",
        "replace(self, turns=turn, turn_ask=ask, bound=binding)",
        "replace(self, turns=turn, turn_ask=ask, bound=binding, asked_at=self.history.length)",
        ("tests/core/test_state.py",),
    ),
    Mutation(
        "compaction: the start of an ask does not move when earlier messages are replaced",
        f"{STATE}:SessionState._apply_history_event",
        "max(0, self.asked_at - (stop - start) + 1)",
        "self.asked_at",
        ("tests/core/test_state.py",),
    ),
    Mutation(
        "compaction: the usage of a summary is lost when the ask is cancelled",
        "actors/session/inflight.py:stopped_outcome",
        "steps.Answered | steps.RequestFailed | steps.CompactionEnded",
        "steps.Answered | steps.RequestFailed",
        (SESSIONS,),
    ),
    Mutation(
        "compaction: text before a call counts as a summary",
        f"{COMPACTOR}:_read_summary",
        "message.calls",
        "message.calls and (not message.text)",
        (f"{SESSIONS}::test_an_answer_that_is_not_a_summary_is_not_used_as_a_summary",),
    ),
    Mutation(
        "compaction: a filtered summary counts as complete",
        f"{COMPACTOR}:_read_summary",
        "(*...,)",
        '(*..., "filter")',
        (f"{SESSIONS}::test_a_filtered_summary_is_discarded_and_a_truncated_summary_is_labelled",),
    ),
    Mutation(
        "compaction: a summary may be longer than its original",
        f"{RULES}:is_summary_longer",
        "size > SHORT_SUMMARY_BYTES and size > message_tokens(history.upto(stop), ledger, 1.0)",
        "False",
        (
            f"{CORE}::test_a_summary_that_is_not_short_must_be_shorter_than_the_range_it_replaces",
            f"{SESSIONS}::test_an_answer_that_is_not_a_summary_is_not_used_as_a_summary",
        ),
    ),
    Mutation(
        "compaction: compaction runs although it saves almost nothing",
        "actors/provider/resolver.py:compaction_limit",
        "possible_savings(state.history, ledger, settings, before_index, ratio) >= most * MIN_SAVING",
        "possible_savings(state.history, ledger, settings, before_index, ratio)",
        (f"{SESSIONS}::test_a_history_with_little_to_summarise_is_not_compacted",),
    ),
    Mutation(
        "compaction: attachments of results are not counted",
        "actors/core/history/compaction.py:result_tokens",
        "media += len(answer[2])",
        "",
        (f"{SESSIONS}::test_no_summary_is_written_if_trimming_large_results_saves_enough",),
    ),
    Mutation(
        "compaction: the last backend writes the summary although it is gone",
        f"{TURNS}:CompactionTurns._summary_backend",
        "return member",
        "return last",
        (f"{SESSIONS}::test_the_current_backend_summarises_if_the_previous_backend_is_gone",),
    ),
    Mutation(
        "compaction: the context window of a price is ignored",
        "actors/provider/pricing.py:Pricing._configured_window",
        "None if price is None else price.context",
        "None",
        (f"{ELSEWHERE}::test_the_context_window_of_a_price_applies_if_the_backend_declares_none",),
    ),
    Mutation(
        "compaction: the settings of the file are ignored",
        "actors/runtime/backends.py:RuntimeBackends.__init__",
        "settings.compaction",
        "Compaction()",
        (f"{ELSEWHERE}::test_the_compaction_argument_of_a_program_overrides_the_configuration_file",),
    ),
    Mutation(
        "compaction: a fork shows trimmed results in full",
        "actors/core/session/open_asks.py:fork_log",
        "type(each) is not Closed",
        'type(each).__name__ not in ("Closed", "Shortened")',
        (f"{ELSEWHERE}::test_a_compacted_history_is_unchanged_in_forks_and_imports",),
    ),
    Mutation(
        "compaction: the too long request is sent again as a summary request",
        f"{LANES}:Lanes._render_lane",
        "lane._state.cursor > history.length - aside",
        "lane._state.cursor > history.length",
        (f"{SESSIONS}::test_a_long_message_is_sent_after_a_summary_of_the_earlier_messages",),
    ),
    Mutation(
        "compaction: a cancel while a summary request is written has no effect",
        "actors/session/compactor.py:Compactor._send_summary_request",
        "self._ask.cancelled",
        "False",
        ("tests/session/test_compaction.py::test_a_compaction_can_be_cancelled_at_any_moment",),
    ),
)
