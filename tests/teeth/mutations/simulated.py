"""Mistakes in single features that the simulation finds by the invariants of each."""

from tests.teeth.mutations.mutation import Mutation
from tests.teeth.mutations.simulation import SEEDS

LIVE = "actors/configuration.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "simulated: another system prompt is forgotten",
        LIVE,
        "            self.system = change.system\n",
        "            pass\n",
        SEEDS,
    ),
    Mutation(
        "simulated: other tools are written and not offered",
        LIVE,
        "            self.offer = change.offer\n",
        "            pass\n",
        SEEDS,
    ),
    Mutation(
        "simulated: what is configured takes effect in the midst of an ask",
        "actors/session.py",
        '        if action == "apply":\n            self._log.send(self._changed(or_drop=True)',
        "        if action:\n            self._log.send(self._changed(or_drop=True)",
        SEEDS,
    ),
    Mutation(
        "simulated: the value of an answer is dropped",
        "actors/steps.py",
        "        (self._ask.tally.output,) = made\n",
        "",
        SEEDS,
    ),
    Mutation(
        "simulated: an answer is corrected without end",
        "actors/core/turn.py",
        "        if self._malformed >= self._bounds.corrections:\n",
        "        if self._malformed >= 99:\n",
        SEEDS,
    ),
    Mutation(
        "simulated: edited arguments are in the log only",
        "actors/core/awaiting.py",
        "    return call if decision.arguments is None else replace(call, json=decision.arguments, raw=None)\n",
        "    return call\n",
        SEEDS,
    ),
    Mutation(
        "simulated: edited arguments are not judged",
        "actors/brought.py",
        "        if errors := await refs.scheduler.ask(CheckCall(edited)):\n",
        "        if (errors := await refs.scheduler.ask(CheckCall(edited))) and not edited:\n",
        SEEDS,
    ),
    Mutation(
        "simulated: the parts of a message change places",
        "actors/words.py",
        'return _taken(Message("human", [_part(number, part) for number, part in enumerate(words)]))',
        'return _taken(Message("human", [_part(number, part) for number, part in enumerate(words)][::-1]))',
        SEEDS,
    ),
    Mutation(
        "simulated: who comes behind a call that was ended does not wait for its tool",
        "actors/ordering.py",
        "            if not writer.is_over:\n",
        "            if writer.is_over and not writer.is_closed:\n",
        SEEDS,
    ),
    Mutation(
        "simulated: writers wait for nobody",
        "actors/ordering.py",
        "for key in keys for writer in order.get(key, ())]",
        "for key in keys for writer in order.get(key, ()) if not key]",
        SEEDS,
    ),
    Mutation(
        "simulated: a program is given another result than is in the log",
        "actors/driver.py",
        "        made.result = known.completion or",
        "        made.result = ToolResult(call.id, content=0) or",
        SEEDS,
    ),
    Mutation(
        "simulated: somebody is asked about a program's call",
        "actors/driver.py",
        "ask.log.prelude(), view, approved=True)",
        "ask.log.prelude(), view)",
        SEEDS,
    ),
    Mutation(
        "simulated: at the limit of rounds tools stay on",
        "actors/core/turn.py",
        "if stuck or self._end.rounds >= self._bounds.rounds or",
        "if stuck or self._end.rounds > self._bounds.rounds or",
        SEEDS,
    ),
    Mutation(
        "simulated: an ask's settings are in none of its requests",
        "actors/steps.py",
        '"none" if self._tools_off else choice, asked)',
        '"none" if self._tools_off else choice, None)',
        SEEDS,
    ),
    Mutation(
        "simulated: a budget of tokens is not counted",
        "actors/core/spending.py",
        "if budget.tokens is not None and (tokens := used.tokens) >= budget.tokens:",
        "if budget.tokens is not None and (tokens := used.tokens) >= 9 * budget.tokens:",
        SEEDS,
    ),
    Mutation(
        "simulated: a budget of rounds has one too many",
        "actors/core/spending.py",
        "if budget.rounds is not None and used.rounds >= budget.rounds:",
        "if budget.rounds is not None and used.rounds > budget.rounds:",
        SEEDS,
    ),
    Mutation(
        "simulated: a call ends before the session that its tool opened",
        "actors/calls.py",
        "            self._subagents.over(partial(self.site.ended, self, event))\n",
        "            self.site.ended(self, event)\n",
        SEEDS,
    ),
    Mutation(
        "simulated: who hands over keeps the conversation",
        "actors/handing_over.py",
        "known.completion and not known.completion.error:",
        "known.completion and known.completion.error:",
        SEEDS,
    ),
    Mutation(
        "simulated: a conversation is handed over and the session keeps its target",
        "actors/handing_over.py",
        "        for wanted in (self._ask.log.state.held, target):\n",
        "        for wanted in (self._ask.log.state.held,):\n",
        SEEDS,
    ),
    Mutation(
        "simulated: what a handoff changes goes before what the host configured",
        "actors/handing_over.py",
        "        equipment.hold(change, behind=True)\n",
        "        equipment.hold(change)\n",
        SEEDS,
    ),
)
