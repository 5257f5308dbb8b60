"""Mistakes at the edges: exits and cancellations where nobody expects them."""

from tests.teeth.mutations.mutation import Mutation

FROM_THREADS = "tests/test_from_threads.py"
EXITS = f"{FROM_THREADS}::test_an_exit_exception_on_the_event_loop_fails_the_call_of_its_tool_only"

MUTATIONS = (
    Mutation(
        "edges: an exit exception of what a tool's thread has the event loop run ends the loop",
        "actors/execution/from_threads.py:_belongs",
        "backend = _containing(token.backend_class)",
        "backend = token.backend_class",
        (EXITS,),
    ),
    Mutation(
        "edges: a tool's thread looks as if an event loop ran in it",
        "actors/execution/from_threads.py:run_in",
        "context.run(set_current_async_library, None)",
        "",
        (f"{FROM_THREADS}::test_a_blocking_tool_may_run_an_event_loop_of_its_own",),
    ),
)
