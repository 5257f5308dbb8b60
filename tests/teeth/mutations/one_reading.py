"""Mistakes in reading what a model wrote with a slip, and in importing the MCP SDK."""

from tests.teeth.mutations.mutation import Mutation

HERE = "tests/test_one_reading.py"
READINGS = "tests/core/test_readings.py"
IMPORT = "tests/test_mcp_import.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "repair: of two readings that fit the first is taken",
        "actors/core/readings.py:only_reading",
        "len(found) > 1",
        "len(found) > 2",
        (f"{READINGS}::test_of_two_readings_that_fit_none_is_chosen",),
    ),
    Mutation(
        "repair: a text is read only where the schema names its type itself",
        "actors/core/readings.py:_cures",
        "kind in _ANY_BRANCH",
        "False",
        (f"{READINGS}::test_a_text_that_is_the_json_of_the_schemas_type_is_read_as_that",),
    ),
    Mutation(
        "repair: a reading is not checked against the schema",
        "actors/core/readings.py:_Search.readings",
        "self._check.is_valid(changed[0])",
        "True",
        (f"{READINGS}::test_a_value_without_a_reading_that_fits_is_left_to_the_model",),
    ),
    Mutation(
        "repair: a call is judged with its repaired arguments and kept with the model's",
        "actors/core/batch.py:_bound",
        "call = replace(call, json=JsonObject(dump(reading.value)), raw=None)",
        "call = replace(call, raw=None)",
        (f"{HERE}::test_arguments_with_one_reading_run_the_tool_at_once",),
    ),
    Mutation(
        "repair: rules are asked about the arguments that the model wrote",
        "actors/core/batch.py:_bound",
        "_Bound(call, read, repairs + reading.repairs, reading.value)",
        "_Bound(call, read, repairs + reading.repairs, arguments)",
        (f"{HERE}::test_arguments_with_one_reading_run_the_tool_at_once",),
    ),
    Mutation(
        "repair: strict arguments are repaired all the same",
        "actors/core/batch.py:_bound",
        'repair == "strict" or not isinstance(bound, tuple)',
        "not isinstance(bound, tuple)",
        (f"{HERE}::test_strict_refuses_what_could_be_repaired",),
    ),
    Mutation(
        "repair: a fence and commas are read past in strict arguments",
        "actors/core/batch.py:_bound",
        'repair != "strict" and call.raw is not None',
        "call.raw is not None",
        (f"{HERE}::test_strict_refuses_what_could_be_repaired",),
    ),
    Mutation(
        "repair: the setting of an ask is not heeded",
        "actors/core/bounds.py:Bounds.for_ask",
        "asked.repair or self.repair",
        "self.repair",
        (f"{HERE}::test_strict_refuses_what_could_be_repaired",),
    ),
    Mutation(
        "repair: it is not counted",
        "actors/scheduler.py:_Batch._record",
        "sum(bool(event.repaired) for event in scheduled)",
        "0 * len(scheduled)",
        (f"{HERE}::test_arguments_with_one_reading_run_the_tool_at_once",),
    ),
    Mutation(
        "repair: readers of the stream do not hear of it",
        "actors/scheduler.py:_Batch.run",
        "self._show_repaired(*...)",
        "None",
        (f"{HERE}::test_arguments_with_one_reading_run_the_tool_at_once",),
    ),
    Mutation(
        "repair: a call that waits is shown as the model wrote it",
        "actors/core/awaiting.py:pending",
        "_scheduled(state, ledger)",
        "_calls(state)",
        (
            f"{HERE}::test_a_call_that_waits_is_looked_at_and_runs_with_its_repaired_arguments",
            f"{HERE}::test_an_external_call_is_handed_out_with_its_repaired_arguments",
        ),
    ),
    Mutation(
        "repair: a session that pauses forgets with which arguments its calls wait",
        "actors/turns/driver.py:TurnDriver._wait",
        "pending(log.state, ledger)",
        "pending(log.state, log.state.ledger)",
        (f"{HERE}::test_an_external_call_is_handed_out_with_its_repaired_arguments",),
    ),
    Mutation(
        "answers: of two values that have the form one is taken",
        "actors/turns/output.py:Output.read",
        "len(fitting) != 1",
        "not fitting",
        (f"{HERE}::test_an_answer_with_no_reading_or_several_is_corrected",),
    ),
    Mutation(
        "answers: a part of broken JSON is taken for the answer",
        "actors/core/output.py:_Words._bracketed",
        "self._at = stop or start + 1",
        "self._at = start + 1",
        (f"{HERE}::test_an_answer_with_no_reading_or_several_is_corrected",),
    ),
    Mutation(
        "answers: a value in the reasoning counts",
        "actors/core/output.py:_answer_in",
        "behind if tag and '<think>' not in opened else rest",
        "text",
        (f"{HERE}::test_slips_of_an_answer_with_one_reading_are_read_past",),
    ),
    Mutation(
        "answers: strict ones are repaired all the same",
        "actors/core/output.py:candidates",
        "repair == 'strict' or len(text) > MAX_ANSWER",
        "len(text) > MAX_ANSWER",
        (f"{HERE}::test_strict_refuses_an_answer_that_could_be_repaired",),
    ),
    Mutation(
        "answers: their repair is not in the log",
        "actors/turns/driver.py:TurnDriver._end",
        "tally.answer_repairs",
        "()",
        (f"{HERE}::test_an_answer_with_one_reading_is_taken_at_the_first_try",),
    ),
    Mutation(
        "mcp: the loop's thread imports the SDK",
        "actors/mcp/sdk.py:with_sdk",
        "await SDK.ready()",
        "",
        (f"{IMPORT}::test_the_loops_thread_imports_nothing_of_the_sdk",),
    ),
    Mutation(
        "mcp: each toolset that waits imports the SDK again",
        "actors/mcp/sdk.py:SdkImport._join",
        "len(self._waiting) == 1",
        "True",
        (f"{IMPORT}::test_the_loop_goes_on_during_the_import_and_concurrent_uses_share_it",),
    ),
    Mutation(
        "mcp: an import that failed counts as done",
        "actors/mcp/sdk.py:SdkImport._run",
        "error is None",
        "True",
        (f"{IMPORT}::test_an_import_that_fails_is_raised_for_each_and_tried_again",),
    ),
    Mutation(
        "mcp: an event loop that has ended keeps others waiting for the import",
        "actors/mcp/sdk.py:SdkImport._run",
        "continue",
        "break",
        (f"{IMPORT}::test_uses_of_two_event_loops_share_an_import_and_one_that_has_ended_spoils_nothing",),
    ),
)
