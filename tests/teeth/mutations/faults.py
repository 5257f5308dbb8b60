"""Mutations of runaway tools and of faults."""

from tests.teeth.mutations.mutation import Mutation

_CALLS = "tests/session/test_faulty_calls.py"
_RUNAWAY = "tests/scheduler/test_runaway_tools.py"
_STREAMS = "tests/session/test_faulty_streams.py"
_BAD = "tests/commands/test_bad_tools.py"
_CANCELS = "tests/commands/test_cancels.py"
_CUT = "tests/commands/test_cut_sessions.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "a tool that blocks the loop is not reported",
        "actors/scheduler/watchdog.py:LoopWatch.check",
        "now - since < STALL",
        "now - since >= STALL",
        (f"{_RUNAWAY}::test_a_tool_that_blocks_the_loop_is_named_with_its_code_location",),
    ),
    Mutation(
        "a wait counts as a stall",
        "actors/kernel/tasks.py:ContainedTask.drive",
        "contained_tasks.step = None",
        "pass",
        (f"{_RUNAWAY}::test_a_tool_that_waits_does_not_count_as_a_stall_and_the_watchdog_ends_by_itself",),
    ),
    Mutation(
        "a tool with abandoned calls is not disabled",
        "actors/scheduler/watchdog.py:Quarantine.is_disabled",
        "self._held[_tool_key(tool)] >= self._limit",
        "self._held[_tool_key(tool)] > self._limit",
        (f"{_RUNAWAY}::test_a_tool_with_running_abandoned_calls_is_disabled_until_they_end",),
    ),
    Mutation(
        "a call that ends stays in quarantine",
        "actors/scheduler/calls.py:CallExecution._run",
        "self.batch.executor.quarantine.remove(self.tool)",
        "pass",
        (f"{_RUNAWAY}::test_a_tool_with_running_abandoned_calls_is_disabled_until_they_end",),
    ),
    Mutation(
        "an endless answer has no size limit",
        "actors/provider/rounds.py:Round._new_decoder",
        "decode(*..., **..., max_bytes=self._endpoint.answer_bytes)",
        "decode(*..., **...)",
        (f"{_STREAMS}::test_an_endless_answer_is_aborted_at_the_size_limit_and_not_retried",),
    ),
    Mutation(
        "a too long answer is requested again",
        "actors/adapters/failure.py:ACTIONS",
        '{**..., "too_long": "next_backend", **...}',
        '{**..., "too_long": "retry", **...}',
        (f"{_STREAMS}::test_an_endless_answer_is_aborted_at_the_size_limit_and_not_retried",),
    ),
    Mutation(
        "a byte order mark breaks a stream",
        "actors/adapters/framing.py:EventParser._complete_line",
        "line = line.removeprefix(_BYTE_ORDER_MARK)",
        "",
        ("tests/adapters/test_sse.py",),
    ),
    Mutation(
        "an event without its blank line is ignored at the end",
        "actors/adapters/framing.py:EventParser.close",
        "self._dispatch_event(events)",
        "",
        (f"{_STREAMS}::test_an_unusual_but_valid_stream_is_read_normally",),
    ),
    Mutation(
        "malformed arguments count as empty ones",
        "actors/adapters/partial.py:PartialCall.block",
        "None if is_object else self.pieces.literal()",
        "None",
        (f"{_CALLS}::test_a_call_with_arguments_that_are_not_an_object_runs_no_tool_and_is_corrected_once",),
    ),
    Mutation(
        "a call beyond the batch stays unanswered",
        "actors/core/turn/batch.py:plan",
        "calls[:max_calls]",
        "calls[: max_calls + 1]",
        (f"{_CALLS}::test_calls_beyond_the_limit_per_message_get_error_results",),
    ),
    Mutation(
        "an abandoned call disables all tools",
        "actors/scheduler/watchdog.py:Quarantine.is_disabled",
        "bool(self._held) and self._held[_tool_key(tool)] >= self._limit",
        "bool(self._held)",
        (_BAD,),
    ),
    Mutation(
        "a batch cancelled while its start is written starts a tool",
        "actors/scheduler/scheduler_actor.py:_Batch._start_calls",
        "self._stopping is None",
        "True",
        (_CANCELS,),
    ),
    Mutation(
        "a stopped request keeps its slot",
        "actors/provider/rounds.py:Round._try_once",
        """
        try:
            ...
        finally:
            self._end_try(ticket, failure, usage)
        """,
        """
        try:
            ...
        except LookupError:
            pass
        else:
            self._end_try(ticket, failure, usage)
        """,
        (_CANCELS,),
    ),
    Mutation(
        "a request stopped while it waits keeps its place in the queue",
        "actors/provider/admission.py:Admission._wait_in_queue",
        "queue.remove(ticket.tenant, ticket.session, ticket)",
        "",
        (_CANCELS,),
    ),
    Mutation(
        "an answer with calls needs no end marker",
        "actors/adapters/base.py:Decoder._finish_response",
        """
        if not self.ended:
            raise answer_fault("the stream ended without its end marker")
        """,
        """
        if not (self.ended or self.has_calls):
            raise answer_fault("the stream ended without its end marker")
        """,
        (_CUT,),
    ),
    Mutation(
        "a connection that breaks after the end marker loses the answer",
        "actors/provider/rounds.py:Round._read_answer",
        """
        if not self._decoder.ended:
            raise
        """,
        "raise",
        (_CUT,),
    ),
    Mutation(
        "the calls of a broken answer run",
        "actors/session/steps.py:TurnSteps._after_broken_answer",
        "message = ...",
        """
        message = ...
        if message is not None and message.calls:
            return steps.Answered(message, broken.usage)
        """,
        (_CUT,),
    ),
)
