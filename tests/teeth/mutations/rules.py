"""Mistakes that only a row of the corpus of rules shows: in the words of a refusal, and in reading them."""

from tests.teeth.mutations.mutation import Mutation

_TESTS = "tests/rules/test_rules.py::"
QUIET = (f"{_TESTS}test_the_checker_finds_no_fault_in_the_valid_request",)
REFUSED = (f"{_TESTS}test_the_classifier_recognises_the_rejection_of_a_broken_request",)
COMPLETE = (f"{_TESTS}test_every_rule_of_a_strict_server_has_a_row_with_its_message",)
ACCEPTED = (f"{_TESTS}test_a_valid_request_is_accepted_in_both_modes",)

_LAST = 'ServerRule("ANT-38", "model: {model}", status=404, type="not_found_error")'

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "rules: the judge finds a fault at the limit of attachments",
        "actors/core/check/state.py:CheckState.count_attachment",
        "self.media_count > most",
        "self.media_count >= most",
        QUIET,
    ),
    Mutation(
        "rules: a strict server takes one tool less than its provider",
        "actors/strict/rules/openai_chat.py:_MAX_TOOLS",
        "128",
        "127",
        ACCEPTED,
    ),
    Mutation(
        "rules: a strict server refuses in words of its own",
        "actors/strict/rules/anthropic_rules.py:_CONTENT",
        '"messages: at least one message is required"',
        '"There is no message."',
        REFUSED,
    ),
    Mutation(
        "rules: a strict server refuses a model that it lacks with another status",
        "actors/strict/rules/anthropic_rules.py:_CONTENT",
        _LAST,
        'ServerRule("ANT-38", "model: {model}", type="not_found_error")',
        REFUSED,
    ),
    Mutation(
        "rules: a strict server has a rule that no row breaks",
        "actors/strict/rules/anthropic_rules.py:_CONTENT",
        f"(*..., {_LAST})",
        f'(*..., {_LAST}, ServerRule("ANT-99", "No."))',
        COMPLETE,
    ),
    Mutation(
        "rules: the judge enforces a rule that no row breaks",
        "actors/core/rulebook/rule.py:Rule.is_checked",
        "not self.unchecked_reason",
        "True",
        (f"{_TESTS}test_every_rule_that_the_checker_enforces_has_a_row_that_breaks_the_rule",),
    ),
    Mutation(
        "rules: a refused attachment is read as a broken transcript",
        "actors/adapters/error_patterns.py:_RULE_WORDINGS",
        '"media" if rule.id in _MEDIA_RULES else None',
        "None",
        REFUSED,
    ),
    Mutation(
        "rules: a refused parameter is read as a broken transcript",
        "actors/adapters/classify.py:_build_failure",
        "row.kind if parameter is None else 'parameter'",
        "row.kind",
        REFUSED,
    ),
)
