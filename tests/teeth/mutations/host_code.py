"""Mutations of calls of the host's functions."""

from tests.teeth.mutations.mutation import Mutation

TABLE = "tests/host_code/test_host_code.py"
PLAYS = f"{TABLE}::test_an_exception_of_host_code_affects_only_the_operation_that_ran_the_code"
INTERRUPTS = "tests/host_code/test_interrupts.py"
STRIKES = f"{INTERRUPTS}::test_an_interrupt_from_a_signal_during_host_code_propagates_out_of_the_runtime"
CLOSED = (
    f"{INTERRUPTS}::test_generator_exit_propagates_if_a_coroutine_is_closed_but_not_if_host_code_raises_it"
)
BACKGROUND = "tests/host_code/test_background.py"

MUTATIONS = (
    Mutation(
        "host code: an exit exception is not contained",
        "actors/kernel/host_code.py:call_host",
        "try:\n    ...\nexcept BaseException as error:\n    ...",
        "try:\n    ...\nexcept Exception as error:\n    ...",
        (PLAYS,),
    ),
    Mutation(
        "host code: a group is judged by its own class",
        "actors/interrupts.py:is_from_signal",
        "is_group(error)",
        "False",
        (
            f"{INTERRUPTS}::test_an_interrupt_from_a_signal_propagates_but_an_interrupt_raised_by_host_code_does_not",
        ),
    ),
    Mutation(
        "host code: every interrupt counts as a delivered signal",
        "actors/interrupts.py:is_from_signal",
        "not is_raised_by_statement(error)",
        "True",
        (PLAYS,),
    ),
    Mutation(
        "host code: a signal's interrupt counts as a failure of the code",
        "actors/kernel/host_code.py:call_host",
        "is_from_signal(error)",
        "False",
        (
            f"{INTERRUPTS}::test_an_interrupt_from_a_signal_propagates_but_an_interrupt_raised_by_host_code_does_not",
        ),
    ),
    Mutation(
        "host code: the type of an answer crashes its session",
        "actors/session/output.py:Output._build_value",
        "call_host(partial(self._convert, value), _output_type_error)",
        "self._convert(value)",
        (PLAYS,),
    ),
    Mutation(
        "host code: a raising approval rule has approved",
        "actors/scheduler/scheduler_actor.py:_GuardedTool._deny",
        "'deny'",
        "'allow'",
        (PLAYS,),
    ),
    Mutation(
        "host code: a raising resource rule is not a fault of its call",
        "actors/scheduler/calls.py:CallExecution._keep_keys_error",
        "self._fault = error",
        "pass",
        (PLAYS,),
    ),
    Mutation(
        "host code: a raising log handler ends the logged operation",
        "actors/telemetry/emission.py:never_raising",
        "call_host(partial(log, *args, **kwargs), _on_log_failure)",
        "log(*args, **kwargs)",
        (PLAYS,),
    ),
    Mutation(
        "host code: a raising listener is called again",
        "actors/kernel/host_code.py:Listener._disable",
        "self.is_disabled = True",
        "pass",
        (PLAYS,),
    ),
    Mutation(
        "host code: a span processor crashes the journal",
        "actors/telemetry/callbacks.py:_TracedSink.put",
        "self._listener.call(partial(self._trace.put, event))",
        "self._trace.put(event)",
        (PLAYS,),
    ),
    Mutation(
        "host code: a failure hook crashes the session",
        "actors/telemetry/callbacks.py:guard_callback",
        "safe.call(lambda: callback(event))",
        "callback(event)",
        (PLAYS,),
    ),
    Mutation(
        "host code: an interrupt is lost in the tool that it hits",
        "actors/kernel/tasks.py:ContainedTask.run",
        "self._contained_tasks.on_interrupt(raised)",
        "pass",
        (STRIKES,),
    ),
    Mutation(
        "host code: an interrupt counts as a failure of the tool that it hits",
        "actors/scheduler/calls.py:CallExecution._run_to_end",
        "is_from_signal(error)",
        "False",
        (STRIKES,),
    ),
    Mutation(
        "host code: an unavailable vault crashes the session",
        "actors/config/__init__.py:Config.__post_init__",
        'object.__setattr__(self, "environ", guard(self.environ))',
        "",
        (PLAYS,),
    ),
    Mutation(
        "host code: a pool with temporarily unknown members counts as no pool",
        "actors/provider/resolver.py:Resolver._why_skipped",
        "if must_fit:\n    raise",
        "raise",
        (PLAYS,),
    ),
    Mutation(
        "host code: tasks started by a tool belong to its call forever",
        "actors/scheduler/executor.py:ToolCallMarker.mark_ended",
        "self.is_over = True",
        "pass",
        (BACKGROUND,),
    ),
    Mutation(
        "host code: tasks started by a tool can ask as its batch forever",
        "actors/scheduler/executor.py:ToolCallMarker.mark_ended",
        "self.delegate.is_over = True",
        "pass",
        (BACKGROUND,),
    ),
    Mutation(
        "host code: a tool that continues after its call still belongs to it",
        "actors/scheduler/calls.py:CallExecution.close",
        "self._mark_closed()",
        "self.is_closed = True",
        (BACKGROUND,),
    ),
    Mutation(
        "host code: an exit exception in a transport ends the runtime",
        "actors/provider/rounds.py:Round._send_once",
        "not is_failure(error)",
        "not isinstance(error, Exception)",
        (PLAYS,),
    ),
    Mutation(
        "host code: an exit exception in a storage crashes the journal",
        "actors/journal/storage_calls.py:call_storage",
        "call_host(work, _reraise)",
        "work()",
        (PLAYS,),
    ),
    Mutation(
        "host code: a transport that cannot be closed keeps the journal open",
        "actors/runtime/runtime.py:Runtime._release_resources",
        "await await_host(self._transport.close, ...)",
        "await self._transport.close()",
        (PLAYS,),
    ),
    Mutation(
        "host code: every end of a coroutine counts as a failure of the code",
        "actors/kernel/host_code.py:is_failure",
        "isinstance(error, GeneratorExit) and (not is_raised_by_statement(error))",
        "False",
        (CLOSED,),
    ),
    Mutation(
        "host code: a requested cancellation counts as a failure of the code",
        "actors/kernel/host_code.py:is_failure",
        "_is_being_cancelled() or is_from_signal(error)",
        "is_from_signal(error)",
        (
            f"{INTERRUPTS}::test_a_requested_cancellation_propagates_but_a_cancellation_raised_by_host_code_does_not",
        ),
    ),
    Mutation(
        "host code: a public parameter that accepts code is not covered",
        "tests/host_code/signatures.py:_is_code",
        "any(map(_is_code, get_args(hint)))",
        "False",
        (f"{TABLE}::test_a_new_public_parameter_that_accepts_code_is_detected",),
    ),
)
