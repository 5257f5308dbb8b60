"""Mistakes in asks that are repeated with a key."""

from tests.teeth.mutations.mutation import Mutation

HERE = "tests/session/test_repeated_asks.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "repeats: the log does not keep the key of an ask",
        "actors/session/driver.py:TurnDriver.run",
        "AskStarted(number, message, asked, key)",
        "AskStarted(number, message, asked)",
        (f"{HERE}::test_another_host_returns_the_result_from_the_log",),
    ),
    Mutation(
        "repeats: a repetition waits in the queue and misses the events of the ask in flight",
        "actors/session/pending.py:PendingAsks.with_key",
        "each.key.name == key.name",
        "False",
        (f"{HERE}::test_callers_that_ask_with_one_key_at_a_time_share_one_turn",),
    ),
    Mutation(
        "repeats: the requests of an ask are traced for each of its callers",
        "actors/session/streams.py:JoinedSink.put",
        "sink if is_end else own",
        "sink",
        (f"{HERE}::test_a_joined_ask_is_traced_once",),
    ),
    Mutation(
        "repeats: an interrupted ask is never continued",
        "actors/core/session/state.py:SessionState.continues",
        "found.ask == self.asks and self.is_interrupted",
        "False",
        (f"{HERE}::test_an_ask_that_a_kill_interrupted_continues_in_a_further_turn",),
    ),
    Mutation(
        "repeats: an interrupted ask is continued behind a later one",
        "actors/core/session/state.py:SessionState.continues",
        "found.ask == self.asks and self.is_interrupted",
        "self.is_interrupted or found.ask != self.asks",
        (f"{HERE}::test_an_interrupted_ask_is_not_continued_behind_a_later_ask",),
    ),
    Mutation(
        "repeats: an answer without the end of its turn is asked for again",
        "actors/session/driver.py:TurnDriver._is_answer",
        "return True",
        "return False",
        (f"{HERE}::test_an_answer_that_a_kill_left_without_the_end_of_its_turn_is_returned",),
    ),
    Mutation(
        "repeats: an ask that its caller cancelled is continued",
        "actors/core/session/state.py:_was_interrupted",
        'event.cause is not None and event.cause.kind == "leaving"',
        'event.status == "cancelled"',
        (f"{HERE}::test_an_ask_that_its_caller_cancelled_stays_cancelled",),
    ),
    Mutation(
        "repeats: the end of a runtime cancels an ask for good",
        "actors/runtime/session_actors.py:SessionActors.interrupt",
        "Cancel(is_leaving=True)",
        "Cancel()",
        (f"{HERE}::test_an_ask_that_the_end_of_its_runtime_cancelled_continues",),
    ),
    Mutation(
        "repeats: a key is given to another message",
        "actors/session/repeats.py:check_same",
        "each is not None and each.digest != repeated.digest",
        "False",
        (f"{HERE}::test_a_key_belongs_to_one_message",),
    ),
)
