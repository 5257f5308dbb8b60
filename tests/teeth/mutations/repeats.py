"""Mutations of asks that are repeated with a key."""

from tests.teeth.mutations.mutation import Mutation

HERE, KILLS = "tests/session/test_repeated_asks.py", "tests/session/test_repeated_after_kills.py"
EVERY_KILL = f"{KILLS}::test_each_ask_key_has_one_result_after_a_kill_at_any_event"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "repeats: the log does not keep the key of an ask",
        "actors/session/driver.py:TurnDriver.run",
        "AskStarted(number, message, ask_settings, key)",
        "AskStarted(number, message, ask_settings)",
        (f"{HERE}::test_a_repeated_ask_on_another_host_returns_the_result_from_the_log",),
    ),
    Mutation(
        "repeats: an ask in flight is not joined",
        "actors/session/repeats.py:RepeatedAsks.try_answer",
        "is_in_flight or any(each is not self._pending.current for each in accepted)",
        "any(each is not self._pending.current for each in accepted)",
        (f"{HERE}::test_concurrent_asks_with_one_key_share_one_turn",),
    ),
    Mutation(
        "repeats: a queued ask is not joined",
        "actors/session/repeats.py:RepeatedAsks.try_answer",
        "is_in_flight or any(each is not self._pending.current for each in accepted)",
        "is_in_flight",
        (f"{HERE}::test_a_repeated_ask_joins_the_queued_ask_with_the_same_key",),
    ),
    Mutation(
        "repeats: the requests of an ask are traced for each of its callers",
        "actors/session/pending.py:Submit.pass_on",
        "self.own.put(event)",
        "self.sink.put(event)",
        (f"{HERE}::test_an_ask_shared_by_several_callers_is_traced_once",),
    ),
    Mutation(
        "repeats: an interrupted ask is never continued",
        "actors/core/session/state.py:SessionState.can_continue",
        "ask.ask == self.asks",
        "False",
        (f"{HERE}::test_an_ask_interrupted_by_a_kill_continues_in_a_further_turn",),
    ),
    Mutation(
        "repeats: an interrupted ask is continued after a later one",
        "actors/core/session/state.py:SessionState.can_continue",
        "ask.ask == self.asks",
        "True",
        (f"{HERE}::test_an_interrupted_ask_is_sent_again_after_a_later_ask",),
    ),
    Mutation(
        "repeats: an interrupted ask is continued without its message",
        "actors/core/session/state.py:SessionState.can_continue",
        "self.asked_at < self.history.length",
        "True",
        (f"{HERE}::test_an_interrupted_ask_that_was_rewound_is_sent_again",),
    ),
    Mutation(
        "repeats: a part of an answer is returned as the answer",
        "actors/session/driver.py:TurnDriver.continue_ask",
        "self.ask.add_instruction(AGAIN)",
        "pass",
        (f"{HERE}::test_an_answer_whose_turn_end_is_not_in_the_log_is_requested_again",),
    ),
    Mutation(
        "repeats: a continued ask loses its earlier totals",
        "actors/session/driver.py:TurnDriver.continue_ask",
        "AskTotals.from_log(totals, self.ask.resolver)",
        "AskTotals()",
        (EVERY_KILL,),
    ),
    Mutation(
        "repeats: the log loses the totals of an interrupted ask",
        "actors/core/session/publishing.py:Publisher._publish_turn_end",
        "event.ends_ask",
        "True",
        (EVERY_KILL,),
    ),
    Mutation(
        "repeats: a continued ask is forced to call its tool again",
        "actors/session/driver.py:TurnDriver.continue_ask",
        "any(message.calls for message in state.history.since(state.asked_at))",
        "False",
        (EVERY_KILL,),
    ),
    Mutation(
        "repeats: a compaction by the program ends an interrupted ask",
        "actors/session/driver.py:TurnDriver._compact",
        "0 if is_host_request else state.asks",
        "state.asks",
        (f"{HERE}::test_a_compaction_does_not_end_an_interrupted_ask",),
    ),
    Mutation(
        "repeats: an ask that its caller cancelled is continued",
        "actors/core/log/events.py:TurnEnded.ends_ask",
        "self.cause != LEAVING",
        'self.status != "cancelled"',
        (f"{HERE}::test_an_ask_cancelled_by_its_caller_stays_cancelled_when_repeated",),
    ),
    Mutation(
        "repeats: the end of a runtime cancels an ask for good",
        "actors/runtime/session_actors.py:SessionActors.interrupt",
        "Cancel(is_leaving=True)",
        "Cancel()",
        (f"{HERE}::test_an_ask_cancelled_by_leaving_its_runtime_continues_when_repeated",),
    ),
    Mutation(
        "repeats: a resumed turn cannot be joined",
        "actors/session/session_actor.py:SessionActor._continue_turn",
        "self._pending.key = self._log.state.last_key",
        "pass",
        (f"{HERE}::test_a_repeated_ask_whose_turn_pauses_again_is_answered",),
    ),
    Mutation(
        "repeats: a queued ask that is refused leaves its repeated asks waiting",
        "actors/session/pending.py:PendingAsks._close",
        "self._end_joined(submit.key.name, error)",
        "pass",
        (f"{HERE}::test_repeated_asks_are_refused_if_the_queued_first_ask_is_refused",),
    ),
    Mutation(
        "repeats: a session that has ended leaves repeated asks waiting",
        "actors/session/pending.py:PendingAsks._deliver",
        "repeated.answer(self.terminal)",
        "pass",
        (f"{HERE}::test_repeated_asks_end_with_their_first_ask_when_the_session_closes",),
    ),
    Mutation(
        "repeats: any number of repeated asks waits",
        "actors/session/repeats.py:RepeatedAsks._check_queue_space",
        "waiting >= MAX_REPEATED",
        "False",
        (f"{HERE}::test_the_number_of_waiting_repeated_asks_is_bounded",),
    ),
    Mutation(
        "repeats: a key is accepted with another message",
        "actors/session/repeats.py:RepeatedAsks.try_answer",
        "key != submit.key",
        "key.name != submit.key.name",
        (f"{HERE}::test_an_ask_key_belongs_to_one_message",),
    ),
)
