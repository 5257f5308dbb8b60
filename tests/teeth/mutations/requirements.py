"""Mutations that only the test of a single requirement detects."""

from tests.teeth.mutations.mutation import Mutation

_BATCHES = "tests/core/test_partial_batches.py"
_MIXED = "tests/core/test_mixed_messages.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "results: trailing blanks are stripped",
        "actors/core/values/content.py:transcript_text",
        "json if json.startswith(b'\"') else quote_json(json)",
        "Json(json.rstrip(b' \"') + b'\"') if json.startswith(b'\"') else quote_json(json)",
        (f"{_BATCHES}::test_a_partial_batch_sends_real_results_with_their_whitespace",),
    ),
    Mutation(
        "results: the last of several results for one call is sent",
        "actors/core/normalize/settle.py:Normalizer._record_answer",
        "replace(known, duplicates=(*known.duplicates, kept))",
        "replace(known, end=kept, duplicates=(*known.duplicates, known.end))",
        (f"{_BATCHES}::test_the_first_of_several_results_for_a_call_is_sent",),
    ),
    Mutation(
        "mixed: only the first of several texts in a message with calls is sent",
        "actors/core/render/order.py:move_calls_last",
        "[*words, *calls, *thought]",
        "[*words[:1], *calls, *thought]",
        (f"{_MIXED}::test_text_before_between_and_after_calls_is_sent_once_and_in_order",),
    ),
    Mutation(
        "stats: a call of an unknown tool does not count as invalid",
        "actors/scheduler/scheduler_actor.py:_Batch._record",
        "self._counts.tool_calls_invalid_args += 1",
        "self._counts.tool_calls_invalid_args += b'unknown_tool' not in event.error",
        ("tests/runtime/test_stats.py::test_a_call_of_an_undeclared_tool_counts_as_invalid",),
    ),
)
