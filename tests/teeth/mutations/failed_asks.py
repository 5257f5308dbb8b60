"""Mutations of failed asks: exceptions, results, and the advice of the error."""

from tests.teeth.mutations.mutation import Mutation

HANDLE, ADVICE = "actors/runtime/handle.py:Session", "actors/provider/advice.py"
ASKS, ADVISED = "tests/session/test_ask_failed.py", "tests/provider/test_advice.py"

MUTATIONS = (
    Mutation(
        "failed asks: a failure is returned as a result with an empty text",
        "actors/runtime/delivery.py:SessionCaller._check_result",
        'check and result.status == "failed"',
        'check and result.status == "never"',
        (f"{ASKS}::test_an_ask_that_fails_raises_and_its_session_goes_on",),
    ),
    Mutation(
        "failed asks: a caller that wants the result gets an exception",
        "actors/runtime/delivery.py:SessionCaller._check_result",
        'check and result.status == "failed"',
        'result.status == "failed"',
        (f"{ASKS}::test_without_check_the_same_result_is_returned",),
    ),
    Mutation(
        "failed asks: continuing an ask returns its failure",
        f"{HANDLE}.ask",
        "self._check_result(await sink.outcome(), check)",
        "self._check_result(await sink.outcome(), check and message is not None)",
        (f"{ASKS}::test_what_goes_on_with_an_ask_raises_as_the_ask_would",),
    ),
    Mutation(
        "failed asks: an ask interrupted by a restart has failed",
        "actors/core/session/publishing.py:interrupted_result",
        'AskResult("", "interrupted", bound or NOBODY, attempts, 0, Usage(), why, turn=turn)',
        'AskResult("", "failed", bound or NOBODY, attempts, 0, Usage(), why, turn=turn)',
        (f"{ASKS}::test_an_ask_that_a_restart_interrupts_is_a_result",),
    ),
    Mutation(
        "failed asks: the caller of a subagent receives its ask's exception",
        "actors/runtime/subagents.py:subagent",
        "child.ask(task, output=output, check=False)",
        "child.ask(task, output=output)",
        (f"{ASKS}::test_who_calls_a_subagent_sees_that_it_failed",),
    ),
    Mutation(
        "failed asks: a temporary failure is reported like a permanent one",
        f"{ADVICE}:_can_retry",
        'kind == each and act == "retry"',
        'kind == each and act == "never"',
        (f"{ASKS}::test_a_failure_that_passes_can_be_tried_again",),
    ),
    Mutation(
        "failed asks: only the command line adds advice",
        f"{ADVICE}:no_answer",
        "_cause(result), advice(result, config)",
        '_cause(result), ""',
        (f"{ASKS}::test_the_error_says_what_to_try_as_the_command_line_does",),
    ),
    Mutation(
        "failed asks: the variable of a refused key is not named",
        "actors/config/__init__.py:Config.credential_source",
        'f"the key in {named or usual}"',
        '"the key"',
        (f"{ASKS}::test_of_a_bad_key_the_error_names_the_variable",),
    ),
    Mutation(
        "failed asks: a misspelt model is taken for a wrong address",
        f"{ADVICE}:advice",
        "(_of_key, _of_model, _of_parameter, _of_address)",
        "(_of_key, _of_parameter, _of_address)",
        (f"{ADVISED}::test_of_a_model_that_is_not_there_the_nearest_is_named",),
    ),
    Mutation(
        "failed asks: a refused parameter is not named",
        f"{ADVICE}:advice",
        "(_of_key, _of_model, _of_parameter, _of_address)",
        "(_of_key, _of_model, _of_address)",
        (f"{ADVISED}::test_a_parameter_that_is_refused_is_named",),
    ),
    Mutation(
        "failed asks: a program ended by the error has a generic exit code",
        "actors/cli/exits.py:of_error",
        'isinstance(error, AskFailed) and hasattr(error, "result")',
        "isinstance(error, AskFailed) and False",
        (f"{ASKS}::test_the_error_can_be_copied_pickled_and_turned_into_an_exit_code",),
    ),
    Mutation(
        "failed asks: a cut text runs into the note",
        "actors/core/turn/broken_answer.py:interrupted_message",
        'text and not text.endswith("\\n")',
        "False",
        ("tests/session/test_broken_answers.py::test_a_text_that_is_cut_is_not_run_together_with_the_note",),
    ),
    Mutation(
        "failed asks: the model learns the number of errors in a group",
        "actors/scheduler/calls.py:for_model",
        "is_group(error)",
        "False",
        ("tests/scheduler/test_grouped_errors.py::test_the_model_is_told_the_text_of_each_error_of_a_group",),
    ),
)
