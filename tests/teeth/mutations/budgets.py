"""Mutations of shared budgets: when a request is counted, by which figure, and for how long."""

from tests.teeth.mutations.mutation import Mutation

BUDGETS, TESTS = "actors/provider/budgets.py", "tests/provider/test_shared_budgets.py"
ESTIMATE, CORE = "actors/core/history/compaction.py", "tests/core/test_compaction.py"
SAME_TIME = f"{TESTS}::test_requests_wait_while_requests_in_flight_have_reserved_the_budget"
REPORTED = f"{CORE}::test_token_counts_use_the_reported_usage_and_estimate_only_newer_messages"
USED_UP = f"{TESTS}::test_a_used_up_shared_budget_ends_a_turn_and_rejects_its_sessions"
SUMMARY = f"{TESTS}::test_a_turn_ends_if_the_summary_before_the_turn_used_up_the_budget"

MUTATIONS = (
    Mutation(
        "budgets: a request in flight is not counted",
        f"{BUDGETS}:SharedBudget.has_room",
        "not self._in_flight or ...",
        "True or ...",
        (SAME_TIME,),
    ),
    Mutation(
        "budgets: the latest request goes first",
        f"{BUDGETS}:_admit_waiting",
        "min(*..., key=_arrived).reserve_or_queue()",
        "min((budget.queue[-1] for budget in found), key=_arrived).reserve_or_queue()",
        (f"{TESTS}::test_the_request_that_waited_longest_goes_first_unless_another_budget_blocks_it",),
    ),
    Mutation(
        "budgets: a request waits although the budget has room",
        f"{BUDGETS}:Share.reserve_or_queue",
        "next((each for each in self._budgets if not each.is_open), None)",
        "None if all((each.is_open for each in self._budgets)) else self._budgets[0]",
        (f"{TESTS}::test_the_request_that_waited_longest_goes_first_unless_another_budget_blocks_it",),
    ),
    Mutation(
        "budgets: the end of a request wakes all waiting requests",
        f"{BUDGETS}:Share.release",
        "_admit_waiting(self._budgets)",
        "_admit_waiting(self._budgets); [each.recheck() for budget in self._budgets for each in budget.queue]",
        (f"{TESTS}::test_the_end_of_a_request_wakes_only_the_next_waiting_request",),
    ),
    Mutation(
        "budgets: room given to a cancelled request is lost",
        f"{BUDGETS}:Share.admit",
        "try:\n    ...\nexcept BaseException:\n    ...\nfinally:\n    ...",
        "try:\n    ...\nexcept ZeroDivisionError:\n    ...\nfinally:\n    ...",
        (f"{TESTS}::test_budget_granted_to_a_cancelled_request_goes_to_the_next_request",),
    ),
    Mutation(
        "budgets: a reservation stays after the answer",
        f"{BUDGETS}:SharedBudget.release",
        "self._reserved - demand if self._in_flight else Demand()",
        "self._reserved",
        (SAME_TIME,),
    ),
    Mutation(
        "budgets: an unread answer is counted as the reservation",
        "actors/session/inflight.py:AskInFlight.reserve_budget",
        "self.resolver.calibrations[binding].answer",
        "1024",
        (f"{TESTS}::test_a_request_is_estimated_by_the_reported_usage_of_its_binding",),
    ),
    Mutation(
        "budgets: an ask starts although its shared budget is used up",
        "actors/session/configuration.py:ActiveConfig.budget_rejection",
        "self.budgets(state.tenant, state.target)",
        "()",
        (USED_UP,),
    ),
    Mutation(
        "budgets: a pool's budget belongs to one tenant",
        f"{BUDGETS}:RuntimeBudgets.budgets_of",
        '(*..., budgets.get(f"pools.{target}"))',
        "(*..., None)",
        (USED_UP,),
    ),
    Mutation(
        "budgets: a preview does not report an exhausted budget",
        "actors/session/requests.py:preview_of",
        'active_config.exhausted_budget(state, target) or ""',
        '""""""',
        (USED_UP,),
    ),
    Mutation(
        "budgets: a preview does not report a compaction before the ask",
        "actors/session/requests.py:preview_of",
        "compaction_limit(*...) is not None",
        "False",
        (SUMMARY,),
    ),
    Mutation(
        "budgets: a summary is not counted in any budget",
        "actors/session/compactor.py:Compactor._request_summary",
        "self._ask.count_usage(binding, usage, is_round=True)",
        "",
        (f"{TESTS}::test_subagents_and_summaries_count_in_a_shared_budget",),
    ),
    Mutation(
        "budgets: a summary is requested although a budget is used up",
        "actors/session/compactor.py:Compactor._request_summary",
        "await self._ask.reserve_budget(binding)",
        "None",
        (f"{TESTS}::test_no_summary_is_requested_once_the_budget_is_used_up",),
    ),
    Mutation(
        "budgets: subagents belong to no budget",
        "actors/runtime/opening.py:SubagentOpener.__call__",
        "partial(*..., **..., tenant=tenant, budget=budget)",
        "partial(*..., **..., budget=budget)",
        (f"{TESTS}::test_subagents_and_summaries_count_in_a_shared_budget",),
    ),
    Mutation(
        "budgets: a period ends by the wall clock",
        "actors/runtime/backends.py:RuntimeBackends.set_system",
        "RuntimeBudgets(*..., system.now)",
        'RuntimeBudgets(*..., lambda: __import__("time").time())',
        (f"{TESTS}::test_a_jump_of_the_wall_clock_does_not_change_a_budget_period",),
    ),
    Mutation(
        "budgets: a period starts when it is read",
        f"{BUDGETS}:Window.roll_over",
        "self._now() - over % self._seconds",
        "self._now()",
        (f"{TESTS}::test_a_budget_period_ends_by_the_monotonic_clock",),
    ),
    Mutation(
        "budgets: money without a price is counted",
        "actors/provider/resolver.py:check_prices",
        "is_counted or any((each.counts_money for each in resolver.budgets(tenant, target)))",
        "is_counted or False",
        (f"{TESTS}::test_a_budget_of_money_requires_prices_and_is_counted_by_prices",),
    ),
    Mutation(
        "estimate: another binding's report is used for this one",
        f"{ESTIMATE}:estimate_tokens",
        "last_report is not None and last_report.binding == binding and ...",
        "last_report is not None and ...",
        (REPORTED,),
    ),
    Mutation(
        "estimate: reports do not change the ratio",
        f"{ESTIMATE}:Calibration.record_report",
        "self.ratio += (seen - self.ratio) / 2",
        "",
        (REPORTED,),
    ),
    Mutation(
        "estimate: the constant parts of a request are left out",
        f"{ESTIMATE}:estimate_tokens",
        "tokens or preamble / ratio",
        "tokens",
        (REPORTED,),
    ),
    Mutation(
        "estimate: the measure of a history is kept after its compaction",
        "actors/core/session/state.py:_without_counts",
        "None if report is None else ReportedRequest(report.binding)",
        "report",
        (f"{CORE}::test_reported_tokens_are_valid_until_the_next_compaction",),
    ),
    Mutation(
        "shared budgets: in a new period a new request precedes a waiting one",
        "actors/provider/budgets.py:Share._wait_until_counted",
        "_admit_waiting(self._budgets)",
        "",
        (
            "tests/provider/test_shared_budgets.py::test_when_a_budget_period_begins_waiting_requests_go_before_new_requests",
        ),
    ),
)
