"""Logs that break off: what is closed how, what is run again, who may go on with them."""

from tests.teeth.mutations.mutation import Mutation

CLOSING, RECOVERY = "actors/core/closing.py", "actors/recovery.py"
AGAIN, CORE = "tests/test_run_again.py", "tests/core/test_closing.py"

MUTATIONS = (
    Mutation(
        "recovery: every call that had begun is run again",
        CLOSING,
        'known.status == "pending" and known.effects != "once"',
        'known.status == "pending"',
        (f"{CORE}::test_what_a_call_said_when_it_began_decides_whether_it_may_be_run_again",),
    ),
    Mutation(
        "recovery: nothing is run again",
        RECOVERY,
        "        if not self._is_stopped:\n            view",
        "        if self._is_stopped:\n            view",
        (f"{AGAIN}::test_a_call_that_may_be_run_again_is_run_again_after_a_crash_under_the_same_key",),
    ),
    Mutation(
        "recovery: a call that ends its process is begun for ever",
        CLOSING,
        "if 0 < begun[call.id] < STARTS and",
        "if 0 < begun[call.id] and",
        (f"{AGAIN}::test_a_call_that_ends_its_process_each_time_is_begun_three_times_and_no_more",),
    ),
    Mutation(
        "recovery: what is run again cannot be cancelled",
        "actors/core/phases.py",
        '"recovering": ("wait", "apply", "stop", "stop", ',
        '"recovering": ("wait", "apply", "wait", "wait", ',
        (f"{AGAIN}::test_what_is_run_again_is_stopped_by_a_cancel_and_by_the_session_s_end",),
    ),
)
