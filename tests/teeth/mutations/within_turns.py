"""Mistakes where tools that change are declared within a turn."""

from tests.teeth.mutations.mutation import Mutation

WITHIN = ("tests/session/test_tools_within_turns.py",)

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "within turns: what changed waits for the next ask all the same",
        "actors/tools/toolsets/offer.py:SessionTools.catch_up",
        "any(...)",
        "False",
        WITHIN,
    ),
    Mutation(
        "within turns: every toolset's tools change in the midst of a turn",
        "actors/tools/toolsets/offer.py:SessionTools.catch_up",
        "each[0].source.within_turn",
        "True",
        WITHIN,
    ),
    Mutation(
        "within turns: bound reasoning is left out in the midst of its turn",
        "actors/session/tool_changes.py:ToolChanges._why_not",
        "self._has_bound_reasoning(served)",
        "False",
        WITHIN,
    ),
    Mutation(
        "within turns: the log does not say which tools the turn goes on with",
        "actors/session/tool_changes.py:ToolChanges._configure",
        "event.preamble == ask.log.state.config_digest",
        "True",
        WITHIN,
    ),
    Mutation(
        "within turns: lanes keep what is bound to the tools before",
        "actors/session/tool_changes.py:ToolChanges._configure",
        "await ask.refs.renderer.send(MarkStale())",
        "pass",
        WITHIN,
    ),
    Mutation(
        "within turns: a forced tool is taken away",
        "actors/session/tool_changes.py:ToolChanges._why_not",
        "isinstance(forced, ToolChoice)",
        "False",
        WITHIN,
    ),
    Mutation(
        "within turns: what is held back stays in force",
        "actors/session/configuration.py:Equipment.refresh_if",
        "offer.restore(before)",
        "pass",
        WITHIN,
    ),
    Mutation(
        "within turns: a list that is being read is not waited for",
        "actors/tools/toolsets/owner.py:ToolsetOwner.wait_current",
        "not self._is_reading",
        "True",
        WITHIN,
    ),
)
