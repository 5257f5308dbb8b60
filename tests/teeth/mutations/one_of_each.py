"""Mutations of the definitions that several places share: budgets, ranges, dialects, clocks."""

from tests.teeth.mutations.mutation import Mutation

SHARED = "tests/provider/test_shared_budgets.py"

MUTATIONS = (
    Mutation(
        "budgets: rounds do not limit a tenant",
        "actors/provider/budgets.py:SharedBudget.__init__",
        "replace(budget, seconds=None)",
        "replace(budget, seconds=None, rounds=None)",
        (f"{SHARED}::test_a_shared_budget_limits_the_rounds_of_all_sessions_of_a_tenant",),
    ),
    Mutation(
        "budgets: a session's budget has a period that nothing keeps",
        "actors/core/settings/spending.py:checked_budget",
        "budget.per is not None",
        "False",
        ("tests/session/asking/test_spending.py::test_a_budget_that_cannot_be_kept_is_refused",),
    ),
    Mutation(
        "budgets: a tenant's budget has seconds that nothing counts",
        "actors/core/settings/spending.py:_checked_shared",
        "budget.seconds is not None",
        "False",
        (f"{SHARED}::test_a_budget_that_cannot_be_kept_is_refused_in_one_line",),
    ),
    Mutation(
        "clocks: an outage is dated by a clock that nobody passed in",
        "actors/journal/health.py:JournalHealth.record_failure",
        "self.clock()",
        "time()",
        ("tests/project/test_clocks.py::test_the_wall_clock_is_only_read_through_an_argument",),
    ),
    Mutation(
        "ranges: a file may hold a value that a program may not give",
        "actors/config/fields.py:stored_form",
        "not allowed.accepts(value)",
        "False",
        ("tests/config/test_config.py",),
    ),
    Mutation(
        "ranges: a program may give a value outside of its range",
        "actors/core/settings/ranges.py:check_fields",
        "not allowed.accepts(value)",
        "False",
        ("tests/core/test_compaction.py::test_settings_that_cannot_be_are_refused_by_name",),
    ),
    Mutation(
        "schemas: a keyword that a dialect lacks is lost without a report",
        "actors/core/schemas/json_schema.py:SchemaRewriter.schema",
        "self.lost.append(keyword)",
        "pass",
        ("tests/adapters/test_gemini_encode.py", "tests/adapters/test_property_keys.py"),
    ),
    Mutation(
        "schemas: a dialect that refuses a keyword is sent it",
        "actors/core/schemas/json_schema.py:SchemaRewriter.schema",
        "raise SchemaRefused(keyword)",
        "pass",
        ("tests/session/asking/test_output_forms.py",),
    ),
)
