"""Budgets that sessions share: when a request is counted, by what, and for how long."""

from tests.teeth.mutations.mutation import Mutation

BUDGETS, TESTS = "actors/backends/budgets.py", "tests/test_shared_budgets.py"
ESTIMATE, CORE = "actors/core/estimate.py", "tests/core/test_compaction.py"
SAME_TIME = (
    f"{TESTS}::test_of_sessions_at_the_same_time_those_wait_for_which_what_is_in_flight_leaves_nothing"
)
REPORTED = f"{CORE}::test_what_a_provider_reported_is_taken_and_only_what_is_new_is_estimated"
USED_UP = f"{TESTS}::test_a_used_up_budget_ends_a_turn_at_a_boundary_and_refuses_all_who_share_it"
SUMMARY = f"{TESTS}::test_a_turn_ends_when_the_summary_before_it_has_used_up_the_budget"

MUTATIONS = (
    Mutation(
        "budgets: a request in flight counts for nothing",
        BUDGETS,
        "return not self._in_flight or (",
        "return True or (",
        (SAME_TIME,),
    ),
    Mutation(
        "budgets: who comes last goes first",
        BUDGETS,
        " or any(each._full is None for each in before):",
        ":",
        (f"{TESTS}::test_who_waits_for_longer_goes_first_unless_another_budget_keeps_it",),
    ),
    Mutation(
        "budgets: who waits for another budget keeps all behind it waiting",
        BUDGETS,
        "any(each._full is None for each in before)",
        "any(before)",
        (f"{TESTS}::test_who_waits_for_longer_goes_first_unless_another_budget_keeps_it",),
    ),
    Mutation(
        "budgets: what was reserved stays so when a request is answered",
        BUDGETS,
        "self._reserved - demand if self._in_flight else Demand()",
        "self._reserved",
        (SAME_TIME,),
    ),
    Mutation(
        "budgets: an answer is taken to come to what nobody heard",
        "actors/turns/inflight.py",
        "answer = self.resolver.calibrations[binding].answer",
        "answer = 1024",
        (f"{TESTS}::test_what_was_reported_of_a_binding_is_what_the_next_request_is_estimated_by",),
    ),
    Mutation(
        "budgets: an ask begins although what it shares is used up",
        "actors/turns/configuration.py",
        "        for budget in self.budgets(state.tenant, state.target):\n",
        "        for budget in ():\n",
        (USED_UP,),
    ),
    Mutation(
        "budgets: a pool's are a tenant's alone",
        BUDGETS,
        'budgets.get(f"pools.{target}")',
        "None",
        (USED_UP,),
    ),
    Mutation(
        "budgets: a preview does not say that one is used up",
        "actors/handle.py",
        'equipment.why_over(state, target) or ""',
        '""',
        (USED_UP,),
    ),
    Mutation(
        "budgets: a preview does not say that an ask makes room first",
        "actors/handle.py",
        "full is not None, over",
        "False, over",
        (SUMMARY,),
    ),
    Mutation(
        "budgets: a summary counts in none",
        "actors/turns/shrinking.py",
        "        self._ask.settle(binding, generated.usage, is_round=True)\n",
        "",
        (f"{TESTS}::test_subagents_and_summaries_count_in_it",),
    ),
    Mutation(
        "budgets: a summary is asked for whatever is used up",
        "actors/turns/shrinking.py",
        "if (over := await self._ask.admitted(binding)) is not None:",
        "if (over := None) is not None:",
        (f"{TESTS}::test_no_summary_is_asked_for_when_the_ask_before_it_has_used_up_the_budget",),
    ),
    Mutation(
        "budgets: subagents are nobody's",
        "actors/hosting/opening.py",
        "            tenant=tenant,\n",
        "",
        (f"{TESTS}::test_subagents_and_summaries_count_in_it",),
    ),
    Mutation(
        "budgets: a period is over by the clock of the wall",
        "actors/runtime.py",
        "self.system.parking, self.system.now",
        'self.system.parking, lambda: __import__("time").time()',
        (f"{TESTS}::test_the_clock_of_the_wall_changes_no_period",),
    ),
    Mutation(
        "budgets: a period begins when it is looked at",
        BUDGETS,
        "self._now() - over % self._seconds",
        "self._now()",
        (f"{TESTS}::test_a_period_is_over_by_a_clock_that_nobody_sets",),
    ),
    Mutation(
        "budgets: money that nobody can count is counted",
        "actors/backends/backend.py",
        "any(each.counts_money for each in resolver.budgets(tenant, target))",
        "False",
        (f"{TESTS}::test_money_is_counted_by_prices_and_a_price_that_is_missing_is_refused_at_once",),
    ),
    Mutation(
        "estimate: what another binding reported is taken for this one's",
        ESTIMATE,
        "measured.binding == binding and 0 < measured.length",
        "0 < measured.length",
        (REPORTED,),
    ),
    Mutation(
        "estimate: reports change no ratio",
        ESTIMATE,
        "            self.ratio += (seen - self.ratio) / 2\n",
        "",
        (REPORTED,),
    ),
    Mutation(
        "estimate: what goes with every request is left out",
        ESTIMATE,
        "before = tokens or preamble / ratio",
        "before = tokens",
        (REPORTED,),
    ),
    Mutation(
        "estimate: what was measured of a history holds when it was made shorter",
        "actors/core/state.py",
        "return None if measured is None else ReportedRequest(measured.binding)",
        "return measured",
        (f"{CORE}::test_what_was_reported_of_a_request_holds_until_the_history_is_made_shorter",),
    ),
)
