"""Mistakes in what one ask may ask for."""

from tests.teeth.mutations.mutation import Mutation

SETTINGS = "tests/asking/test_settings.py"
OUTPUT = "tests/asking/test_output.py"
SPENDING = "tests/asking/test_spending.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "asking: who takes over may correct as often again",
        "actors/turns/driver.py",
        "turns.turn(self._bounded(), malformed=self.ask.tally.malformed)",
        "turns.turn(self._bounded())",
        ("tests/asking/test_output.py::test_who_takes_over_goes_on_counting_the_corrections_of_the_ask",),
    ),
    Mutation(
        "output: after a wait an answer is corrected as often again",
        "actors/core/turn.py",
        "usage=so_far.usage, malformed=so_far.malformed\n",
        "usage=so_far.usage\n",
        ("tests/test_after_a_wait.py::test_the_corrections_of_an_answer_are_counted_on",),
    ),
    Mutation(
        "asking: settings of an ask are not in the log",
        "actors/turns/driver.py",
        "Submitted(number, message, asked)",
        "Submitted(number, message)",
        (SETTINGS,),
    ),
    Mutation(
        "asking: a forced tool is forced in every request",
        "actors/turns/steps.py",
        "asked is not None and self._round == 1",
        "asked is not None",
        (SETTINGS,),
    ),
    Mutation(
        "asking: who may call no tool may call them all the same",
        "actors/turns/driver.py",
        '1 if asked.tool_choice == "none" else asked.rounds',
        "asked.rounds",
        (SETTINGS,),
    ),
    Mutation(
        "asking: a deadline is a cancel",
        "actors/turns/inflight.py",
        'return replace(step, status="failed", why=self.halted, cause=self.bound) if stopped else step',
        "return step",
        (SETTINGS,),
    ),
    Mutation(
        "asking: the timeouts of an ask are the backend's",
        "actors/backends/rounds.py",
        "return replace(usual, first_byte=first_byte, idle=idle)",
        "return usual",
        (SETTINGS,),
    ),
    Mutation(
        "asking: what a dialect does not take of sampling is dropped without a word",
        "actors/adapters/settings.py",
        "if settings.top_p is not None and (fixed or",
        "if settings.top_p is not None and (",
        (SETTINGS,),
    ),
    Mutation(
        "output: an answer of another form is taken",
        "actors/core/turn.py",
        "        if correction is None:\n",
        "        if True:\n",
        (OUTPUT,),
    ),
    Mutation(
        "output: a model is corrected for ever",
        "actors/core/turn.py",
        "if self._end.malformed >= self._bounds.corrections:",
        "if self._end.malformed >= 20:",
        (OUTPUT,),
    ),
    Mutation(
        "output: the call that stands for an answer stays a call that nobody answers",
        "actors/turns/steps.py",
        "message = as_text(message)",
        "message = message",
        (OUTPUT,),
    ),
    Mutation(
        "output: who takes over is not told the form",
        "actors/turns/driver.py",
        "        self._instruct(served.backend)\n",
        "",
        (OUTPUT,),
    ),
    Mutation(
        "output: a schema stands beside tools where it may not",
        "actors/adapters/outputs.py",
        "if settings.tools and not rules.output_beside_tools:",
        "if False:",
        (OUTPUT,),
    ),
    Mutation(
        "output: a strict schema leaves objects open",
        "actors/adapters/closed_schemas.py",
        'made["additionalProperties"] = False',
        "pass",
        (OUTPUT,),
    ),
    Mutation(
        "parts: what is no part is said as text",
        "actors/turns/words.py",
        "    if isinstance(part, str):\n        return Text(part)\n",
        "    if not isinstance(part, Text | Media):\n        return Text(str(part))\n",
        ("tests/asking/test_parts.py",),
    ),
    Mutation(
        "spending: tokens from a cache cost twice",
        "actors/core/spending.py",
        "max(usage.input_tokens - read - written, 0)",
        "usage.input_tokens",
        (SPENDING,),
    ),
    Mutation(
        "spending: a missing price is a guess",
        "actors/core/spending.py",
        "        if cost is None:\n            return None\n",
        "        if cost is None:\n            continue\n",
        (SPENDING,),
    ),
    Mutation(
        "spending: a turn goes on though the budget is used up",
        "actors/turns/driver.py",
        'self.ask.cancelled, self.ask.halted, self.ask.bound = True, why, Cause("limit")',
        "pass",
        (SPENDING,),
    ),
    Mutation(
        "spending: a session whose budget is used up takes asks",
        "actors/session.py",
        'if self._phase == "idle" and (why := self._equipment.refusal(',
        'if self._phase == "ended" and (why := self._equipment.refusal(',
        (SPENDING,),
    ),
    Mutation(
        "spending: a switch leads where no price is known",
        "actors/session.py",
        "check_priced(self._resolver, target, self._log.state.tenant, self._log.state.budget)",
        'check_priced(self._resolver, target, "", None)',
        (SPENDING,),
    ),
)
