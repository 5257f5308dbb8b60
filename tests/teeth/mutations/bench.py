"""Mutations of `python -m benchmarks`: comparisons, rows, and the validity of measured turns."""

from tests.teeth.mutations.mutation import Mutation

_BENCH = "benchmarks"
REPORTS = "tests/benchmarks/test_reports.py"
COMMAND = "tests/benchmarks/test_command.py"
PEERS = "tests/benchmarks/test_peers.py"

MUTATIONS = (
    Mutation(
        "bench: runs on different processors are compared",
        f"{_BENCH}/machine.py:Machine.is_same_as",
        "(self.name, self.processor, self.cores) == (other.name, other.processor, other.cores)",
        "(self.name, self.cores) == (other.name, other.cores)",
        (f"{REPORTS}::test_runs_on_two_different_machines_are_not_compared",),
    ),
    Mutation(
        "bench: a quick run is compared with a full one",
        f"{_BENCH}/comparing.py:compare",
        "before.quick != after.quick",
        "before.quick and (not before.figures)",
        (f"{REPORTS}::test_a_quick_run_is_not_compared_with_a_full_run",),
    ),
    Mutation(
        "bench: a difference within the spread is reported",
        f"{_BENCH}/comparing.py:RowChange.verdict",
        "max(MIN_DIFFERENCE, 2 * max(self.before.spread or 0.0, self.after.spread or 0.0))",
        "MIN_DIFFERENCE",
        (f"{REPORTS}::test_a_difference_counts_only_beyond_the_spread_of_the_passes",),
    ),
    Mutation(
        "bench: rows are compared by figures instead of ratios",
        f"{_BENCH}/comparing.py:RowChange.factor",
        "self.after.score / self.before.score",
        "(self.after.value or 1.0) / (self.before.value or 1.0)",
        (f"{REPORTS}::test_rows_are_compared_by_ratio_and_unmatched_rows_are_named",),
    ),
    Mutation(
        "bench: a failed measurement is not reported",
        f"{_BENCH}/report.py:measure",
        "failed.append(measure.goal)",
        "failed.extend(())",
        (
            f"{REPORTS}::test_a_failed_measurement_appears_as_a_row_with_the_reason",
            f"{COMMAND}::test_the_table_is_printed_and_the_exit_code_is_1_after_a_failed_measurement",
        ),
    ),
    Mutation(
        "bench: a goal that was not selected has no row",
        f"{_BENCH}/report.py:measure",
        'figures.append(measure.skipped_row("not selected"))',
        "figures.extend(())",
        (f"{COMMAND}::test_every_goal_has_a_row_even_if_its_measurement_was_not_requested",),
    ),
    Mutation(
        "bench: the spread covers only our figures",
        f"{_BENCH}/timing.py:Passes.spread",
        "[mine / theirs for mine, theirs in zip(ours, base, strict=True)]",
        "[mine for mine, _ in zip(ours, base, strict=True)]",
        (f"{REPORTS}::test_a_row_has_the_median_and_the_spread_of_its_passes",),
    ),
    Mutation(
        "bench: a row without a goal is drawn",
        f"{_BENCH}/plotting.py:_multiple_of_goal",
        "row.score / row.limit if row.score and row.limit else None",
        "row.score / (row.limit or 1.0) if row.score else None",
        (f"{REPORTS}::test_the_picture_of_a_report_shows_goals_and_the_figures_of_other_libraries",),
    ),
    Mutation(
        "bench: turns of another library count without their calls",
        "benchmarks/peers/programs/working.py:_run_turns",
        "len(queries) != count * CALLS",
        "len(queries) > count * CALLS",
        (f"{PEERS}::test_turns_without_executed_calls_are_not_measured",),
    ),
    Mutation(
        "bench: a streamed text of another library counts without all its words",
        "benchmarks/peers/programs/working.py:_event_us",
        "... != words",
        "... > words",
        (f"{PEERS}::test_a_benchmarked_stream_counts_only_if_its_text_is_complete",),
    ),
    Mutation(
        "bench: memory of another library is measured before its tools ran",
        "benchmarks/peers/programs/working.py:_live_bytes",
        "len(queries) != count * CALLS",
        "len(queries) > count * CALLS",
        (f"{PEERS}::test_memory_is_measured_while_a_conversation_waits_for_its_second_answer",),
    ),
    Mutation(
        "bench: sessions with actors are measured as idle",
        f"{_BENCH}/memory.py:IDLE_LIMITS",
        "RuntimeLimits(max_active_sessions=1)",
        "RuntimeLimits()",
        (
            "tests/benchmarks/test_measures.py::test_the_memory_of_idle_sessions_is_measured_after_their_actors_were_dropped",
        ),
    ),
    Mutation(
        "bench: an unmeasurable library is tried in every pass",
        f"{_BENCH}/others.py:OtherLibraries.measure_each",
        "self._missing[library.name] = str(error)",
        "str(error)",
        (f"{PEERS}::test_a_library_that_cannot_be_measured_is_left_out_with_the_reason",),
    ),
)
