"""Mutations of compaction: cut points, named results, lanes, the summarizer, and the moment."""

from tests.teeth.mutations.mutation import Mutation

RULES, COMPACTOR, DRIVER = (
    "actors/core/history/compaction.py",
    "actors/session/compactor.py",
    "actors/session/driver.py",
)
STATE, TURN = "actors/core/session/state.py", "actors/core/turn/turn.py"
LANES = "actors/core/session/lanes.py"
CORE, SESSIONS = "tests/core/test_compaction.py", "tests/session/test_compaction.py"
ELSEWHERE = "tests/session/test_compaction_elsewhere.py"

MUTATIONS = (
    Mutation(
        "compaction: a turn compacts three times, whatever its length",
        f"{TURN}:_TurnRules.next",
        "self._shrinks = 0",
        "",
        (
            f"{SESSIONS}::test_one_long_turn_makes_room_as_often_as_its_window_is_full",
            "tests/core/test_turn.py::test_every_sequence_of_outcomes_follows_the_table",
        ),
    ),
    Mutation(
        "compaction: a single long turn is never compacted",
        f"{COMPACTOR}:Compactor.after_overflow",
        "replace(summarised, results=(await self._shorten(short)).results) if short else summarised",
        "summarised",
        (f"{SESSIONS}::test_one_long_turn_makes_room_of_the_results_that_its_model_has_had",),
    ),
    Mutation(
        "compaction: a result that the model has not seen becomes a mark",
        f"{RULES}:last_batch",
        "max((at for at, message in enumerate(messages) if message.calls), default=0)",
        "len(messages)",
        (f"{SESSIONS}::test_one_long_turn_makes_room_of_the_results_that_its_model_has_had",),
    ),
    Mutation(
        "compaction: the summarizer backend need not exist",
        "actors/runtime/backends.py:RuntimeBackends.__init__",
        "(summarizer := self.compaction.summarizer) is not None",
        "(summarizer := self.compaction.summarizer) == 0",
        (f"{ELSEWHERE}::test_a_file_says_when_histories_are_made_shorter_and_a_program_comes_first",),
    ),
    Mutation(
        "compaction: a history is cut within a turn",
        f"{RULES}:_within",
        "later is not None and later.turn == messages[last].turn",
        "False",
        (f"{CORE}::test_it_is_cut_where_a_turn_begins_and_nowhere_else",),
    ),
    Mutation(
        "compaction: results that the summary does not name are not listed",
        f"{RULES}:summary",
        "each not in said",
        "each in said",
        (f"{CORE}::test_what_the_model_does_not_name_is_listed",),
    ),
    Mutation(
        "compaction: a second summary forgets the results of the first",
        f"{RULES}:summary_scope",
        "known.call_id not in visible and ... and ...",
        "... and ... and any((call.id == known.call_id for message in messages[:stop] for call in message.calls))",
        (f"{CORE}::test_a_second_summary_names_what_the_first_stood_for",),
    ),
    Mutation(
        "compaction: attachments are not counted",
        f"{RULES}:summary",
        "(*..., *kept)",
        "(*...,)",
        (f"{CORE}::test_attachments_of_the_user_go_along_the_newest_first",),
    ),
    Mutation(
        "compaction: the later of two equal calls is trimmed",
        f"{RULES}:repeated_results",
        "reversed(messages)",
        "messages",
        (f"{CORE}::test_of_two_calls_that_are_the_same_the_earlier_is_shortened_and_long_results_are",),
    ),
    Mutation(
        "compaction: lanes continue as if the history were unchanged",
        f"{LANES}:_after_shrinking",
        '_mark_stale(lane, "compaction")',
        "lane",
        (f"{CORE}::test_a_result_that_was_shortened_is_a_mark_on_the_wire_and_whole_in_the_ledger",),
    ),
    Mutation(
        "compaction: a summary request enters its lane",
        f"{LANES}:Lanes.apply",
        """
        case RequestSent(aside=False):
            ...
        """,
        """
        case RequestSent():
            ...
        """,
        (f"{CORE}::test_a_request_for_a_summary_leaves_the_lane_as_it_was",),
    ),
    Mutation(
        "compaction: a mark does not state the original size",
        "actors/core/render/choose.py:mark",
        'f"The result of {tool} was left out here, {len(words) - 2} bytes{beside}"',
        'f"The result of {tool} was left out here, 0 bytes{beside}"',
        (f"{CORE}::test_a_result_that_was_shortened_is_a_mark_on_the_wire_and_whole_in_the_ledger",),
    ),
    Mutation(
        "compaction: the renderer is not notified",
        f"{COMPACTOR}:Compactor._hold",
        "await self._ask.refs.renderer.send(Shrink(event))",
        "",
        (f"{SESSIONS}::test_marks_alone_are_enough_where_they_save_as_much_as_is_needed",),
    ),
    Mutation(
        "compaction: a summary request turns tools off where this misses the cache",
        f"{COMPACTOR}:Compactor._choice",
        'None if is_marked else "none"',
        '"none"',
        (f"{SESSIONS}::test_a_history_is_made_shorter_by_hand_and_the_next_request_is_accepted",),
    ),
    Mutation(
        "compaction: without a summary nothing is trimmed",
        f"{COMPACTOR}:Compactor._summarise",
        "self._shortenable(known, old=bool(made.error), before=before)",
        "{}",
        (f"{SESSIONS}::test_without_a_summary_marks_are_all_and_nothing_is_lost",),
    ),
    Mutation(
        "compaction: a summary is requested although marks suffice",
        f"{COMPACTOR}:Compactor.make_room",
        "short and self._tokens_left(known, short) <= tokens",
        "not known",
        (f"{SESSIONS}::test_marks_alone_are_enough_where_they_save_as_much_as_is_needed",),
    ),
    Mutation(
        "compaction: a too long request ends its turn",
        f"{TURN}:_TurnRules.next",
        "self._shrinks < SHRINKS",
        "self._shrinks < 0",
        (f"{SESSIONS}::test_a_request_that_was_too_long_is_made_again_with_a_shorter_history",),
    ),
    Mutation(
        "compaction: a history is compacted endlessly",
        f"{TURN}:_TurnRules.next",
        "self._shrinks += 1",
        "",
        ("tests/core/test_turn.py::test_every_sequence_of_outcomes_follows_the_table",),
    ),
    Mutation(
        "compaction: kept turns are never trimmed although a request is still too long",
        f"{COMPACTOR}:Compactor.after_overflow",
        "self._summarise_in_parts(0 if again else self._settings.keep_turns)",
        "self._summarise_in_parts(self._settings.keep_turns)",
        (f"{SESSIONS}::test_what_is_still_too_long_is_made_shorter_again",),
    ),
    Mutation(
        "compaction: no other backend summarises for one that cannot",
        f"{DRIVER}:TurnDriver._may_make_room",
        "return self._was_helped",
        "return False",
        (f"{SESSIONS}::test_who_answered_last_makes_room_for_one_that_cannot",),
    ),
    Mutation(
        "compaction: no compaction runs before a turn",
        "actors/provider/resolver.py:too_full",
        "expected_tokens(resolver, state, known, binding) < most",
        "most",
        (f"{SESSIONS}::test_room_is_made_before_the_window_is_full_and_no_request_is_too_long",),
    ),
    Mutation(
        "compaction: the smaller backend writes the summary",
        f"{DRIVER}:TurnDriver._writer",
        "resolver.member(measured.binding)",
        "member",
        (f"{SESSIONS}::test_a_switch_to_a_smaller_window_makes_room_first_on_who_has_the_larger",),
    ),
    Mutation(
        "compaction: an ask is assumed to begin with its turn",
        f"{STATE}:SessionState._go_on",
        "replace(self, turns=turn, bound=binding)",
        "replace(self, turns=turn, bound=binding, asked_at=self.history.length)",
        ("tests/core/test_state.py",),
    ),
    Mutation(
        "compaction: the start of an ask does not move when earlier messages are replaced",
        f"{STATE}:SessionState._shrink",
        "max(0, self.asked_at - (stop - start) + 1)",
        "self.asked_at",
        ("tests/core/test_state.py",),
    ),
    Mutation(
        "compaction: the usage of a summary is lost when the ask is cancelled",
        "actors/session/inflight.py:stopped_outcome",
        "turns.Answered | turns.RequestFailed | turns.CompactionEnded",
        "turns.Answered | turns.RequestFailed",
        (SESSIONS,),
    ),
    Mutation(
        "compaction: text before a call counts as a summary",
        f"{COMPACTOR}:_summary_of",
        "message.calls",
        "message.calls and (not message.text)",
        (f"{SESSIONS}::test_what_is_no_summary_stands_for_nothing",),
    ),
    Mutation(
        "compaction: a filtered summary counts as complete",
        f"{COMPACTOR}:_summary_of",
        "(*...,)",
        '(*..., "filter")',
        (
            f"{SESSIONS}"
            "::test_a_summary_that_a_filter_cut_stands_for_nothing_and_one_at_its_limit_says_that_it_is_cut",
        ),
    ),
    Mutation(
        "compaction: a summary may be longer than its original",
        f"{RULES}:is_longer",
        "size > FEW and size > tokens_of(history.upto(stop), ledger, 1.0)",
        "False",
        (
            f"{CORE}::test_few_words_are_a_summary_of_anything_and_many_of_more_only",
            f"{SESSIONS}::test_what_is_no_summary_stands_for_nothing",
        ),
    ),
    Mutation(
        "compaction: compaction runs although it saves almost nothing",
        "actors/provider/resolver.py:too_full",
        "possible_savings(state.history, known, settings, before, ratio) >= most * WORTH",
        "possible_savings(state.history, known, settings, before, ratio)",
        (f"{SESSIONS}::test_no_room_is_made_by_summaries_of_next_to_nothing",),
    ),
    Mutation(
        "compaction: attachments of results are not counted",
        "actors/core/history/estimate.py:tokens_of_results",
        "media += len(answer[2])",
        "",
        (f"{SESSIONS}::test_marks_alone_are_enough_where_they_save_as_much_as_is_needed",),
    ),
    Mutation(
        "compaction: the last backend writes the summary although it is gone",
        f"{DRIVER}:TurnDriver._writer",
        "return member",
        "return last",
        (f"{SESSIONS}::test_if_who_answered_last_is_gone_who_is_asked_writes_the_summary",),
    ),
    Mutation(
        "compaction: the context window of a price is ignored",
        "actors/provider/pricing.py:Pricing._window_given",
        "None if price is None else price.context",
        "None",
        (f"{ELSEWHERE}::test_the_window_of_a_price_counts_where_the_backend_says_none",),
    ),
    Mutation(
        "compaction: the settings of the file are ignored",
        "actors/runtime/backends.py:RuntimeBackends.__init__",
        "settings.compaction",
        "Compaction()",
        (f"{ELSEWHERE}::test_a_file_says_when_histories_are_made_shorter_and_a_program_comes_first",),
    ),
    Mutation(
        "compaction: a fork shows trimmed results in full",
        "actors/core/session/recovery.py:fork_log",
        "type(each) is not Closed",
        'type(each).__name__ not in ("Closed", "Shortened")',
        (f"{ELSEWHERE}::test_a_fork_and_an_imported_file_show_what_was_made_shorter_as_it_was",),
    ),
    Mutation(
        "compaction: the too long request is sent again as a summary request",
        f"{LANES}:Lanes._render_lane",
        "lane._state.cursor > history.length - aside",
        "lane._state.cursor > history.length",
        (f"{SESSIONS}::test_words_that_were_too_long_at_once_are_sent_behind_a_summary_of_those_before",),
    ),
    Mutation(
        "compaction: a cancel while a summary request is written has no effect",
        "actors/session/compactor.py:Compactor._exchange",
        "self._ask.cancelled",
        "False",
        ("tests/session/test_compaction.py::test_a_compaction_is_cancelled_at_any_moment_of_it",),
    ),
)
