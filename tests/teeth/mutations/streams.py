"""Mutations of the events that readers receive."""

from tests.teeth.mutations.mutation import Mutation

LOG = "tests/session/test_replayed_events.py::test_the_log_yields_the_same_events_as_the_stream"
FAILOVER = "tests/session/test_replayed_events.py::test_the_log_yields_the_same_events_after_a_failover"
GROUPS = (
    "tests/session/test_replayed_events.py::test_a_subscriber_resumes_only_after_all_events_with_one_number"
)
CUT = "tests/session/test_session_events.py::test_a_subscriber_resumes_at_any_event_without_a_gap"
SAME = "tests/session/test_session_events.py::test_early_and_late_subscribers_receive_the_same_events"
SLOW = "tests/session/test_session_events.py::test_a_slow_subscriber_receives_resync_and_misses_only_deltas"
LEFT = "tests/session/test_session_events.py::"
LEFT += "test_exiting_the_runtime_ends_subscriptions"
COUNTED = "tests/runtime/test_stats.py::test_the_counters_equal_recounts_of_the_logs_and_of_the_events"
REPEATED = "tests/runtime/test_stats.py::test_repeated_calls_have_the_same_count_in_stats_logs_and_events"
REFUSED = "tests/telemetry/test_tracing.py::test_a_refused_ask_ends_its_trace_span_with_the_reason"
SAID = "tests/telemetry/test_tracing.py::test_trace_spans_contain_message_content_only_if_enabled"
TOKENS = "tests/telemetry/test_tracing.py::test_tokens_are_recorded_per_request_and_backend"
SPANS = "tests/telemetry/test_tracing.py::test_an_ask_is_traced_as_a_span_that_contains_its_requests_and_tool_calls"
WITHIN = (
    "tests/session/test_session_events.py::test_a_subscriber_that_joins_mid_answer_receives_the_rest_live"
)

WAITS = "tests/session/test_replayed_events.py::test_the_log_yields_the_same_events_for_an_ask_that_waits"
DELTA = "tests/core/test_stream_events.py::test_the_frame_of_a_delta_contains_the_same_json_as_event_json"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "streams: live events do not have the log's numbers",
        "actors/journal/commands.py:LiveEvents.publish",
        "self._publisher.seq = last_seq - len(events)",
        "",
        (LOG,),
    ),
    Mutation(
        "streams: a resumed turn does not report the results of its batch",
        "actors/core/session/open_asks.py:publisher_at",
        "Publisher(0, state.turns, round_number, ask, batch)",
        "Publisher(0, state.turns, round_number, ask)",
        (WAITS,),
    ),
    Mutation(
        "streams: a switch after a crash is not shown in its ask's stream",
        "actors/session/session_actor.py:SessionActor._continue_after_crash",
        "self._generation.live.begin(pending.sink_for(pending.current.sink), publisher)",
        "pass",
        (
            "tests/runtime/test_recovery_of_sessions.py::"
            "test_a_switch_queued_before_a_crash_is_applied_and_reported",
        ),
    ),
    Mutation(
        "streams: the frame of a text has no version",
        "actors/core/stream_events/event_json.py:sse_frame",
        "prefix + _encode(event)[1:]",
        "prefix.replace(b'\"v\":1,', b'') + _encode(event)[1:]",
        (DELTA,),
    ),
    Mutation(
        "streams: never started calls are reported as cancelled",
        "actors/core/session/publishing.py:outcome_of",
        '_CANCELLED.get(reason, "cancelled")',
        '"cancelled"',
        (
            "tests/session/test_replayed_events.py::test_calls_that_never_started_are_reported_when_their_turn_ends",
        ),
    ),
    Mutation(
        "streams: a rewritten request counts as another round",
        "actors/core/session/publishing.py:AskResultBuilder.record_request",
        "self.request != (turn, round_number)",
        "1",
        (LOG,),
    ),
    Mutation(
        "streams: the attempts of an ask are those of its last turn",
        "actors/core/session/publishing.py:AskResultBuilder.end_turn",
        "self.attempts += (*event.retried, ended)",
        "self.attempts = [ended]",
        (FAILOVER,),
    ),
    Mutation(
        "streams: a number counts as seen with its first event",
        "actors/core/session/publishing.py:Publisher._publish_round",
        "MessageEvent(*..., more=bool(calls))",
        "MessageEvent(*...)",
        (GROUPS, CUT),
    ),
    Mutation(
        "streams: deltas overtake earlier events of the log",
        "actors/journal/readers.py:Subscriber.delta_position",
        "self._deltas[0][0]",
        "0",
        (SAME,),
    ),
    Mutation(
        "streams: a slow reader does not learn of lost events",
        "actors/journal/readers.py:Subscriber.put",
        "self.lost += MAX_DELTAS",
        "",
        (SLOW,),
    ),
    Mutation(
        "streams: a departed reader is kept",
        "actors/journal/readers.py:Readers.subscribe",
        "self.subscribers.pop(session, None)",
        "pass",
        (LEFT,),
    ),
    Mutation(
        "stats: refused requests are counted in the wrong branch",
        "actors/session/steps.py:TurnSteps._after_broken_answer",
        "self.backend.counts.tool_api_400_total",
        "self.backend.counts.tool_calls_repaired",
        (COUNTED,),
    ),
    Mutation(
        "tracing: the tokens of a request are not recorded",
        "actors/telemetry/otel.py:AskSpans._record_usage",
        "histogram.record(counts[kind], attributes)",
        "pass",
        (TOKENS,),
    ),
    Mutation(
        "tracing: every piece of an answer is the first",
        "actors/telemetry/otel.py:AskSpans._record_first_token",
        "self._chat.is_answered = True",
        "",
        (TOKENS,),
    ),
    Mutation(
        "tracing: a message has no usage",
        "actors/core/session/publishing.py:Publisher._publish_round",
        "event.usage",
        "Usage()",
        (TOKENS,),
    ),
    Mutation(
        "tracing: content is in the spans by default",
        "actors/telemetry/otel.py:Tracing.__init__",
        "self._content = content",
        "self._content = True",
        (SAID,),
    ),
    Mutation(
        "stats: a detected repetition is not counted",
        "actors/scheduler/scheduler_actor.py:_Batch._record",
        "self._counts.tool_calls_repeated += 1",
        "pass",
        (REPEATED,),
    ),
    Mutation(
        "stats: late readers do not learn of repetitions",
        "actors/core/session/publishing.py:OpenBatch.close_call",
        "self.repeated += is_repeated(event)",
        "self.repeated = 0",
        (REPEATED,),
    ),
    Mutation(
        "stats: a repetition that turns the tools off is not logged",
        "actors/core/turn/guards.py:mark_repeated",
        "replace(_with_repeat_note(event) if has_note else event, repeated=True)",
        "replace(_with_repeat_note(event), repeated=True) if has_note else event",
        (REPEATED,),
    ),
    Mutation(
        "tracing: the tokens of a summary are not recorded",
        "actors/telemetry/otel.py:AskSpans._record_message",
        "message.origin is not None",
        "message.origin is None",
        ("tests/telemetry/test_tracing.py::test_a_summary_does_not_end_the_span_of_its_request",),
    ),
    Mutation(
        "tracing: a refused request has no error",
        "actors/telemetry/otel.py:AskSpans._apply_request_event",
        'self._end_request("refused")',
        'self._end_request("")',
        ("tests/telemetry/test_tracing.py::test_a_too_long_request_and_its_retry_have_separate_spans",),
    ),
    Mutation(
        "tracing: the span of a refused ask stays open",
        "actors/telemetry/otel.py:AskSpans.close",
        "self._ask.end()",
        "",
        (REFUSED,),
    ),
    Mutation(
        "tracing: a tool's own spans are outside of the ask",
        "actors/telemetry/otel.py:Tracing._start_ask_spans",
        "variables.run(context.attach, trace.set_span_in_context(span))",
        "",
        (SPANS,),
    ),
    Mutation(
        "streams: an answer without early readers is not shown to later ones",
        "actors/session/steps.py:TurnSteps._generate",
        "self._requests.send(self._plan, request, self._sink)",
        "self._requests.send(self._plan, request, self._sink if self._sink.is_watched else None)",
        (WITHIN,),
    ),
    Mutation(
        "tracing: tokens written to the cache have an outdated name",
        "actors/telemetry/otel.py:_token_counts",
        '{**..., "cache_write.input_tokens": ...}',
        '{**..., "cache_creation.input_tokens": ...}',
        (
            "tests/telemetry/test_tracing_conventions.py::test_cache_tokens_are_counted_as_read_or_written_and_as_input",
        ),
    ),
    Mutation(
        "tracing: a retry leaves no event",
        "actors/telemetry/otel.py:AskSpans._record_attempt",
        "wait is not None",
        "False",
        (
            "tests/telemetry/test_tracing_conventions.py::test_a_retried_request_is_one_span_with_an_event_per_retry",
        ),
    ),
    Mutation(
        "tracing: a repeated and answered request is an error",
        "actors/telemetry/otel.py:AskSpans._end_request",
        "error and (request.error or error)",
        "request.error or error",
        (
            "tests/telemetry/test_tracing_conventions.py::test_a_retried_request_is_one_span_with_an_event_per_retry",
        ),
    ),
    Mutation(
        "tracing: an error without a status has its kind as type",
        "actors/adapters/failure.py:Failure.error_type",
        "self.error",
        "self.kind",
        (
            "tests/telemetry/test_tracing_conventions.py::test_a_request_error_has_its_status_or_exception_class",
        ),
    ),
    Mutation(
        "tracing: the exception of a tool is not named",
        "actors/scheduler/calls.py:CallExecution._report_error",
        "type(error).__name__",
        '"error"',
        (
            "tests/telemetry/test_tracing_conventions.py::test_a_tool_error_has_its_exception_class_or_completion",
        ),
    ),
    Mutation(
        "tracing: a message contains only its text",
        "actors/telemetry/otel.py:_encode_part",
        "case ToolCall(): ...",
        "",
        (
            "tests/telemetry/test_tracing_conventions.py::test_messages_in_spans_are_json_in_the_form_that_the_conventions_require",
        ),
    ),
    Mutation(
        "tracing: a repeated request leaves the first one's span open",
        "actors/telemetry/otel.py:AskSpans._start_request",
        "self._end_request('refused')",
        "pass",
        (
            "tests/telemetry/test_tracing_conventions.py"
            "::test_a_request_that_is_repeated_without_a_refused_parameter_has_its_own_span",
        ),
    ),
)
