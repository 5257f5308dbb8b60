"""Mistakes in `python -m benchmarks`: what is compared, what a row says, whose turns count."""

from tests.teeth.mutations.mutation import Mutation

_BENCH = "benchmarks"
REPORTS = "tests/benchmarks/test_reports.py"
COMMAND = "tests/benchmarks/test_command.py"
PEERS = "tests/benchmarks/test_peers.py"

MUTATIONS = (
    Mutation(
        "bench: runs of machines with another processor are compared",
        f"{_BENCH}/machine.py:Machine.is_same_as",
        "(self.name, self.processor, self.cores) == (other.name, other.processor, other.cores)",
        "(self.name, self.cores) == (other.name, other.cores)",
        (f"{REPORTS}::test_runs_of_two_machines_are_not_compared",),
    ),
    Mutation(
        "bench: a quick run is compared with a full one",
        f"{_BENCH}/comparing.py:compare",
        "before.quick != after.quick",
        "before.quick and (not before.figures)",
        (f"{REPORTS}::test_a_quick_run_is_not_compared_with_a_full_one",),
    ),
    Mutation(
        "bench: a difference within the spread is told as one",
        f"{_BENCH}/comparing.py:RowChange.verdict",
        "max(LEAST, 2 * max(self.before.spread or 0.0, self.after.spread or 0.0))",
        "LEAST",
        (f"{REPORTS}::test_a_difference_is_told_where_it_is_larger_than_that_of_the_passes",),
    ),
    Mutation(
        "bench: rows are compared by their figures, not by their ratios",
        f"{_BENCH}/comparing.py:RowChange.factor",
        "self.after.score / self.before.score",
        "(self.after.value or 1.0) / (self.before.value or 1.0)",
        (f"{REPORTS}::test_rows_are_compared_by_their_ratio_and_those_of_one_run_alone_are_named",),
    ),
    Mutation(
        "bench: a measurement that fails is not told",
        f"{_BENCH}/report.py:measure",
        "failed.append(measure.goal)",
        "failed.extend(())",
        (
            f"{REPORTS}::test_what_cannot_be_measured_is_a_row_that_says_why_and_the_others_go_on",
            f"{COMMAND}::test_a_measurement_that_fails_is_exit_code_1_and_the_table_is_there",
        ),
    ),
    Mutation(
        "bench: a goal that was not asked for has no row",
        f"{_BENCH}/report.py:measure",
        'figures.append(measure.skipped_row("not selected"))',
        "figures.extend(())",
        (f"{COMMAND}::test_every_goal_is_a_row_whether_or_not_it_was_asked_for",),
    ),
    Mutation(
        "bench: the spread is that of our figures alone",
        f"{_BENCH}/timing.py:Passes.spread",
        "[mine / theirs for mine, theirs in zip(ours, base, strict=True)]",
        "[mine for mine, _ in zip(ours, base, strict=True)]",
        (f"{REPORTS}::test_a_row_has_the_median_of_its_passes_and_how_far_they_lie_apart",),
    ),
    Mutation(
        "bench: what has no goal is drawn",
        f"{_BENCH}/plotting.py:_share",
        "row.score / row.limit if row.score and row.limit else None",
        "row.score / (row.limit or 1.0) if row.score else None",
        (f"{REPORTS}::test_a_picture_shows_rows_with_a_goal_and_the_figures_of_other_libraries",),
    ),
    Mutation(
        "bench: another library's turns count without their calls",
        "benchmarks/peers/programs/working.py:_run_turns",
        "len(ran) != count * CALLS",
        "len(ran) > count * CALLS",
        (f"{PEERS}::test_turns_whose_calls_did_not_run_do_not_count",),
    ),
    Mutation(
        "bench: a streamed text of another library counts without its words",
        "benchmarks/peers/programs/working.py:_event",
        "... != words",
        "... > words",
        (f"{PEERS}::test_a_streamed_text_counts_if_all_its_words_came",),
    ),
    Mutation(
        "bench: a conversation of another library is weighed before its tools ran",
        "benchmarks/peers/programs/working.py:_live",
        "len(ran) != count * CALLS",
        "len(ran) > count * CALLS",
        (f"{PEERS}::test_a_conversation_is_weighed_while_it_waits_for_its_second_answer",),
    ),
    Mutation(
        "bench: sessions that have actors are weighed as idle",
        f"{_BENCH}/memory.py:IDLE",
        "RuntimeLimits(max_active_sessions=1)",
        "RuntimeLimits()",
        ("tests/benchmarks/test_measures.py::test_sessions_that_are_weighed_as_idle_have_no_actors",),
    ),
    Mutation(
        "bench: another library that cannot be measured is tried in every pass",
        f"{_BENCH}/others.py:Others.take",
        "self._missing[library.name] = str(error)",
        "str(error)",
        (
            f"{PEERS}::test_libraries_are_measured_in_each_pass_and_one_that_cannot_be_is_left_out_with_its_reason",
        ),
    ),
)
