"""Mutations of the settings of an ask."""

from tests.teeth.mutations.mutation import Mutation

SETTINGS = "tests/session/test_settings.py"
OUTPUT = "tests/session/test_output.py"
SPENDING = "tests/session/test_spending.py"
TABLE = "tests/session/test_settings_table.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "asking: a failover renews the correction limit",
        "actors/session/driver.py:TurnDriver._serve_turn",
        "turns.turn(bounds, malformed=self.ask.tally.malformed)",
        "turns.turn(bounds)",
        ("tests/session/test_output.py::test_corrections_are_counted_across_a_failover",),
    ),
    Mutation(
        "output: a pause renews the correction limit",
        "actors/core/turn/turn.py:_TurnRules.__init__",
        'CloseStep("complete", "", **..., malformed=so_far.malformed)',
        'CloseStep("complete", "", **...)',
        ("tests/session/test_resumed_asks.py::test_the_corrections_of_an_answer_are_counted_across_a_wait",),
    ),
    Mutation(
        "asking: settings of an ask are not in the log",
        "actors/session/driver.py:TurnDriver.run",
        "AskStarted(*..., ask_settings, key)",
        "AskStarted(*..., None, key)",
        (SETTINGS,),
    ),
    Mutation(
        "asking: a forced tool is forced in every request",
        "actors/session/steps.py:TurnSteps._tool_choice",
        "asked is None or self._has_answered or self._ask.has_forced_call",
        "asked is None",
        (SETTINGS,),
    ),
    Mutation(
        "asking: tools run although they are turned off",
        "actors/core/turn/turn.py:Bounds.for_ask",
        '1 if asked.tool_choice == "none" else asked.max_rounds or self.max_rounds',
        "asked.max_rounds or self.max_rounds",
        (SETTINGS,),
    ),
    Mutation(
        "asking: a deadline is reported as a cancel",
        "actors/session/inflight.py:AskInFlight.with_halt_reason",
        'replace(step, status="failed", reason=self.halt_reason, cause=self.halt_cause)',
        "step",
        (SETTINGS,),
    ),
    Mutation(
        "asking: an ask uses the timeouts of its backend",
        "actors/provider/attempts.py:timeouts_of",
        "replace(defaults, first_byte=first_byte, idle=idle)",
        "defaults",
        (SETTINGS,),
    ),
    Mutation(
        "asking: an unsupported sampling setting is dropped silently",
        "actors/adapters/settings.py:_fit_fields",
        "losses |= dict.fromkeys(changes)",
        "",
        (SETTINGS,),
    ),
    Mutation(
        "settings: a setting in the table is stored and never sent",
        "actors/adapters/writing.py:add_setting_fields",
        "_set_field(table, field_name(name, dialect), dict(value) if name == 'metadata' else value)",
        "None",
        (f"{TABLE}::test_every_setting_changes_the_request_or_is_reported_as_a_loss",),
    ),
    Mutation(
        "settings: a setting that a family lacks is omitted without a loss",
        "actors/adapters/writing.py:is_unsupported_setting",
        "not field or name in request.unsupported_settings",
        "name in request.unsupported_settings",
        (TABLE,),
    ),
    Mutation(
        "settings: thinking that no effort can express is omitted without a loss",
        "actors/adapters/thinking.py:_fit_by_effort",
        'losses["thinking"] = None',
        "",
        (f"{TABLE}::test_every_setting_changes_the_request_or_is_reported_as_a_loss",),
    ),
    Mutation(
        "settings: a record contains unset settings",
        "actors/core/settings/values.py:RequestSettings",
        "class RequestSettings(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, "
        "forbid_unknown_fields=True): ...",
        "class RequestSettings(Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True): ...",
        (f"{TABLE}::test_the_log_stores_only_the_settings_that_were_passed",),
    ),
    Mutation(
        "output: an answer in the wrong format is accepted",
        "actors/core/turn/turn.py:_TurnRules._after_check",
        "correction is None",
        "True",
        (OUTPUT,),
    ),
    Mutation(
        "output: a model is corrected forever",
        "actors/core/turn/turn.py:_TurnRules._after_check",
        "self._end.malformed >= self._bounds.max_corrections",
        "self._end.malformed >= 20",
        (OUTPUT,),
    ),
    Mutation(
        "output: the call that represents an answer stays unanswered",
        "actors/session/steps.py:TurnSteps._answer_message",
        "as_text(message)",
        "message",
        (OUTPUT,),
    ),
    Mutation(
        "output: a failover does not pass on the format",
        "actors/session/driver.py:TurnDriver._serve_turn",
        "add_missing_instruction(self.ask, turn_steps.backend)",
        "",
        (OUTPUT,),
    ),
    Mutation(
        "output: a schema is sent beside tools where this is forbidden",
        "actors/adapters/outputs.py:output_means",
        "settings.tools and (not rules.output_beside_tools)",
        "False",
        (OUTPUT,),
    ),
    Mutation(
        "output: a strict schema leaves objects open",
        "actors/adapters/schemas/closed.py:_SchemaCloser._close_object",
        'closed["additionalProperties"] = False',
        "pass",
        (OUTPUT,),
    ),
    Mutation(
        "parts: an invalid part is sent as text",
        "actors/session/user_input.py:_to_block",
        """
        if isinstance(message_part, str):
            return Text(message_part)
        """,
        """
        if not isinstance(message_part, Text | Media):
            return Text(str(message_part))
        """,
        ("tests/session/test_message_parts.py",),
    ),
    Mutation(
        "spending: cached tokens are charged twice",
        "actors/core/settings/spending.py:Price.of",
        "max(usage.input_tokens - read - written, 0)",
        "usage.input_tokens",
        (SPENDING,),
    ),
    Mutation(
        "spending: a missing price is guessed",
        "actors/core/settings/spending.py:sum_costs",
        "return None",
        "continue",
        (SPENDING,),
    ),
    Mutation(
        "spending: a turn continues after its budget is used up",
        "actors/session/driver.py:TurnDriver._must_end_turn",
        'self.ask.cancelled, self.ask.halt_reason, self.ask.halt_cause = (True, why, Cause("limit"))',
        "pass",
        (SPENDING,),
    ),
    Mutation(
        "spending: a session without remaining budget accepts asks",
        "actors/session/limits.py:rejection",
        'phase == "idle"',
        'phase == "ended"',
        (SPENDING,),
    ),
    Mutation(
        "spending: a switch is accepted without a known price",
        "actors/session/held_changes.py:HeldChanges.switch",
        "check_prices(*..., log.state.tenant, log.state.budget)",
        'check_prices(*..., "", None)',
        (SPENDING,),
    ),
)
