"""Mistakes in log events, and in the figures for alerts."""

from tests.teeth.mutations.mutation import Mutation

LOGS, FIGURES = "tests/test_logging.py", "tests/test_metrics.py"
PLAIN = f"{LOGS}::test_no_text_forges_a_line_of_a_plain_log_or_reaches_the_terminal"
RENDERED = f"{LOGS}::test_no_text_forges_an_event_of_structlog_whatever_renders_it"
FAILURES = f"{LOGS}::test_a_retry_a_failover_and_a_failed_ask_are_events_with_fields"
SHOWN = f"{FIGURES}::test_every_figure_that_an_alert_needs_is_in_the_stats_and_in_prometheus"
STAGES = f"{FIGURES}::test_a_session_is_counted_at_what_it_is_whatever_becomes_of_its_actors"

MUTATIONS = (
    Mutation(
        "logging: structlog's configuration is passed over",
        "actors/telemetry/emission.py:emit",
        "structlog.is_configured()",
        "False",
        (f"{LOGS}::test_events_go_through_structlog_as_the_program_has_configured_it",),
    ),
    Mutation(
        "logging: a record has its message alone",
        "actors/telemetry/emission.py:_emit_to_logging",
        '{"event": event, **...}',
        "None",
        (f"{LOGS}::test_without_structlog_a_record_has_its_fields_as_attributes",),
    ),
    Mutation(
        "logging: an asynchronous logger is left unawaited",
        "actors/telemetry/emission.py:_bound",
        "structlog.stdlib.BoundLogger if is_waiting else None",
        "None",
        (f"{LOGS}::test_an_asynchronous_logger_of_structlog_is_written_to_at_once",),
    ),
    Mutation(
        "logging: a text of others' ends its literal",
        "actors/telemetry/emission.py:_literal",
        "repr(_cut(value))",
        "f\"'{printable(_cut(value))}'\"",
        (PLAIN,),
    ),
    Mutation(
        "logging: what structlog renders is not escaped",
        "actors/telemetry/emission.py:escape",
        "printable(_cut(value))",
        "_cut(value)",
        (RENDERED,),
    ),
    Mutation(
        "logging: only the controls of C0 are escaped",
        "actors/telemetry/emission.py:_printable_character",
        "character.isprintable()",
        "character >= ' '",
        (PLAIN, RENDERED),
    ),
    Mutation(
        "logging: a line of an exception's text begins like one of the log",
        "actors/telemetry/emission.py:trace_of",
        "partial('{}{}'.format, MARGIN)",
        "str",
        (PLAIN, RENDERED),
    ),
    Mutation(
        "logging: a traceback has no end",
        "actors/telemetry/emission.py:trace_of",
        "len(lines) > MOST_TRACE",
        "False",
        (f"{LOGS}::test_a_text_is_cut_and_so_is_a_traceback",),
    ),
    Mutation(
        "logging: a tool that raises is an error of the runtime",
        "actors/telemetry/__init__.py:tool_failed",
        "emit('info', *..., **...)",
        "emit('error', *..., **...)",
        (f"{LOGS}::test_a_tool_that_raises_is_one_line_at_info_and_its_traceback_is_at_debug",),
    ),
    Mutation(
        "logging: a failed ask is not logged",
        "actors/turns/records.py:AskRecord.end",
        "telemetry.ask_failed(self.session, result, self.advise)",
        "pass",
        (FAILURES,),
    ),
    Mutation(
        "logging: a retry is not logged",
        "actors/backends/rounds.py:Round._report",
        "telemetry.request_failed(*...)",
        "None",
        (FAILURES,),
    ),
    Mutation(
        "logging: a failover is not logged",
        "actors/turns/driver.py:TurnDriver._until_last",
        "self._note_failover(served, following)",
        "",
        (FAILURES,),
    ),
    Mutation(
        "logging: a refused ask is neither logged nor counted",
        "actors/handle.py:Session._hand_in",
        "self._activation.record.refuse(error)",
        "pass",
        (f"{LOGS}::test_a_refused_ask_is_an_event_and_so_is_one_that_a_closed_session_drops",),
    ),
    Mutation(
        "logging: a take-over is not logged",
        "actors/logs/ends.py:LogEnds.claimed",
        "telemetry.session_taken_over(session, claim.taken_from)",
        "pass",
        (f"{LOGS}::test_a_session_that_is_taken_over_is_an_event_on_both_hosts",),
    ),
    Mutation(
        "logging: a claim of one's own passes for a take-over",
        "actors/storage/rows.py:SessionRow.claim",
        "before and before != self.owner",
        "before",
        ("tests/test_takeover.py::test_a_host_that_stopped_and_goes_on_writes_nothing_that_was_taken_over",),
    ),
    Mutation(
        "logging: a breaker that fails again is logged as opened again",
        "actors/backends/admission.py:Admission._failed",
        "not was_open and (until := self.breaker.until) is not None",
        "(until := self.breaker.until) is not None",
        (f"{LOGS}::test_a_breaker_that_opens_and_closes_is_an_event",),
    ),
    Mutation(
        "metrics: requests that were gone on with are not counted",
        "actors/core/measures.py:RequestCounts.end",
        "sent - 1",
        "0",
        (f"{FIGURES}::test_statuses_are_those_of_http",),
    ),
    Mutation(
        "metrics: a request that was stopped passes for one that was answered",
        "actors/backends/rounds.py:Round._leave",
        "usage is None",
        "False",
        (f"{FIGURES}::test_a_request_that_broke_off_has_no_status_and_one_that_was_stopped_is_cancelled",),
    ),
    Mutation(
        "metrics: whatever status a server makes up is a label",
        "actors/core/measures.py:status_label",
        "str(status) if status in _STATUSES else UNUSUAL",
        "str(status)",
        (f"{FIGURES}::test_statuses_are_those_of_http",),
    ),
    Mutation(
        "metrics: every name that comes is a label",
        "actors/core/measures.py:bounded",
        "name in known or len(known) < MOST_NAMES",
        "True",
        (
            f"{FIGURES}::test_models_are_counted_by_name_up_to_a_bound_and_what_they_cost_is_kept",
            f"{FIGURES}::test_tools_are_counted_by_name_up_to_a_bound",
        ),
    ),
    Mutation(
        "metrics: an answer's tokens are not counted",
        "actors/backends/rounds.py:Round.outcome",
        "self._requests.use(usage)",
        "",
        (SHOWN, f"{FIGURES}::test_the_tokens_of_the_stats_are_those_that_callers_are_told"),
    ),
    Mutation(
        "metrics: the first token is counted with each piece",
        "actors/backends/rounds.py:Round._hear",
        "not self._is_heard",
        "True",
        (SHOWN,),
    ),
    Mutation(
        "metrics: a tool that raised has not failed",
        "actors/execution/calls.py:Running._has_ended",
        "isinstance(event, Failed)",
        "False",
        (SHOWN,),
    ),
    Mutation(
        "metrics: an ask that was taken up still waits",
        "actors/turns/pending.py:PendingAsks.take",
        "self.record.queue(-1)",
        "",
        (SHOWN,),
    ),
    Mutation(
        "metrics: a session that awaits its caller has an ask in flight",
        "actors/turns/records.py:_STAGES",
        "'waiting'",
        "'asking'",
        (SHOWN, STAGES),
    ),
    Mutation(
        "metrics: a session that has ended still waits",
        "actors/hosting/activation.py:Activation.ended",
        "self.record.enter('ended')",
        "",
        (f"{LOGS}::test_a_refused_ask_is_an_event_and_so_is_one_that_a_closed_session_drops", STAGES),
    ),
    Mutation(
        "metrics: the buckets of a histogram do not add up",
        "actors/telemetry/prometheus.py:_histogram",
        "accumulate(took.counts.values())",
        "took.counts.values()",
        (SHOWN,),
    ),
)
