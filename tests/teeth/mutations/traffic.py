"""Mutations of the handling of misbehaving hosts: bursts, rate limits, waits, error pages, proxies."""

from tests.teeth.mutations.mutation import Mutation

BURSTS, RESETS, TIMES = (
    "tests/provider/test_bursts.py",
    "tests/provider/test_resets.py",
    "tests/adapters/test_times.py",
)
VARIABLES = "tests/runtime/test_callers_variables.py"
SWEEP, FROM_THREADS = "tests/transport/test_sweep.py", "tests/scheduler/test_from_threads.py"
REASONING = "tests/adapters/test_reasoning_tokens.py"
SILENCE, PAGES, PROXY = (
    "tests/provider/test_silence.py",
    "tests/adapters/test_pages.py",
    "tests/transport/test_proxy.py",
)

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "sweep: the timer ends although a connection has become idle",
        "actors/transport/client.py:HttpTransport._sweep_pools",
        "any(pool.has_idle for pool in self._pools.values())",
        "any(pool.has_idle for pool in [*self._pools.values()][1:])",
        (f"{SWEEP}::test_a_connection_that_becomes_idle_during_a_sweep_is_swept_later",),
    ),
    Mutation(
        "times: a date without a zone is in the zone of this machine",
        "actors/adapters/retry_after.py:_parse_http_date",
        "date.timestamp() if date.tzinfo else float(timegm(date.timetuple()))",
        "date.timestamp()",
        (f"{TIMES}::test_a_date_without_a_zone_is_in_utc_whatever_the_zone_of_this_machine",),
    ),
    Mutation(
        "errors: a long message is searched completely",
        "actors/adapters/classify.py:_excerpt",
        "len(text) <= MAX_SEARCHED",
        "True",
        ("tests/adapters/test_classify.py::test_only_the_start_and_the_end_of_a_long_error_are_searched",),
    ),
    Mutation(
        "errors: a long message is searched completely for a requested wait",
        "actors/adapters/classify.py:_build_failure",
        "report.text[:_READ]",
        "report.text",
        (
            "tests/adapters/test_classify.py::test_only_the_start_of_a_long_error_is_searched_for_a_requested_wait",
        ),
    ),
    Mutation(
        "bursts: each request in flight counts as a separate failure",
        "actors/core/policy/pace.py:Breaker.record_failure",
        "wave is None or wave == self.wave",
        "True",
        ("tests/core/test_pace.py::test_failures_of_requests_that_were_in_flight_together_count_once",),
    ),
    Mutation(
        "bursts: a backend is paused before its requests were retried",
        "actors/core/policy/pace.py:Breaker.record_failure",
        "self.in_a_row < self.failures or now - self.since < self.least",
        "self.in_a_row < self.failures",
        (f"{BURSTS}::test_every_request_of_a_burst_has_all_its_attempts",),
    ),
    Mutation(
        "bursts: in doubt, all requests are sent at once",
        "actors/provider/admission.py:Admission._can_start",
        "wait = max(wait, self._probed + pause - now)",
        "pass",
        (f"{BURSTS}::test_a_backend_that_stays_down_is_probed_and_then_avoided",),
    ),
    Mutation(
        "bursts: a hanging request blocks all others",
        "actors/provider/admission.py:Admission._can_start",
        "NEXT_PROBE if self._in_doubt else ...",
        "inf if self._in_doubt else ...",
        (f"{BURSTS}::test_a_second_probe_is_sent_one_second_after_a_probe_that_hangs",),
    ),
    Mutation(
        "rate limits: refusals without a wait use up the retries of outages",
        "actors/provider/admission.py:Admission.may_retry",
        'failure.kind == "rate_limit" or ...',
        "...",
        (f"{BURSTS}::test_all_requests_are_answered_after_a_rate_limit_that_meets_all_of_them",),
    ),
    Mutation(
        "rate limits: a request is refused for good while others are served",
        "actors/provider/rounds.py:Round._counted_tries",
        "self._were_others_answered()",
        "False",
        (f"{BURSTS}::test_a_rate_limit_while_other_requests_are_served_uses_no_attempt",),
    ),
    Mutation(
        "rate limits: refusals beside successes do not reveal a lower limit",
        "actors/core/policy/pace.py:Concurrency.record_crowding",
        "self.limit = min(self.limit, float(others))",
        "pass",
        (
            "tests/core/test_pace.py::test_after_a_partly_served_burst_the_limit_equals_the_number_of_served_requests",
        ),
    ),
    Mutation(
        "resets: a timestamp is read as a duration",
        "actors/adapters/retry_after.py:seconds_until",
        "read <= MAX_WAIT",
        "True",
        (f"{TIMES}::test_every_format_of_a_retry_or_reset_time_is_parsed", RESETS),
    ),
    Mutation(
        "resets: a timestamp is compared with this machine's clock",
        "actors/adapters/retry_after.py:server_clock",
        "now if told is None else told",
        "now",
        (f"{TIMES}::test_a_retry_date_is_compared_with_the_clock_of_the_server_that_sent_it",),
    ),
    Mutation(
        "resets: a refusal with only a reset time has no wait",
        "actors/adapters/classify.py:_requested_wait",
        'seconds_until_reset(headers, now) if told is None and kind in ("rate_limit", "quota") else told',
        "told",
        (RESETS,),
    ),
    Mutation(
        "resets: a wait of hours delays every request",
        "actors/provider/admission.py:Admission.pause",
        "if seconds <= self._pace.max_pause:\n    self._paused_until = max(self._paused_until, self._now() + seconds)",
        "self._paused_until = max(self._paused_until, self._now() + min(seconds, self._pace.max_pause))",
        (f"{RESETS}::test_a_quota_used_up_for_hours_delays_no_request",),
    ),
    Mutation(
        "resets: the wait is not reported",
        "actors/provider/attempts.py:Retries.mention_wait",
        "replace(failure, message=...)",
        "failure",
        (f"{RESETS}::test_the_runtime_does_not_wait_for_a_limit_that_resets_in_hours",),
    ),
    Mutation(
        "errors: an endless body is read on",
        "actors/provider/rounds.py:Round._read_rejection",
        "self._here.scope(deadline=self._here.now() + ERROR_SECONDS)",
        "self._here.scope()",
        (f"{SILENCE}::test_an_error_body_is_read_for_two_seconds_at_most",),
    ),
    Mutation(
        "silence: a stream of pings continues",
        "actors/provider/attempts.py:SilenceTimeout.record_events",
        "self._timeout is not None and any(map(_has_content, events))",
        "self._timeout is not None",
        (SILENCE,),
    ),
    Mutation(
        "silence: a non-streamed answer is ended for it",
        "actors/provider/rounds.py:Round._read_answer",
        "silence.disable()",
        "pass",
        (SILENCE,),
    ),
    Mutation(
        "pages: an error page is shown with its markup",
        "actors/adapters/classify.py:_build_failure",
        "page_summary(report.message[:_READ], status) or report.message",
        "report.message",
        (PAGES,),
    ),
    Mutation(
        "pages: the target of a redirect is hidden",
        "actors/adapters/classify.py:classify",
        "redirect_message(status, lowered) or report.message",
        "report.message",
        (PAGES,),
    ),
    Mutation(
        "pages: the query of a redirect is shown",
        "actors/adapters/classify.py:redirect_message",
        'headers.get("location", "").strip().partition("?")[0].partition("#")[0]',
        'headers.get("location", "").strip()',
        (PAGES,),
    ),
    Mutation(
        "proxies: plain http is sent through a open_tunnel",
        "actors/transport/dial.py:dial",
        """
        if origin.scheme == "http":
            return stream
        """,
        "pass",
        (PROXY,),
    ),
    Mutation(
        "proxies: a forwarded request does not name its host",
        "actors/transport/exchange.py:post_request",
        'path = f"{target.origin.scheme}://{target.origin.host_header}{path}"',
        "pass",
        (PROXY,),
    ),
    Mutation(
        "proxies: ALL_PROXY is ignored",
        "actors/transport/dial.py:_proxy_variable",
        '(name, "all_proxy")',
        "(name,)",
        (PROXY,),
    ),
    Mutation(
        "proxies: a blank variable does not disable a proxy",
        "actors/transport/dial.py:_environment_variable",
        "name in environ",
        "environ.get(name)",
        (PROXY,),
    ),
    Mutation(
        "connections: a connection closed by the provider stays open until the next request",
        "actors/transport/pool.py:ConnectionPool.release",
        "self._on_idle()",
        "pass",
        (SWEEP,),
    ),
    Mutation(
        "connections: reusable connections are closed with the others",
        "actors/transport/pool.py:ConnectionPool.sweep",
        "connection in self._idle and not connection.is_alive()",
        "connection in self._idle",
        (SWEEP,),
    ),
    Mutation(
        "usage: reasoning outside of the completion is not output",
        "actors/adapters/openai_chat/decode.py:_PLACES",
        '{**..., "reasoning": (1,), **...}',
        '{**..., "reasoning": (), **...}',
        (REASONING,),
    ),
    Mutation(
        "usage: reasoning inside of the completion counts twice",
        "actors/adapters/openai_chat/decode.py:_separate_reasoning_tokens",
        "total == counted + reasoning",
        "True",
        (REASONING,),
    ),
    Mutation(
        "threads: a tool's thread belongs to no event loop",
        "actors/scheduler/in_threads.py:run_in_slot",
        "with thread():\n    value: object = run_in(context, work)",
        "value: object = run_in(context, work)",
        (FROM_THREADS,),
    ),
    Mutation(
        "threads: trio does not know a tool's thread",
        "actors/scheduler/in_threads.py:_register_with_trio",
        "parent_data.token, parent_data.abandon_on_cancel = (token, True)",
        "parent_data.token, parent_data.abandon_on_cancel = (None, True)",
        (FROM_THREADS,),
    ),
    Mutation(
        "variables: argument validators see no context variables",
        "actors/scheduler/scheduler_actor.py:SchedulerActor._plan_batch",
        "call_with_variables(command.variables, planning)",
        "planning()",
        (VARIABLES,),
    ),
    Mutation(
        "variables: rules see no context variables",
        "actors/scheduler/calls.py:CallExecution._enter_resource_order",
        "partial(call_with_variables, self.batch.context, rule)",
        "rule",
        (VARIABLES,),
    ),
    Mutation(
        "variables: answer validators see no context variables",
        "actors/session/inflight.py:AskInFlight.read_answer",
        "call_with_variables(self.variables, partial(self.output.parse, text, repair))",
        "self.output.parse(text, repair)",
        (VARIABLES,),
    ),
    Mutation(
        "retries: answered requests use up the share of outages",
        "actors/provider/admission.py:Admission.record_end",
        "self._retries.refund_retry()",
        "pass",
        (f"{BURSTS}::test_successful_retries_leave_other_requests_their_retries",),
    ),
)
