"""Mistakes in what is done when a provider refuses a part of a request."""

from tests.teeth.mutations.mutation import Mutation

TURN = "tests/core/test_turn.py"
PARAMETERS = "tests/provider/test_refused_parameters.py"
MEDIA = "tests/provider/test_refused_media.py"
FAILOVER = "tests/provider/test_failover.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "refusals: a rejected value teaches that the parameter is not supported",
        "actors/provider/learned.py:BindingFacts.learn",
        "not omission.is_value",
        "True",
        (PARAMETERS,),
    ),
    Mutation(
        "refusals: nothing is learned from a parameter that is not supported",
        "actors/provider/learned.py:BindingFacts.learn",
        "self.unsupported[omission.name] = why",
        "pass",
        (PARAMETERS,),
    ),
    Mutation(
        "refusals: all accounts learn from one",
        "actors/provider/learned.py:LearnedFacts.of",
        "known = self._facts.pop(binding, None)",
        "binding = Binding('all', '')\nknown = self._facts.pop(binding, None)",
        (PARAMETERS,),
    ),
    Mutation(
        "refusals: a request is not logged with what it leaves out",
        "actors/session/requests.py:TurnRequests._seal",
        "self._effective(plan, rendered)",
        "()",
        (PARAMETERS,),
    ),
    Mutation(
        "refusals: parameters are left out of one request as often as it is refused",
        "actors/session/refusals.py:refused_parameters",
        "parameter is None or refusals >= PARAMETER_REFUSALS",
        "parameter is None",
        (PARAMETERS,),
    ),
    Mutation(
        "refusals: a request is sent again as it was",
        "actors/session/refusals.py:refused_parameters",
        "(before.path, before.body) == (after.path, after.body)",
        "False",
        (PARAMETERS,),
    ),
    Mutation(
        "refusals: no words stand for the schema that was refused",
        "actors/session/steps.py:TurnSteps._in_words",
        "ask.instruct(instruction(asked.output))",
        "pass",
        (PARAMETERS,),
    ),
    Mutation(
        "refusals: media are left out for one request as often as it is refused",
        "actors/core/turn/turn.py:_TurnRules._leave_out",
        "if self._media == MEDIA_REFUSALS:\n    ...",
        "",
        (TURN,),
    ),
    Mutation(
        "refusals: an epoch forgets the attachments that were refused before it",
        "actors/core/lanes/lane.py:begin_epoch",
        "old.refused.union(event.media)",
        "frozenset(event.media)",
        (MEDIA,),
    ),
    Mutation(
        "refusals: all attachments become notes where one is pointed at",
        "actors/adapters/refused_parts.py:_is_at",
        "part[:least] == place[:least]",
        "True",
        (MEDIA, "tests/adapters/test_refused_media.py"),
    ),
    Mutation(
        "refusals: no other backend answers after a structural refusal",
        "actors/core/turn/turn.py:_TurnRules._rewrite",
        'self._close("failed", unfit.why, elsewhere=True)',
        'self._close("failed", unfit.why)',
        (FAILOVER, TURN),
    ),
    Mutation(
        "refusals: another backend answers although the pool forbids it",
        "actors/session/driver.py:TurnDriver._next",
        "ended.refused and not pool.failover_on_refusal",
        "False",
        (FAILOVER,),
    ),
    Mutation(
        "refusal: what is said of a file or a link is not taken for an attachment",
        "actors/adapters/error_patterns.py:_FILE",
        'r"\\bfiles?\\b(?![./_])"',
        'r"\\bno such word\\b"',
        ("tests/adapters/test_media_wordings.py::test_words_about_an_attachment_are_about_media",),
    ),
    Mutation(
        "refusal: base64 of a signature is taken for that of an attachment",
        "actors/adapters/error_patterns.py:_NO_TOOL",
        'r"^(?!.*(?:\\btools?\\b[.\\[]|signature|encrypted_content))"',
        'r"^"',
        ("tests/adapters/test_media_wordings.py::test_words_that_only_resemble_them_are_not",),
    ),
    Mutation(
        "refusal: a refused limit of tokens is explained as sampling",
        "actors/adapters/classify.py:_failure",
        "parameter is not None and row.rule in SAMPLING_RULES and SAMPLING.isdisjoint(parameter.settings)",
        "False",
        ("tests/cli/test_asked_for_help.py::test_explain_names_a_refused_parameter",),
    ),
)
