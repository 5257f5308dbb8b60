"""Mistakes where sessions stand below others: when they end, what they inherit, and what is shown of them."""

from tests.teeth.mutations.mutation import Mutation

BUDGETS = "tests/subagents/test_budgets.py"
ENDS = "tests/subagents/test_ends.py"
HANDOFF = "tests/subagents/test_handoff.py"
DELETION = "tests/subagents/test_deletion.py"
HANDOFF_TOOLS = "tests/subagents/test_handoff_with_tools.py"
SUBAGENTS = "tests/subagents/test_subagents.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "subagents: a call ends before the sessions that its tool opened",
        "actors/scheduler/calls.py:CallExecution._has_ended",
        "self._subagents is None",
        "True",
        (ENDS,),
    ),
    Mutation(
        "subagents: what a subagent used is its own affair",
        "actors/scheduler/children.py:Subagents.close",
        "owned.used is not None",
        "owned.used is None",
        (BUDGETS,),
    ),
    Mutation(
        "subagents: each is given the whole budget again",
        "actors/runtime/subagent_opening.py:_inheritance",
        "(tenant, shared, None if shared is None else shared.remaining)",
        "(tenant, shared, acting.state.budget)",
        (BUDGETS,),
    ),
    Mutation(
        "subagents: those that run at the same time know nothing of each other",
        "actors/runtime/subagent_opening.py:SubagentOpener.__call__",
        "session._lifecycle.configuration.shared = shared",
        "",
        (BUDGETS,),
    ),
    Mutation(
        "subagents: a request in flight counts as nothing",
        "actors/provider/budgets.py:SharedBudget.is_roomy",
        "not self._in_flight or ...",
        "True or ...",
        (BUDGETS,),
    ),
    Mutation(
        "subagents: one that waits for room does not hear that it is cancelled",
        "actors/session/inflight.py:AskInFlight.admit",
        "share.look_again()",
        "None",
        (BUDGETS, "tests/provider/test_shared_budgets.py"),
    ),
    Mutation(
        "subagents: what a request has used is not counted for the others",
        "actors/session/driver.py:TurnDriver._turn",
        "self.ask.settle(served.binding, outcome.usage, is_round=is_round)",
        "pass",
        (BUDGETS,),
    ),
    Mutation(
        "subagents: they may stand as deep as they like",
        "actors/runtime/subagent_opening.py:SubagentOpener.__call__",
        "outer.spec.depth >= self._most",
        "outer.spec.depth >= 16",
        (SUBAGENTS,),
    ),
    Mutation(
        "subagents: without anybody to ask, all is approved",
        "actors/runtime/subagent_opening.py:_deny_all",
        "return False",
        "return True",
        (SUBAGENTS,),
    ),
    Mutation(
        "subagents: an event says only which call its own session was opened by",
        "actors/scheduler/children.py:ParentCall._tell",
        "SubagentEvent((self.call_id, *event.path), *...)",
        "SubagentEvent(event.path, *...)",
        (SUBAGENTS,),
    ),
    Mutation(
        "subagents: one that failed has answered",
        "actors/runtime/subagents.py:subagent",
        'result.status != "complete"',
        'result.status == "awaiting"',
        (SUBAGENTS,),
    ),
    Mutation(
        "subagents: nobody's results are waited for",
        "actors/runtime/subagents.py:subagent",
        "isinstance(each, Tool) and each.is_external",
        "isinstance(each, Tool) and each.is_external and False",
        (SUBAGENTS,),
    ),
    Mutation(
        "subagents: a session that is left at the runtime's end is not ended in order",
        "actors/runtime/lifecycle.py:SessionLifecycle._write_end",
        "self.actors or self.activate()",
        "self.activate()",
        (ENDS,),
    ),
    Mutation(
        "handoff: a call that failed hands over too",
        "actors/session/handing_over.py:HandoverSteps.requested_handover",
        "handover is not None and known is not None and known.completion and (not known.completion.error)",
        "handover is not None and known is not None and known.completion",
        (HANDOFF,),
    ),
    Mutation(
        "handoff: two targets pass a conversation back and forth for ever",
        "actors/session/handing_over.py:HandoverSteps._why_not",
        "... >= HANDOVERS",
        "... >= 9 * HANDOVERS",
        (HANDOFF,),
    ),
    Mutation(
        "handoff: a switch of the host's is forgotten",
        "actors/session/handing_over.py:HandoverSteps.take_over",
        "(self._ask.log.state.held, target)",
        "(None, target)",
        (HANDOFF,),
    ),
    Mutation(
        "delete: subagents of subagents are left",
        "actors/runtime/deletion.py:with_subagents",
        "reversed(await _subagent_ids(journal, branch))",
        "await _subagent_ids(journal, branch) if branch.name == session else []",
        (DELETION,),
    ),
    Mutation(
        "delete: what has the id of a subagent is taken for one",
        "actors/runtime/deletion.py:_subagent_ids",
        "opened.above == branch.key",
        "opened",
        (DELETION,),
    ),
    Mutation(
        "delete: the log above is deleted first, and with it the way to those below",
        "actors/runtime/deletion.py:delete_logs",
        "reversed(await with_subagents(journal, session))",
        "await with_subagents(journal, session)",
        (DELETION,),
    ),
    Mutation(
        "handoff: only the target changes",
        "actors/session/handing_over.py:HandoverSteps.take_over",
        "await self._configure(self._change)",
        "pass",
        (HANDOFF_TOOLS,),
    ),
    Mutation(
        "handoff: what it goes on with counts before what the host configured",
        "actors/session/handing_over.py:HandoverSteps._configure",
        "equipment.hold(change, behind=True)",
        "equipment.hold(change)",
        (HANDOFF_TOOLS,),
    ),
    Mutation(
        "handoff: reasoning that was bound to the tools before goes along",
        "actors/session/handing_over.py:HandoverSteps._configure",
        "await ask.refs.renderer.send(MarkStale())",
        "pass",
        (HANDOFF_TOOLS,),
    ),
    Mutation(
        "handoff: a cancel waits for the toolset to open",
        "actors/session/handing_over.py:HandoverSteps._prepare",
        "scope.cancel()",
        "None",
        (HANDOFF_TOOLS,),
    ),
)
