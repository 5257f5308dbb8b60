"""Mistakes of the command line: approvals, signals, the chat."""

from tests.teeth.mutations.mutation import Mutation

_APPROVALS = "actors/cli/approvals.py"
_KEYBOARD = "actors/cli/keyboard.py"
_RUN = "actors/cli/run.py"
APPROVALS = "tests/cli/test_approvals.py"
RUN = "tests/cli/test_run.py"

MUTATIONS = (
    Mutation(
        "approvals: what is not a no is a yes",
        _APPROVALS,
        'return "yes" if word in ("y", "yes") else "no"',
        'return "yes" if word.startswith("y") else "no"',
        (f"{APPROVALS}::test_only_a_clear_yes_is_one[yep-no]",),
    ),
    Mutation(
        "approvals: nobody to ask is an approval",
        _APPROVALS,
        "self.unasked.append(call.name)\n            return False",
        "self.unasked.append(call.name)\n            return True",
        (f"{APPROVALS}::test_where_nobody_can_be_asked_a_call_is_denied_and_counted",),
    ),
    Mutation(
        "approvals: two questions at once",
        _APPROVALS,
        "async with self._turn:",
        "async with anyio.Lock():",
        (f"{APPROVALS}::test_one_call_is_asked_about_at_a_time",),
    ),
    Mutation(
        "keyboard: the last line is lost without its newline",
        _KEYBOARD,
        "return line if newline or line else None",
        "return line if newline else None",
        (f"{APPROVALS}::test_lines_end_with_the_last_one_though_no_newline_ends_it",),
    ),
    Mutation(
        "run: a turn that went on without its call is done",
        _RUN,
        "return Exit.NOT_APPROVED if code is Exit.OK and approve.unasked else code",
        "return code",
        (f"{RUN}::test_a_tool_that_changes_something_needs_approval",),
    ),
    Mutation(
        "run: every signal is an interrupt",
        _RUN,
        "self._stopped = OF_SIGNAL[await anext(signals)]",
        "await anext(signals)",
        (f"{RUN}::test_a_signal_cancels_the_turn_and_has_its_exit_code",),
    ),
)
