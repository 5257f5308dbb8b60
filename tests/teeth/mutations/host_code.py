"""Mistakes in how functions of the program's are called."""

from tests.teeth.mutations.mutation import Mutation

TABLE = "tests/host_code/test_host_code.py"
PLAYS = f"{TABLE}::test_host_code_that_raises_spoils_nothing_but_what_it_was_asked_for"

MUTATIONS = (
    Mutation(
        "host code: an exit is let through",
        "actors/kernel/host_code.py:call_host",
        "try:\n    ...\nexcept BaseException as error:\n    ...",
        "try:\n    ...\nexcept Exception as error:\n    ...",
        (PLAYS,),
    ),
    Mutation(
        "host code: a group is judged by its own class",
        "actors/kernel/host_code.py:is_delivered",
        "isinstance(error, BaseExceptionGroup)",
        "False",
        (f"{TABLE}::test_an_interrupt_that_a_signal_delivers_passes_and_one_that_is_raised_does_not",),
    ),
    Mutation(
        "host code: every interrupt is taken for one that a signal delivered",
        "actors/kernel/host_code.py:is_delivered",
        "last.tb_frame.f_code.co_code[last.tb_lasti] != _RAISE",
        "True",
        (PLAYS,),
    ),
    Mutation(
        "host code: an interrupt that a signal delivered is taken for the code's own failure",
        "actors/kernel/host_code.py:call_host",
        "is_delivered(error)",
        "False",
        (f"{TABLE}::test_an_interrupt_that_a_signal_delivers_passes_and_one_that_is_raised_does_not",),
    ),
    Mutation(
        "host code: the type of an answer crashes its session",
        "actors/turns/output.py:Output.read",
        "call_host(partial(self._read, value), _unreadable)",
        "self._read(value)",
        (PLAYS,),
    ),
    Mutation(
        "host code: an approval rule that raises has approved",
        "actors/scheduler.py:_Guarded._denied",
        "'deny'",
        "'allow'",
        (PLAYS,),
    ),
    Mutation(
        "host code: a rule of resources that raises is no fault of its call",
        "actors/execution/calls.py:Running._note_fault",
        "self._fault = error",
        "pass",
        (PLAYS,),
    ),
)
