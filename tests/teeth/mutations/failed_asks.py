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
        (f"{ASKS}::test_a_failed_ask_raises_and_its_session_continues",),
    ),
    Mutation(
        "failed asks: a caller that wants the result gets an exception",
        "actors/runtime/delivery.py:SessionCaller._check_result",
        'check and result.status == "failed"',
        'result.status == "failed"',
        (f"{ASKS}::test_with_check_false_a_failed_ask_returns_its_result",),
    ),
    Mutation(
        "failed asks: continuing an ask returns its failure",
        f"{HANDLE}.ask",
        "self._check_result(await sink.outcome(), check)",
        "self._check_result(await sink.outcome(), check and message is not None)",
        (f"{ASKS}::test_a_failed_continuation_raises_ask_failed_unless_check_is_false",),
    ),
    Mutation(
        "failed asks: an ask interrupted by a restart has failed",
        "actors/core/session/publishing.py:interrupted_result",
        'AskResult("", "interrupted", bound or NO_BINDING, attempts, 0, Usage(), why, turn=turn)',
        'AskResult("", "failed", bound or NO_BINDING, attempts, 0, Usage(), why, turn=turn)',
        (f"{ASKS}::test_an_ask_interrupted_by_a_restart_returns_a_result",),
    ),
    Mutation(
        "failed asks: the caller of a subagent receives its ask's exception",
        "actors/runtime/subagents.py:subagent",
        "child.ask(task, output=output, check=False)",
        "child.ask(task, output=output)",
        (f"{ASKS}::test_the_caller_of_a_failed_subagent_sees_the_error_of_the_subagent",),
    ),
    Mutation(
        "failed asks: a temporary failure is reported like a permanent one",
        f"{ADVICE}:_can_retry",
        'kind == each and act == "retry"',
        'kind == each and act == "never"',
        (f"{ASKS}::test_an_ask_can_be_repeated_after_a_transient_failure",),
    ),
    Mutation(
        "failed asks: only the command line adds advice",
        f"{ADVICE}:no_answer_message",
        "_cause(result), advice(result, config)",
        '_cause(result), ""',
        (f"{ASKS}::test_ask_failed_gives_the_same_advice_as_the_command_line",),
    ),
    Mutation(
        "failed asks: the variable of a refused key is not named",
        "actors/config/__init__.py:Config.credential_source",
        'f"the key in {named or usual}"',
        '"the key"',
        (f"{ASKS}::test_an_error_about_a_bad_api_key_names_its_environment_variable",),
    ),
    Mutation(
        "failed asks: a misspelt model is taken for a wrong address",
        f"{ADVICE}:advice",
        "(_key_advice, _model_advice, _parameter_advice, _address_advice)",
        "(_key_advice, _parameter_advice, _address_advice)",
        (f"{ADVISED}::test_the_nearest_name_of_an_unknown_model_is_suggested",),
    ),
    Mutation(
        "failed asks: a refused parameter is not named",
        f"{ADVICE}:advice",
        "(_key_advice, _model_advice, _parameter_advice, _address_advice)",
        "(_key_advice, _model_advice, _address_advice)",
        (f"{ADVISED}::test_the_advice_names_a_refused_parameter",),
    ),
    Mutation(
        "failed asks: a program ended by the error has a generic exit code",
        "actors/cli/exits.py:exit_for_error",
        'isinstance(error, AskFailed) and hasattr(error, "result")',
        "isinstance(error, AskFailed) and False",
        (f"{ASKS}::test_ask_failed_can_be_copied_pickled_and_mapped_to_an_exit_code",),
    ),
    Mutation(
        "failed asks: a cut text runs into the note",
        "actors/core/turn/answers.py:interrupted_message",
        'text and not text.endswith("\\n")',
        "False",
        (
            "tests/session/test_broken_answers.py::test_a_blank_line_separates_interrupted_text_from_the_interruption_note",
        ),
    ),
    Mutation(
        "failed asks: the error of a failed ask that a tool raises cannot be read",
        "actors/scheduler/failures.py:_describe_error",
        "error.result.error",
        "error.result.why",
        ("tests/session/test_ask_failed.py::test_the_model_sees_the_ask_failed_error_that_a_tool_raises",),
    ),
    Mutation(
        "failed asks: the model learns the number of errors in a group",
        "actors/scheduler/failures.py:describe_for_model",
        "is_group(error)",
        "False",
        (
            "tests/scheduler/test_grouped_errors.py::test_the_model_sees_the_text_of_each_exception_of_a_group",
        ),
    ),
)
