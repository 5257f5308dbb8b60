"""Mutations of subagents: their end, their inherited limits, and their events."""

from tests.teeth.mutations.mutation import Mutation

BUDGETS = "tests/subagents/test_budgets.py"
ENDS = "tests/subagents/test_ends.py"
HANDOFF = "tests/subagents/test_handoff.py"
DELETION = "tests/subagents/test_deletion.py"
HANDOFF_TOOLS = "tests/subagents/test_handoff_with_tools.py"
SUBAGENTS = "tests/subagents/test_subagents.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "subagents: a call ends before its tool's sessions",
        "actors/scheduler/calls.py:CallExecution._report_end",
        "self._subagents is None",
        "True",
        (ENDS,),
    ),
    Mutation(
        "subagents: a subagent's usage is not counted",
        "actors/scheduler/children.py:Subagents.close",
        "owned.used is not None",
        "owned.used is None",
        (BUDGETS,),
    ),
    Mutation(
        "subagents: each subagent gets the full budget again",
        "actors/runtime/opening.py:_inherited_values",
        "(tenant, shared, None if shared is None else shared.remaining)",
        "(tenant, shared, actors.state.budget)",
        (BUDGETS,),
    ),
    Mutation(
        "subagents: concurrent subagents do not share the budget",
        "actors/runtime/opening.py:SubagentOpener.__call__",
        "session._lifecycle.configuration.shared = shared",
        "",
        (BUDGETS,),
    ),
    Mutation(
        "subagents: a request in flight counts as nothing",
        "actors/provider/budgets.py:SharedBudget.has_room",
        "not self._in_flight or ...",
        "True or ...",
        (BUDGETS,),
    ),
    Mutation(
        "subagents: a subagent waiting for its budget ignores cancellation",
        "actors/session/inflight.py:AskInFlight.reserve_budget",
        "share.recheck()",
        "None",
        (BUDGETS, "tests/provider/test_shared_budgets.py"),
    ),
    Mutation(
        "subagents: a request's usage is not counted for the others",
        "actors/session/driver.py:TurnDriver._run_steps",
        "self.ask.count_usage(turn_steps.binding, outcome.usage, is_round=is_round)",
        "pass",
        (BUDGETS,),
    ),
    Mutation(
        "subagents: they may be nested to any depth",
        "actors/runtime/opening.py:SubagentOpener.__call__",
        "parent.spec.depth >= self._max_depth",
        "parent.spec.depth >= 16",
        (SUBAGENTS,),
    ),
    Mutation(
        "subagents: without an approver, every call is approved",
        "actors/runtime/opening.py:_deny_all",
        "return False",
        "return True",
        (SUBAGENTS,),
    ),
    Mutation(
        "subagents: an event names only the direct parent call",
        "actors/scheduler/children.py:ParentCall._show_subagent_event",
        "SubagentEvent((self.call_id, *event.path), *...)",
        "SubagentEvent(event.path, *...)",
        (SUBAGENTS,),
    ),
    Mutation(
        "subagents: a failed subagent has answered",
        "actors/runtime/subagents.py:subagent",
        'result.status != "complete"',
        'result.status == "awaiting"',
        (SUBAGENTS,),
    ),
    Mutation(
        "subagents: results of unresolved calls are not awaited",
        "actors/runtime/subagents.py:subagent",
        "isinstance(each, Tool) and each.is_external",
        "isinstance(each, Tool) and each.is_external and False",
        (SUBAGENTS,),
    ),
    Mutation(
        "subagents: a session open at the runtime's end is not ended in order",
        "actors/runtime/session_actors.py:_log_end",
        "session.actors or session.activate()",
        "session.activate()",
        (ENDS,),
    ),
    Mutation(
        "handoff: a failed call hands over too",
        "actors/session/turn_changes.py:HandoverSteps.requested_handover",
        "handover is not None and known is not None and known.completion and (not known.completion.error)",
        "handover is not None and known is not None and known.completion",
        (HANDOFF,),
    ),
    Mutation(
        "handoff: two targets hand a conversation over forever",
        "actors/session/turn_changes.py:HandoverSteps._prepare_or_explain",
        "... >= MAX_HANDOVERS",
        "... >= 9 * MAX_HANDOVERS",
        (HANDOFF,),
    ),
    Mutation(
        "handoff: a switch of the host is forgotten",
        "actors/session/turn_changes.py:HandoverSteps.apply_handover",
        "(self._ask.log.state.held, target)",
        "(None, target)",
        (HANDOFF,),
    ),
    Mutation(
        "delete: nested subagents are left",
        "actors/runtime/deletion.py:read_with_subagents",
        "reversed(await _subagent_ids(journal, branch))",
        "await _subagent_ids(journal, branch) if branch.name == session else []",
        (DELETION,),
    ),
    Mutation(
        "delete: any session with a subagent's id format counts as one",
        "actors/runtime/deletion.py:_subagent_ids",
        "opened.parent_key == branch.key",
        "opened",
        (DELETION,),
    ),
    Mutation(
        "delete: the parent's log is deleted first, so the children cannot be found",
        "actors/runtime/deletion.py:delete_logs",
        "reversed(await read_with_subagents(journal, session, throttle))",
        "await read_with_subagents(journal, session, throttle)",
        (DELETION,),
    ),
    Mutation(
        "handoff: only the target changes",
        "actors/session/turn_changes.py:HandoverSteps.apply_handover",
        "await self._apply_configuration(self._change)",
        "pass",
        (HANDOFF_TOOLS,),
    ),
    Mutation(
        "handoff: the handoff's configuration overrides the host's",
        "actors/session/turn_changes.py:HandoverSteps._apply_configuration",
        "active_config.hold(change, as_older=True)",
        "active_config.hold(change)",
        (HANDOFF_TOOLS,),
    ),
    Mutation(
        "handoff: reasoning bound to the previous tools is sent",
        "actors/session/turn_changes.py:HandoverSteps._apply_configuration",
        "await ask.refs.renderer.send(MarkStale())",
        "pass",
        (HANDOFF_TOOLS,),
    ),
    Mutation(
        "handoff: a cancel waits for the toolset to open",
        "actors/session/turn_changes.py:HandoverSteps._prepare",
        "scope.cancel()",
        "None",
        (HANDOFF_TOOLS,),
    ),
)
