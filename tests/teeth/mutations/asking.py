"""Mistakes in what one ask may ask for."""

from tests.teeth.mutations.mutation import Mutation

SETTINGS = "tests/session/asking/test_settings.py"
OUTPUT = "tests/session/asking/test_output.py"
SPENDING = "tests/session/asking/test_spending.py"
TABLE = "tests/session/asking/test_settings_table.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "asking: who takes over may correct as often again",
        "actors/session/driver.py:TurnDriver._serve",
        "turns.turn(bounds, malformed=self.ask.tally.malformed)",
        "turns.turn(bounds)",
        (
            "tests/session/asking/test_output.py::test_who_takes_over_goes_on_counting_the_corrections_of_the_ask",
        ),
    ),
    Mutation(
        "output: after a wait an answer is corrected as often again",
        "actors/core/turn/turn.py:_TurnRules.__init__",
        'CloseStep("complete", "", **..., malformed=so_far.malformed)',
        'CloseStep("complete", "", **...)',
        ("tests/session/test_after_a_wait.py::test_the_corrections_of_an_answer_are_counted_on",),
    ),
    Mutation(
        "asking: settings of an ask are not in the log",
        "actors/session/driver.py:TurnDriver.run",
        "AskStarted(*..., asked)",
        "AskStarted(*...)",
        (SETTINGS,),
    ),
    Mutation(
        "asking: a forced tool is forced in every request",
        "actors/session/steps.py:TurnSteps._choice",
        "asked is not None and not self._has_answered",
        "asked is not None",
        (SETTINGS,),
    ),
    Mutation(
        "asking: who may call no tool may call them all the same",
        "actors/core/turn/bounds.py:Bounds.for_ask",
        '1 if asked.tool_choice == "none" else asked.max_rounds or self.max_rounds',
        "asked.max_rounds or self.max_rounds",
        (SETTINGS,),
    ),
    Mutation(
        "asking: a deadline is a cancel",
        "actors/session/inflight.py:AskInFlight.with_halt_reason",
        'replace(step, status="failed", why=self.halted, cause=self.bound) if stopped else step',
        "step",
        (SETTINGS,),
    ),
    Mutation(
        "asking: the timeouts of an ask are the backend's",
        "actors/provider/attempts.py:timeouts_of",
        "replace(usual, first_byte=first_byte, idle=idle)",
        "usual",
        (SETTINGS,),
    ),
    Mutation(
        "asking: what a dialect does not take of sampling is dropped without a word",
        "actors/adapters/settings.py:_fit_fields",
        "losses |= dict.fromkeys(changes)",
        "",
        (SETTINGS,),
    ),
    Mutation(
        "settings: a setting with a row in the table is stored and never sent",
        "actors/adapters/request_head.py:with_fields",
        "_set_field(table, field_name(name, dialect), dict(value) if name == 'metadata' else value)",
        "None",
        (f"{TABLE}::test_every_setting_changes_the_request_or_is_reported_as_a_loss",),
    ),
    Mutation(
        "settings: a setting that a family lacks is omitted without a loss",
        "actors/adapters/request_head.py:is_lacking",
        "not field or name in request.lacks",
        "name in request.lacks",
        (TABLE,),
    ),
    Mutation(
        "settings: thinking that no effort can ask for is omitted without a loss",
        "actors/adapters/thinking.py:_fit_by_effort",
        'losses["thinking"] = None',
        "",
        (f"{TABLE}::test_every_setting_changes_the_request_or_is_reported_as_a_loss",),
    ),
    Mutation(
        "settings: a record holds the settings that were not given",
        "actors/core/settings/values.py:RequestSettings",
        "class RequestSettings(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, "
        "forbid_unknown_fields=True): ...",
        "class RequestSettings(Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True): ...",
        (f"{TABLE}::test_the_log_stores_the_given_settings_alone_and_by_name",),
    ),
    Mutation(
        "output: an answer of another form is taken",
        "actors/core/turn/turn.py:_TurnRules._after_check",
        "correction is None",
        "True",
        (OUTPUT,),
    ),
    Mutation(
        "output: a model is corrected for ever",
        "actors/core/turn/turn.py:_TurnRules._after_check",
        "self._end.malformed >= self._bounds.max_corrections",
        "self._end.malformed >= 20",
        (OUTPUT,),
    ),
    Mutation(
        "output: the call that stands for an answer stays a call that nobody answers",
        "actors/session/steps.py:TurnSteps._answer_message",
        "as_text(message)",
        "message",
        (OUTPUT,),
    ),
    Mutation(
        "output: who takes over is not told the form",
        "actors/session/driver.py:TurnDriver._serve",
        "self._instruct(served.backend)",
        "",
        (OUTPUT,),
    ),
    Mutation(
        "output: a schema stands beside tools where it may not",
        "actors/adapters/outputs.py:output_means",
        "settings.tools and (not rules.output_beside_tools)",
        "False",
        (OUTPUT,),
    ),
    Mutation(
        "output: a strict schema leaves objects open",
        "actors/adapters/schemas/closed.py:_Closing._close",
        'made["additionalProperties"] = False',
        "pass",
        (OUTPUT,),
    ),
    Mutation(
        "parts: what is no part is said as text",
        "actors/session/user_input.py:_part",
        """
        if isinstance(part, str):
            return Text(part)
        """,
        """
        if not isinstance(part, Text | Media):
            return Text(str(part))
        """,
        ("tests/session/asking/test_parts.py",),
    ),
    Mutation(
        "spending: tokens from a cache cost twice",
        "actors/core/settings/spending.py:Price.of",
        "max(usage.input_tokens - read - written, 0)",
        "usage.input_tokens",
        (SPENDING,),
    ),
    Mutation(
        "spending: a missing price is a guess",
        "actors/core/settings/spending.py:total",
        "return None",
        "continue",
        (SPENDING,),
    ),
    Mutation(
        "spending: a turn goes on though the budget is used up",
        "actors/session/driver.py:TurnDriver._is_over",
        'self.ask.cancelled, self.ask.halted, self.ask.bound = (True, why, Cause("limit"))',
        "pass",
        (SPENDING,),
    ),
    Mutation(
        "spending: a session whose budget is used up takes asks",
        "actors/session/session_actor.py:SessionActor._submit",
        'self._phase == "idle"',
        'self._phase == "ended"',
        (SPENDING,),
    ),
    Mutation(
        "spending: a switch leads where no price is known",
        "actors/session/held_changes.py:HeldChanges.switch",
        "check_priced(*..., log.state.tenant, log.state.budget)",
        'check_priced(*..., "", None)',
        (SPENDING,),
    ),
)
