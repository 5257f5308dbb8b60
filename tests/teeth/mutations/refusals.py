"""Mutations of the handling of a partly refused request."""

from tests.teeth.mutations.mutation import Mutation

TURN = "tests/core/test_turn.py"
PARAMETERS = "tests/provider/test_refused_parameters.py"
MEDIA = "tests/provider/test_refused_media.py"
FAILOVER = "tests/provider/test_failover.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "refusals: a rejected value marks the parameter as unsupported",
        "actors/provider/backend.py:BindingFacts.learn",
        "not omission.only_value",
        "True",
        (PARAMETERS,),
    ),
    Mutation(
        "refusals: nothing is learned from an unsupported parameter",
        "actors/provider/backend.py:BindingFacts.learn",
        "self.unsupported[omission.name] = message",
        "pass",
        (PARAMETERS,),
    ),
    Mutation(
        "refusals: all accounts share learned facts",
        "actors/provider/backend.py:LearnedFacts.facts_of",
        "known = self._facts.pop(binding, None)",
        "binding = Binding('all', '')\nknown = self._facts.pop(binding, None)",
        (PARAMETERS,),
    ),
    Mutation(
        "refusals: a request is not logged with its omissions",
        "actors/session/requests.py:TurnRequests._log_request",
        "self._effective_omissions(plan, rendered)",
        "()",
        (PARAMETERS,),
    ),
    Mutation(
        "refusals: parameters are omitted from one request without a limit",
        "actors/session/requests.py:refused_parameters",
        "parameter is None or refusals >= PARAMETER_REFUSALS",
        "parameter is None",
        (PARAMETERS,),
    ),
    Mutation(
        "refusals: a request is repeated unchanged",
        "actors/session/requests.py:refused_parameters",
        "(before.path, before.body) == (after.path, after.body)",
        "False",
        (PARAMETERS,),
    ),
    Mutation(
        "refusals: no text replaces a refused schema",
        "actors/session/steps.py:TurnSteps._add_replacement_instruction",
        "ask.add_instruction(instruction(asked.output))",
        "pass",
        (PARAMETERS,),
    ),
    Mutation(
        "refusals: media are omitted from one request without a limit",
        "actors/core/turn/turn.py:_TurnRules._replace_media",
        "if self._media == MEDIA_REFUSALS:\n    ...",
        "",
        (TURN,),
    ),
    Mutation(
        "refusals: an epoch forgets attachments refused earlier",
        "actors/core/lanes/lane.py:begin_epoch",
        "old.refused.union(event.media)",
        "frozenset(event.media)",
        (MEDIA,),
    ),
    Mutation(
        "refusals: all attachments become notes although one is named",
        "actors/adapters/refusals.py:_is_same_position",
        "position[:least] == other_position[:least]",
        "True",
        (MEDIA, "tests/adapters/test_refused_media.py"),
    ),
    Mutation(
        "refusals: no other backend answers after a structural refusal",
        "actors/core/turn/turn.py:_TurnRules._rewrite",
        'self._close("failed", refused.reason, can_fail_over=True)',
        'self._close("failed", refused.reason)',
        (FAILOVER, TURN),
    ),
    Mutation(
        "refusals: another backend answers although the pool forbids it",
        "actors/session/driver.py:TurnDriver._choose_next",
        "ended.refused and not pool.failover_on_refusal",
        "False",
        (FAILOVER,),
    ),
    Mutation(
        "refusal: a file or link in the message counts as an attachment",
        "actors/adapters/error_patterns.py:_FILE",
        'r"\\bfiles?\\b(?![./_])"',
        'r"\\bno such word\\b"',
        (
            "tests/adapters/test_media_wordings.py::test_errors_about_attachments_are_recognised_as_media_errors",
        ),
    ),
    Mutation(
        "refusal: base64 of a signature counts as an attachment's",
        "actors/adapters/error_patterns.py:_NO_TOOL",
        'r"^(?!.*(?:\\btools?\\b[.\\[]|signature|encrypted_content))"',
        'r"^"',
        ("tests/adapters/test_media_wordings.py::test_similar_errors_are_not_recognised_as_media_errors",),
    ),
    Mutation(
        "refusal: a refused token limit is explained as sampling",
        "actors/adapters/classify.py:_build_failure",
        "parameter is not None and row.rule in SAMPLING_RULES and SAMPLING.isdisjoint(parameter.settings)",
        "False",
        ("tests/cli/test_asked_for_help.py::test_the_explain_command_names_a_refused_parameter",),
    ),
)
