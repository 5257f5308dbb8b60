"""Mutations of shared definitions: budgets, ranges, dialects, clocks."""

from tests.teeth.mutations.mutation import Mutation

SHARED = "tests/provider/test_shared_budgets.py"

MUTATIONS = (
    Mutation(
        "budgets: rounds do not limit a tenant",
        "actors/provider/budgets.py:SharedBudget.__init__",
        "replace(budget, seconds=None)",
        "replace(budget, seconds=None, rounds=None)",
        (f"{SHARED}::test_a_shared_budget_limits_the_rounds_of_a_tenants_sessions",),
    ),
    Mutation(
        "budgets: a session's budget accepts a period that has no effect",
        "actors/core/settings/spending.py:checked_budget",
        "budget.per is not None",
        "False",
        ("tests/session/test_spending.py::test_an_invalid_budget_raises_a_config_error",),
    ),
    Mutation(
        "budgets: a tenant's budget accepts seconds that have no effect",
        "actors/core/settings/spending.py:_checked_shared_budget",
        "budget.seconds is not None",
        "False",
        (f"{SHARED}::test_an_invalid_budget_raises_a_config_error",),
    ),
    Mutation(
        "clocks: an outage is dated by a clock that was not passed in",
        "actors/journal/health.py:JournalHealth.record_failure",
        "self.clock()",
        "time()",
        ("tests/project/test_clocks.py::test_the_wall_clock_is_only_read_through_an_argument",),
    ),
    Mutation(
        "ranges: a file accepts a value that a program may not pass",
        "actors/config/fields.py:to_stored_form",
        "not allowed.accepts(value)",
        "False",
        ("tests/config/test_config.py",),
    ),
    Mutation(
        "ranges: a program may pass a value that a log cannot store",
        "actors/core/settings/values.py:Range.unmet_requirement",
        "_storage_requirement(self.store(value)) if self.accepts(value) else self.description",
        "None if self.accepts(value) else self.description",
        (
            "tests/session/test_settings_table.py::test_a_value_out_of_range_is_rejected_with_the_range_in_words",
        ),
    ),
    Mutation(
        "ranges: a program may pass a value outside of its range",
        "actors/core/settings/values.py:check_fields",
        "(requirement := allowed.unmet_requirement(value)) is not None",
        "(requirement := None) is not None",
        (
            "tests/core/test_compaction.py::test_the_error_for_an_invalid_compaction_setting_names_the_setting",
        ),
    ),
    Mutation(
        "schemas: an unsupported keyword is dropped without a report",
        "actors/core/schemas/json_schema.py:SchemaRewriter.schema",
        "self.lost.append(keyword)",
        "pass",
        ("tests/adapters/test_gemini_encode.py", "tests/adapters/test_property_keys.py"),
    ),
    Mutation(
        "schemas: a refused keyword is sent",
        "actors/core/schemas/json_schema.py:SchemaRewriter.schema",
        "raise SchemaRefused(keyword)",
        "pass",
        ("tests/session/test_output_types.py",),
    ),
)
