"""Mutations of figures over time, of the soak, and of the single path of calls."""

from tests.teeth.mutations.mutation import Mutation

COUNTED = "tests/runtime/test_stats.py::test_the_counters_equal_recounts_of_the_logs_and_of_the_events"
STATS = "tests/runtime/test_stats.py"
CRASHED = "tests/runtime/test_stats.py::test_calls_ended_by_a_crash_have_the_same_count_in_stats_and_log"
TOLD = "tests/runtime/test_stats.py::test_a_recount_counts_the_round_limit_once_and_ignores_failed_calls"
HELD = "tests/runtime/test_stats.py::test_quarantined_calls_and_stalls_are_in_the_stats"
RAN = "tests/cli/test_stats.py::test_the_stats_command_counts_the_output_of_the_run_command_by_backend"
NONE = "tests/cli/test_stats.py::test_an_invalid_line_is_reported_by_its_number"
SOAK = "tests/commands/test_soak.py::"
SOAK += "test_a_soak_test_leaks_nothing_and_its_asks_fail_only_because_of_injected_faults"
SOAKED = "tests/commands/test_soak.py::test_each_problem_of_a_soak_test_is_reported"
ONE_PATH = (
    "tests/session/test_one_path.py::test_a_turn_of_five_calls_has_the_same_log_in_a_session_and_a_subagent"
)
BELOW = "tests/runtime/test_stats.py::test_calls_of_subagents_are_counted_with_their_own_backend"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "scale: events do not show that a request had its tools off",
        "actors/core/session/publishing.py:Publisher._publish_request",
        "event.tools_off",
        "False",
        (COUNTED,),
    ),
    Mutation(
        "scale: the end of a turn has no reason",
        "actors/core/session/publishing.py:Publisher._publish_turn_end",
        "event.cause",
        "None",
        (COUNTED,),
    ),
    Mutation(
        "scale: every request with its tools off counts as a turn at its limit",
        "actors/core/stats/stats.py:ToolRecount.count_request",
        "self.is_limited |= tools_off",
        "",
        (TOLD,),
    ),
    Mutation(
        "scale: from events, a failed call counts as invalid",
        "actors/cli/stats.py:_EventRecount.count_event",
        'each["outcome"] == "refused"',
        'each["outcome"] != "returned"',
        (TOLD,),
    ),
    Mutation(
        "scale: from events, a subagent's actions count for its parent session",
        "actors/cli/stats.py:_EventRecount.count_event",
        "self.children.setdefault(name, _EventRecount(work=self.work, counts=self.counts))",
        "self",
        (BELOW,),
    ),
    Mutation(
        "scale: from events, a lane rewritten for another reason counts as a refusal",
        "actors/cli/stats.py:_EventRecount.count_event",
        """
        case {"type": "lane_rewritten", "reason": "refusal" | "thinking"}:
            ...
        """,
        """
        case {"type": "lane_rewritten"}:
            ...
        """,
        (TOLD,),
    ),
    Mutation(
        "scale: an epoch begun for another reason counts as a refusal",
        "actors/core/stats/stats.py:_LogRecount.count_event",
        """
        case EpochBegan(reason="refusal" | "thinking"):
            ...
        """,
        """
        case EpochBegan():
            ...
        """,
        (
            "tests/runtime/test_stats.py::test_a_new_epoch_counts_as_a_refusal_only_after_a_request_of_the_same_turn",
        ),
    ),
    Mutation(
        "scale: records of a batch ended by a crash are not counted",
        "actors/session/steps.py:TurnSteps._run_batch",
        "RunBatch(*..., counts=self.backend.counts)",
        "RunBatch(*...)",
        (f"{STATS}::test_the_counters_equal_recounts_of_the_logs_and_of_the_events", CRASHED),
    ),
    Mutation(
        "scale: a request of an earlier turn counts as refused",
        "actors/core/stats/stats.py:ToolRecount.begin_turn",
        "(*..., False)",
        "(*..., self.is_unanswered)",
        (
            "tests/runtime/test_stats.py::test_a_new_epoch_counts_as_a_refusal_only_after_a_request_of_the_same_turn",
        ),
    ),
    Mutation(
        "scale: a running tool counts as abandoned",
        "actors/runtime/hosting.py:runtime_stats",
        "host.quarantine.by_tool()",
        "dict.fromkeys(host.system.contained_tasks.names, 1)",
        (HELD,),
    ),
    Mutation(
        "scale: a byte order mark in a file of events is an invalid event",
        "actors/cli/stats.py:_EventLines._read_lines",
        'Path(self._file).open(encoding="utf-8-sig")',
        'Path(self._file).open(encoding="utf-8")',
        (RAN,),
    ),
    Mutation(
        "scale: an invalid line is numbered among the non-empty lines",
        "actors/cli/stats.py:_EventLines.events",
        """
        self._number += 1
        if line.strip():
            yield self._parse_event(line)
        """,
        """
        if line.strip():
            self._number += 1
            yield self._parse_event(line)
        """,
        (NONE,),
    ),
    Mutation(
        "scale: any fault explains any number of failed asks",
        "tests/commands/soak/load.py:Soaked._explained_failures",
        "self.faults[cause]",
        "inf if self.faults[cause] else 0",
        (SOAKED,),
    ),
    Mutation(
        "scale: idle connections are dropped without a close when the runtime is left",
        "actors/transport/pool.py:ConnectionPool.close",
        "tasks.start_soon(self.drop, self._idle.pop())",
        "self._idle.pop()",
        (SOAK,),
    ),
    Mutation(
        "scale: a subagent does not receive its own identity",
        "actors/runtime/subagents.py:subagent",
        "context.subagent(target, tools=offered, system=system)",
        "context.subagent(target, tools=offered)",
        (ONE_PATH,),
    ),
    Mutation(
        "garbage: a tool's task and its work refer to each other",
        "actors/kernel/tasks.py:ContainedTask.run",
        "del self._on_end, self._work",
        "",
        ("tests/runtime/test_garbage.py::test_a_turn_with_tools_leaves_no_garbage",),
    ),
    Mutation(
        "garbage: an ended actor keeps its factory",
        "actors/kernel/cell.py:Cell.finish",
        "del self.factory",
        "",
        ("tests/runtime/test_garbage.py::test_a_deleted_session_leaves_no_garbage",),
    ),
)
