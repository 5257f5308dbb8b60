"""Mistakes in what one ask may ask for."""

from tests.teeth.mutations.mutation import Mutation

SETTINGS = "tests/asking/test_settings.py"
OUTPUT = "tests/asking/test_output.py"
SPENDING = "tests/asking/test_spending.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "asking: who takes over may correct as often again",
        "actors/session/driver.py:TurnDriver._served",
        "turns.turn(bounds, malformed=self.ask.tally.malformed)",
        "turns.turn(bounds)",
        ("tests/asking/test_output.py::test_who_takes_over_goes_on_counting_the_corrections_of_the_ask",),
    ),
    Mutation(
        "output: after a wait an answer is corrected as often again",
        "actors/core/turn/turn.py:_TurnRules.__init__",
        'CloseStep("complete", "", **..., malformed=so_far.malformed)',
        'CloseStep("complete", "", **...)',
        ("tests/test_after_a_wait.py::test_the_corrections_of_an_answer_are_counted_on",),
    ),
    Mutation(
        "asking: settings of an ask are not in the log",
        "actors/session/driver.py:TurnDriver.run",
        "Submitted(*..., asked)",
        "Submitted(*...)",
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
        '1 if asked.tool_choice == "none" else asked.rounds or self.rounds',
        "asked.rounds or self.rounds",
        (SETTINGS,),
    ),
    Mutation(
        "asking: a deadline is a cancel",
        "actors/session/inflight.py:AskInFlight.ended",
        'replace(step, status="failed", why=self.halted, cause=self.bound) if stopped else step',
        "step",
        (SETTINGS,),
    ),
    Mutation(
        "asking: the timeouts of an ask are the backend's",
        "actors/provider/sending.py:timeouts_of",
        "replace(usual, first_byte=first_byte, idle=idle)",
        "usual",
        (SETTINGS,),
    ),
    Mutation(
        "asking: what a dialect does not take of sampling is dropped without a word",
        "actors/adapters/settings.py:_fit_sampling",
        "losses |= dict.fromkeys(changes)",
        "",
        (SETTINGS,),
    ),
    Mutation(
        "output: an answer of another form is taken",
        "actors/core/turn/turn.py:_TurnRules._checked",
        "correction is None",
        "True",
        (OUTPUT,),
    ),
    Mutation(
        "output: a model is corrected for ever",
        "actors/core/turn/turn.py:_TurnRules._checked",
        "self._end.malformed >= self._bounds.corrections",
        "self._end.malformed >= 20",
        (OUTPUT,),
    ),
    Mutation(
        "output: the call that stands for an answer stays a call that nobody answers",
        "actors/session/steps.py:TurnSteps._read",
        "as_text(message)",
        "message",
        (OUTPUT,),
    ),
    Mutation(
        "output: who takes over is not told the form",
        "actors/session/driver.py:TurnDriver._served",
        "self._instruct(served.backend)",
        "",
        (OUTPUT,),
    ),
    Mutation(
        "output: a schema stands beside tools where it may not",
        "actors/adapters/outputs.py:means",
        "settings.tools and (not rules.output_beside_tools)",
        "False",
        (OUTPUT,),
    ),
    Mutation(
        "output: a strict schema leaves objects open",
        "actors/adapters/closed_schemas.py:_Closing._close",
        'made["additionalProperties"] = False',
        "pass",
        (OUTPUT,),
    ),
    Mutation(
        "parts: what is no part is said as text",
        "actors/session/words.py:_part",
        """
        if isinstance(part, str):
            return Text(part)
        """,
        """
        if not isinstance(part, Text | Media):
            return Text(str(part))
        """,
        ("tests/asking/test_parts.py",),
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
        "actors/session/session_actor.py:SessionActor._submitted",
        'self._phase == "idle"',
        'self._phase == "ended"',
        (SPENDING,),
    ),
    Mutation(
        "spending: a switch leads where no price is known",
        "actors/session/session_actor.py:SessionActor._switched",
        "check_priced(*..., self._log.state.tenant, self._log.state.budget)",
        'check_priced(*..., "", None)',
        (SPENDING,),
    ),
)
