"""Mistakes in what changes between turns: the system prompt and the tools."""

from tests.teeth.mutations.mutation import Mutation

STATE = "actors/core/state.py"
LANES = "tests/core/test_outdated.py"
WALKS = "tests/test_walks.py"
CONFIGURE = "tests/test_configure.py"
LIVE = "actors/turns/configuration.py"
SESSION = "actors/session.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "configure: reasoning goes back behind other tools",
        STATE,
        "if before.preamble != after.preamble:\n",
        "if before.preamble == after.preamble:\n",
        (
            f"{LANES}::test_what_was_configured_begins_an_epoch_where_reasoning_is_bound_to_it_and_nowhere_else",
        ),
    ),
    Mutation(
        "configure: every lane is rewritten",
        STATE,
        'is_bound = self._rules(binding)[0].reasoning.binding == "prefix"',
        'is_bound = self._rules(binding)[0].reasoning.binding != ""',
        (
            f"{LANES}::test_what_was_configured_begins_an_epoch_where_reasoning_is_bound_to_it_and_nowhere_else",
        ),
    ),
    Mutation(
        "configure: what had to be said plainly is said as before",
        STATE,
        "why, lane.state.plain, WHY[why])",
        "why, False, WHY[why])",
        (f"{LANES}::test_a_lane_that_had_to_be_plain_stays_plain",),
    ),
    Mutation(
        "configure: a walk over bound hosts is refused",
        STATE,
        'return _outdated(lane, "configured") if is_bound else lane',
        "return lane",
        (f"{WALKS}::test_no_request_of_a_random_walk_is_refused_or_changes_what_was_sent",),
    ),
    Mutation(
        "configure: the renderer is not told",
        SESSION,
        "            self._mine.tell(self._refs.renderer, Outdate())\n",
        "            pass\n",
        (f"{CONFIGURE}::test_other_tools_begin_an_epoch_where_reasoning_is_bound_to_them",),
    ),
    Mutation(
        "configure: what is offered anew is not written",
        SESSION,
        "        if self._equipment.resolver.preamble != self._log.state.preamble:\n",
        "        if self._log.state.closed:\n",
        (f"{CONFIGURE}::test_what_a_toolset_offers_anew_is_written_before_the_first_request_with_it",),
    ),
    Mutation(
        "configure: a change in the midst of an ask is taken up at once",
        SESSION,
        '        if action == "apply":\n            self._log.send(self._changed(or_drop=True)',
        "        if action:\n            self._log.send(self._changed(or_drop=True)",
        (
            f"{CONFIGURE}::test_what_is_configured_during_an_ask_waits_for_its_end_and_the_latest_of_each_counts",
            f"{CONFIGURE}::test_a_turn_that_waits_for_its_caller_ends_with_the_tools_it_began_with",
        ),
    ),
    Mutation(
        "configure: a later change drops what an earlier one said of the other",
        LIVE,
        "                change.offer = held.offer\n",
        "                pass\n",
        (
            f"{CONFIGURE}::test_what_is_configured_during_an_ask_waits_for_its_end_and_the_latest_of_each_counts",
        ),
    ),
    Mutation(
        "configure: toolsets of a change that was replaced stay open",
        LIVE,
        "                self.toolsets.release(held.offer.owners)\n",
        "                pass\n",
        (f"{CONFIGURE}::test_toolsets_are_opened_for_a_change_and_closed_when_nothing_uses_them",),
    ),
    Mutation(
        "configure: toolsets that were replaced stay open",
        LIVE,
        "                self.toolsets.release(first.offer.owners)\n",
        "                pass\n",
        (f"{CONFIGURE}::test_toolsets_are_opened_for_a_change_and_closed_when_nothing_uses_them",),
    ),
    Mutation(
        "configure: too many tools are sent",
        "actors/backends/resolver.py",
        "        self._check_tools(backend)\n        settings",
        "        settings",
        (f"{CONFIGURE}::test_a_toolset_that_grows_past_what_a_backend_takes_fails_the_ask_and_says_why",),
    ),
    Mutation(
        "configure: a pool fails with the first member that takes fewer tools",
        "actors/turns/driver.py",
        "            return self.ask.resolver.pool(target, fits=False)\n",
        "            return self.ask.resolver.pool(target)\n",
        (f"{CONFIGURE}::test_a_pool_goes_on_with_the_member_that_takes_so_many_tools",),
    ),
    Mutation(
        "configure: an epoch is begun and not written",
        "actors/turns/steps.py",
        '        self._log.hold(event, self._ask.telling("rewritten", event.why))\n',
        "",
        (f"{CONFIGURE}::test_other_tools_begin_an_epoch_where_reasoning_is_bound_to_them",),
    ),
)
