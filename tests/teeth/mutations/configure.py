"""Mutations of changes between turns: the system prompt and the tools."""

from tests.teeth.mutations.mutation import Mutation

LANES = "tests/core/test_outdated.py"
WALKS = "tests/commands/test_walks.py"
CONFIGURE = "tests/runtime/test_configure.py"
LIVE = "actors/session/configuration.py"
HELD = "actors/session/held_changes.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "configure: reasoning is sent back after a change of tools",
        "actors/core/session/lanes.py:Lanes.apply",
        "before.config_digest != after.config_digest",
        "before.config_digest == after.config_digest",
        (f"{LANES}::test_a_changed_configuration_starts_an_epoch_only_in_lanes_with_bound_reasoning",),
    ),
    Mutation(
        "configure: every lane is rewritten",
        "actors/core/session/lanes.py:Lanes._lane_after_configuring",
        '... == "prefix"',
        '... != ""',
        (f"{LANES}::test_a_changed_configuration_starts_an_epoch_only_in_lanes_with_bound_reasoning",),
    ),
    Mutation(
        "configure: a plain render becomes normal again",
        "actors/core/session/lanes.py:Lanes._render_lane",
        "EpochBegan(*..., lane._state.plain, WHY[why])",
        "EpochBegan(*..., False, WHY[why])",
        (f"{LANES}::test_a_lane_rendered_as_plain_text_stays_plain_after_a_configuration_change",),
    ),
    Mutation(
        "configure: a walk over hosts that bind reasoning is refused",
        "actors/core/session/lanes.py:Lanes._lane_after_configuring",
        '_mark_stale(lane, "configured") if is_bound else lane',
        "lane",
        (f"{WALKS}::test_a_random_walk_has_no_refusal_and_never_changes_sent_messages",),
    ),
    Mutation(
        "configure: the renderer is not notified",
        f"{HELD}:HeldChanges._configured_event",
        "context.send(self._renderer, MarkStale())",
        "pass",
        (f"{CONFIGURE}::test_changed_tools_begin_an_epoch_if_reasoning_is_bound_to_them",),
    ),
    Mutation(
        "configure: new tools are not logged",
        f"{HELD}:HeldChanges.log_config_change",
        "self._active_config.resolver.config_digest != self._log.state.config_digest",
        "self._log.state.closed",
        (f"{CONFIGURE}::test_new_tools_of_a_toolset_are_logged_before_the_first_request",),
    ),
    Mutation(
        "configure: a change during an ask takes effect at once",
        f"{HELD}:HeldChanges.configure",
        "at_once",
        "True",
        (
            f"{CONFIGURE}::test_changes_during_an_ask_are_queued_and_the_latest_of_each_kind_applies",
            f"{CONFIGURE}::test_a_turn_that_waits_for_its_caller_keeps_its_tools",
        ),
    ),
    Mutation(
        "configure: a later change drops the other part of an earlier one",
        f"{LIVE}:Configuration.hold",
        "change.session_tools = held.session_tools",
        "pass",
        (f"{CONFIGURE}::test_changes_during_an_ask_are_queued_and_the_latest_of_each_kind_applies",),
    ),
    Mutation(
        "configure: toolsets of a superseded change stay open",
        f"{LIVE}:Configuration.hold",
        "self.toolsets.release(held.session_tools.owners)",
        "pass",
        (f"{CONFIGURE}::test_toolsets_are_opened_for_a_change_and_closed_when_unused",),
    ),
    Mutation(
        "configure: replaced toolsets stay open",
        f"{LIVE}:Configuration.confirm_written",
        "self.toolsets.release(first.session_tools.owners)",
        "pass",
        (f"{CONFIGURE}::test_toolsets_are_opened_for_a_change_and_closed_when_unused",),
    ),
    Mutation(
        "configure: too many tools are sent",
        "actors/provider/resolver.py:Resolver._resolve_backend",
        "self._check_tool_count(backend)",
        "",
        (f"{CONFIGURE}::test_an_ask_fails_if_a_toolset_exceeds_its_backends_limit",),
    ),
    Mutation(
        "configure: a pool fails at the first member that accepts fewer tools",
        "actors/session/driver.py:TurnDriver._pool",
        "self.ask.resolver.pool(target, must_fit=False)",
        "self.ask.resolver.pool(target)",
        (f"{CONFIGURE}::test_a_pool_continues_with_a_member_that_accepts_the_number_of_tools",),
    ),
    Mutation(
        "configure: an epoch begins without a log event",
        "actors/session/requests.py:TurnRequests.begin_epoch",
        "self.ask.log.hold(event)",
        "",
        (f"{CONFIGURE}::test_changed_tools_begin_an_epoch_if_reasoning_is_bound_to_them",),
    ),
)
