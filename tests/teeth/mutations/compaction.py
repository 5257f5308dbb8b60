"""Histories made shorter: where they are cut, what is named, what lanes do, who is asked and when."""

from tests.teeth.mutations.mutation import Mutation

RULES, SHRINKING, DRIVER = "actors/core/compaction.py", "actors/turns/shrinking.py", "actors/turns/driver.py"
STATE, TURN = "actors/core/state.py", "actors/core/turn.py"
CORE, SESSIONS = "tests/core/test_compaction.py", "tests/test_compaction.py"
ELSEWHERE = "tests/test_compaction_elsewhere.py"

MUTATIONS = (
    Mutation(
        "compaction: who is to write summaries need not be there",
        "actors/runtime.py",
        "if (writer := self.compaction.by) is not None:",
        "if (writer := self.compaction.by) == 0:",
        (f"{ELSEWHERE}::test_a_file_says_when_histories_are_made_shorter_and_a_program_comes_first",),
    ),
    Mutation(
        "compaction: a history is cut within a turn",
        RULES,
        "return later is not None and later.turn == messages[last].turn",
        "return False",
        (f"{CORE}::test_it_is_cut_where_a_turn_begins_and_nowhere_else",),
    ),
    Mutation(
        "compaction: what the model does not name is not listed",
        RULES,
        "if each not in said}:",
        "if each in said}:",
        (f"{CORE}::test_what_the_model_does_not_name_is_listed",),
    ),
    Mutation(
        "compaction: a second summary forgets what the first stood for",
        RULES,
        "if known.call_id not in visible and known.completion is not None",
        "if known.completion is not None and any(\n"
        "            call.id == known.call_id for message in messages[:stop] for call in message.calls\n"
        "        )",
        (f"{CORE}::test_a_second_summary_names_what_the_first_stood_for",),
    ),
    Mutation(
        "compaction: attachments stay behind",
        RULES,
        'blocks: tuple[Text | Media, ...] = (Text("\\n\\n".join(lines)), *kept)',
        'blocks: tuple[Text | Media, ...] = (Text("\\n\\n".join(lines)),)',
        (f"{CORE}::test_attachments_of_the_user_go_along_the_newest_first",),
    ),
    Mutation(
        "compaction: the later of two calls that are the same is shortened",
        RULES,
        "    for message in reversed(messages):\n",
        "    for message in messages:\n",
        (f"{CORE}::test_of_two_calls_that_are_the_same_the_earlier_is_shortened_and_long_results_are",),
    ),
    Mutation(
        "compaction: lanes go on as if the history were the same",
        STATE,
        'return _outdated(lane, "compaction")',
        "return lane",
        (f"{CORE}::test_a_result_that_was_shortened_is_a_mark_on_the_wire_and_whole_in_the_ledger",),
    ),
    Mutation(
        "compaction: a request for a summary is taken into its lane",
        STATE,
        "case RequestSent(aside=False):",
        "case RequestSent():",
        (f"{CORE}::test_a_request_for_a_summary_leaves_the_lane_as_it_was",),
    ),
    Mutation(
        "compaction: a mark does not say how much there was",
        "actors/core/render/choose.py",
        "{len(words) - 2} bytes",
        "0 bytes",
        (f"{CORE}::test_a_result_that_was_shortened_is_a_mark_on_the_wire_and_whole_in_the_ledger",),
    ),
    Mutation(
        "compaction: the renderer is not told",
        SHRINKING,
        "        await self._refs.renderer.tell(Shrink(event))\n",
        "",
        (f"{SESSIONS}::test_marks_alone_are_enough_where_they_save_as_much_as_is_needed",),
    ),
    Mutation(
        "compaction: a request for a summary forbids tools where that misses the cache",
        SHRINKING,
        'None if is_marked else "none"',
        '"none"',
        (f"{SESSIONS}::test_a_history_is_made_shorter_by_hand_and_the_next_request_is_accepted",),
    ),
    Mutation(
        "compaction: without a summary nothing is done",
        SHRINKING,
        "short = self._cheap(known, old=bool(made.why), before=before)",
        "short = {}",
        (f"{SESSIONS}::test_without_a_summary_marks_are_all_and_nothing_is_lost",),
    ),
    Mutation(
        "compaction: a summary is asked for although marks are enough",
        SHRINKING,
        "        if short and self._left(known, short) <= tokens:\n",
        "        if not known:\n",
        (f"{SESSIONS}::test_marks_alone_are_enough_where_they_save_as_much_as_is_needed",),
    ),
    Mutation(
        "compaction: a request that was too long ends its turn",
        TURN,
        "Broke(too_long=True) if self._shrinks < SHRINKS:",
        "Broke(too_long=True) if self._shrinks < 0:",
        (f"{SESSIONS}::test_a_request_that_was_too_long_is_made_again_with_a_shorter_history",),
    ),
    Mutation(
        "compaction: a history is made shorter without end",
        TURN,
        "                self._shrinks += 1\n",
        "",
        ("tests/core/test_turn.py::test_every_sequence_of_outcomes_follows_the_table",),
    ),
    Mutation(
        "compaction: the turns that are kept stay although a request is still too long",
        SHRINKING,
        "0 if again else self._settings.keep",
        "self._settings.keep",
        (f"{SESSIONS}::test_what_is_still_too_long_is_made_shorter_again",),
    ),
    Mutation(
        "compaction: nobody makes room for a backend that cannot",
        DRIVER,
        "        return self._was_helped\n",
        "        return False\n",
        (f"{SESSIONS}::test_who_answered_last_makes_room_for_one_that_cannot",),
    ),
    Mutation(
        "compaction: no room is made before a turn",
        "actors/backends/backend.py",
        "    if expected(resolver, state, known, binding) < most:\n",
        "    if most:\n",
        (f"{SESSIONS}::test_room_is_made_before_the_window_is_full_and_no_request_is_too_long",),
    ),
    Mutation(
        "compaction: the smaller backend is asked for the summary",
        DRIVER,
        "            return resolver.compaction.by or member\n        last = resolver.member(measured.binding)\n",
        "            return resolver.compaction.by or member\n        last = member\n",
        (f"{SESSIONS}::test_a_switch_to_a_smaller_window_makes_room_first_on_who_has_the_larger",),
    ),
    Mutation(
        "compaction: an ask is thought to begin with its turn",
        STATE,
        "                return replace(self, turns=turn, bound=binding)",
        "                return replace(self, turns=turn, bound=binding, asked_at=self.history.length)",
        ("tests/core/test_state.py",),
    ),
    Mutation(
        "compaction: where an ask begins stays when what is before it is replaced",
        STATE,
        "at = max(0, at - (stop - start) + 1)",
        "pass",
        ("tests/core/test_state.py",),
    ),
    Mutation(
        "compaction: what a summary used is lost when the ask is cancelled meanwhile",
        DRIVER,
        "turns.Answered | turns.Broke | turns.Shrunk):\n        return turns.Stopped",
        "turns.Answered | turns.Broke):\n        return turns.Stopped",
        (SESSIONS,),
    ),
    Mutation(
        "compaction: words ahead of a call pass for a summary",
        SHRINKING,
        "case Answer(message=message) if message.calls:",
        "case Answer(message=message) if message.calls and not message.text:",
        (f"{SESSIONS}::test_what_is_no_summary_stands_for_nothing",),
    ),
    Mutation(
        "compaction: a summary that was filtered passes for a whole one",
        SHRINKING,
        'if cut not in (None, "length"):',
        'if cut not in (None, "length", "filter"):',
        (
            f"{SESSIONS}"
            "::test_a_summary_that_a_filter_cut_stands_for_nothing_and_one_at_its_limit_says_that_it_is_cut",
        ),
    ),
    Mutation(
        "compaction: a summary may be longer than what it stands for",
        RULES,
        "return size > FEW and size > tokens_of(history.upto(stop), ledger, 1.0)",
        "return False",
        (
            f"{CORE}::test_few_words_are_a_summary_of_anything_and_many_of_more_only",
            f"{SESSIONS}::test_what_is_no_summary_stands_for_nothing",
        ),
    ),
    Mutation(
        "compaction: room is made although next to nothing would be saved",
        "actors/backends/backend.py",
        ">= most * WORTH else None",
        "else None",
        (f"{SESSIONS}::test_no_room_is_made_by_summaries_of_next_to_nothing",),
    ),
    Mutation(
        "compaction: the attachments of results count for nothing",
        "actors/core/estimate.py",
        "            media += len(answer[2])\n",
        "",
        (f"{SESSIONS}::test_marks_alone_are_enough_where_they_save_as_much_as_is_needed",),
    ),
    Mutation(
        "compaction: who answered last writes the summary although it is gone",
        DRIVER,
        "with another configuration\n            return member\n",
        "\n            return last\n",
        (f"{SESSIONS}::test_if_who_answered_last_is_gone_who_is_asked_writes_the_summary",),
    ),
    Mutation(
        "compaction: the window of a price is nobody's",
        "actors/backends/pricing.py",
        "return None if price is None else price.context",
        "return None",
        (f"{ELSEWHERE}::test_the_window_of_a_price_counts_where_the_backend_says_none",),
    ),
    Mutation(
        "compaction: what the file says of it is not read",
        RULES,
        "return Compaction(**filed.model_dump())",
        "return Compaction(**type(filed)().model_dump())",
        (f"{ELSEWHERE}::test_a_file_says_when_histories_are_made_shorter_and_a_program_comes_first",),
    ),
    Mutation(
        "compaction: a fork shows long results whole again",
        "actors/core/closing.py",
        "*(each for each in rest if type(each) is not Closed),",
        '*(each for each in rest if type(each).__name__ not in ("Closed", "Shortened")),',
        (f"{ELSEWHERE}::test_a_fork_and_an_imported_file_show_what_was_made_shorter_as_it_was",),
    ),
    Mutation(
        "compaction: the request that was too long is sent again as that for its summary",
        STATE,
        "lane.state.cursor > history.length - aside",
        "lane.state.cursor > history.length",
        (f"{SESSIONS}::test_words_that_were_too_long_at_once_are_sent_behind_a_summary_of_those_before",),
    ),
)
