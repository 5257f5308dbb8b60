"""Mutations of changed tools within a turn."""

from tests.teeth.mutations.mutation import Mutation

WITHIN = ("tests/session/test_tools_within_turns.py",)

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "within turns: a change waits for the next ask nevertheless",
        "actors/tools/toolsets.py:SessionTools.check_for_changes",
        "any(...)",
        "False",
        WITHIN,
    ),
    Mutation(
        "within turns: every toolset's tools change within a turn",
        "actors/tools/toolsets.py:SessionTools.check_for_changes",
        "each[0].source.within_turn",
        "True",
        WITHIN,
    ),
    Mutation(
        "within turns: bound reasoning is omitted within its turn",
        "actors/session/turn_changes.py:ToolChanges._reason_to_keep_tools",
        "self._has_bound_reasoning(turn_steps)",
        "False",
        WITHIN,
    ),
    Mutation(
        "within turns: the log does not record the turn's new tools",
        "actors/session/turn_changes.py:ToolChanges._log_tools",
        "event.preamble == ask.log.state.config_digest",
        "True",
        WITHIN,
    ),
    Mutation(
        "within turns: lanes keep content bound to the previous tools",
        "actors/session/turn_changes.py:ToolChanges._log_tools",
        "await ask.refs.renderer.send(MarkStale())",
        "pass",
        WITHIN,
    ),
    Mutation(
        "within turns: a forced tool is removed",
        "actors/session/turn_changes.py:ToolChanges._reason_to_keep_tools",
        "isinstance(forced, ToolChoice)",
        "False",
        WITHIN,
    ),
    Mutation(
        "within turns: a withheld tool stays available",
        "actors/session/configuration.py:ActiveConfig.refresh_unless",
        "session_tools.restore(before)",
        "pass",
        WITHIN,
    ),
    Mutation(
        "within turns: a list being read is not waited for",
        "actors/tools/toolset_owner.py:ToolsetOwner.refresh_tools",
        "not self._is_reading",
        "True",
        WITHIN,
    ),
)
