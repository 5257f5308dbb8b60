"""Mistakes about hosts that misbehave: bursts that fail, rate limits, waits, error pages, proxies."""

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
        "bursts: each request that was in flight counts as a failure of its own",
        "actors/core/policy/pace.py:Breaker.record_failure",
        "wave is None or wave == self.wave",
        "True",
        ("tests/core/test_pace.py::test_what_was_in_flight_at_the_first_failure_counts_as_one",),
    ),
    Mutation(
        "bursts: a backend is left alone before its requests were tried again",
        "actors/core/policy/pace.py:Breaker.record_failure",
        "self.in_a_row < self.failures or now - self.since < self.least",
        "self.in_a_row < self.failures",
        (f"{BURSTS}::test_every_request_of_a_burst_has_all_its_attempts",),
    ),
    Mutation(
        "bursts: in doubt, all go out at once",
        "actors/provider/admission.py:Admission._fits",
        "wait = max(wait, self._probed + pause - now)",
        "pass",
        (f"{BURSTS}::test_a_backend_that_stays_down_is_asked_by_one_after_the_other_and_then_left_alone",),
    ),
    Mutation(
        "bursts: a request that hangs holds up all others",
        "actors/provider/admission.py:Admission._fits",
        "NEXT_PROBE if self._in_doubt else ...",
        "inf if self._in_doubt else ...",
        (f"{BURSTS}::test_while_one_request_hangs_in_doubt_another_goes_out_a_second_later",),
    ),
    Mutation(
        "rate limits: those without a wait use up the retries of outages",
        "actors/provider/admission.py:Admission.may_retry",
        'failure.kind == "rate_limit" or ...',
        "...",
        (f"{BURSTS}::test_a_rate_limit_that_everybody_meets_leaves_everybody_their_tries",),
    ),
    Mutation(
        "rate limits: a request is refused for good while others are served",
        "actors/provider/rounds.py:Round._counted_tries",
        "self._was_passed_over()",
        "False",
        (f"{BURSTS}::test_a_refusal_for_the_rate_while_others_are_served_is_no_attempt",),
    ),
    Mutation(
        "rate limits: what is refused beside others that are served tells nothing of how many that are",
        "actors/core/policy/pace.py:Concurrency.record_crowding",
        "self.limit = min(self.limit, float(others))",
        "pass",
        ("tests/core/test_pace.py::test_a_burst_that_is_served_in_part_leaves_room_for_what_was_served",),
    ),
    Mutation(
        "resets: a moment is a duration",
        "actors/adapters/retry_after.py:seconds_until",
        "read <= MAX_WAIT",
        "True",
        (f"{TIMES}::test_a_time_is_read_in_every_form", RESETS),
    ),
    Mutation(
        "resets: a moment is compared with this machine's clock",
        "actors/adapters/retry_after.py:server_clock",
        "now if told is None else told",
        "now",
        (f"{TIMES}::test_a_moment_is_compared_with_the_clock_of_the_server_that_names_it",),
    ),
    Mutation(
        "resets: a refusal that only says when its limit resets names no wait",
        "actors/adapters/classify.py:_wait",
        'until_reset(headers, now) if told is None and kind in ("rate_limit", "quota") else told',
        "told",
        (RESETS,),
    ),
    Mutation(
        "resets: a wait of hours keeps everybody waiting for as long as anybody is",
        "actors/provider/admission.py:Admission.hold",
        "if seconds <= self._pace.patience:\n    self._hold = max(self._hold, self._now() + seconds)",
        "self._hold = max(self._hold, self._now() + min(seconds, self._pace.patience))",
        (f"{RESETS}::test_a_quota_that_is_used_up_for_hours_keeps_nobody_waiting",),
    ),
    Mutation(
        "resets: the wait is not told",
        "actors/provider/attempts.py:Retries.mention_wait",
        "replace(failure, message=...)",
        "failure",
        (f"{RESETS}::test_a_limit_that_resets_hours_ahead_is_not_waited_for",),
    ),
    Mutation(
        "errors: a body that never ends is read on",
        "actors/provider/rounds.py:Round._refusal",
        "self._here.scope(deadline=self._here.now() + ERROR_TIME)",
        "self._here.scope()",
        (f"{SILENCE}::test_two_seconds_of_an_error_response_are_read",),
    ),
    Mutation(
        "silence: a stream of pings goes on",
        "actors/provider/attempts.py:Silence.hear",
        "self._timeout is not None and any(map(_says_something, events))",
        "self._timeout is not None",
        (SILENCE,),
    ),
    Mutation(
        "silence: an answer that is no stream is ended for it",
        "actors/provider/rounds.py:Round._read_answer",
        "silence.allow()",
        "pass",
        (SILENCE,),
    ),
    Mutation(
        "pages: an error page is its markup",
        "actors/adapters/classify.py:_failure",
        "page_title(report.message, status) or report.message",
        "report.message",
        (PAGES,),
    ),
    Mutation(
        "pages: a redirect hides where it leads",
        "actors/adapters/classify.py:classify",
        "redirect(status, lowered) or report.message",
        "report.message",
        (PAGES,),
    ),
    Mutation(
        "pages: the query of a redirect is shown",
        "actors/adapters/classify.py:redirect",
        'headers.get("location", "").strip().partition("?")[0].partition("#")[0]',
        'headers.get("location", "").strip()',
        (PAGES,),
    ),
    Mutation(
        "proxies: plain http is asked for through a tunnel",
        "actors/transport/dial.py:dial",
        """
        if origin.scheme == "http":
            return stream
        """,
        "pass",
        (PROXY,),
    ),
    Mutation(
        "proxies: a request that is handed on does not name its host",
        "actors/transport/exchange.py:_request",
        'path = f"{target.origin.scheme}://{target.origin.host_header}{path}"',
        "pass",
        (PROXY,),
    ),
    Mutation(
        "proxies: one for all is passed over",
        "actors/transport/proxy.py:_proxy_variable",
        '(name, "all_proxy")',
        "(name,)",
        (PROXY,),
    ),
    Mutation(
        "proxies: a blank variable switches nothing off",
        "actors/transport/proxy.py:_value",
        "name in environ",
        "environ.get(name)",
        (PROXY,),
    ),
    Mutation(
        "connections: what the provider has closed stays open until the next request",
        "actors/transport/pool.py:ConnectionPool.give_back",
        "self._on_rest()",
        "pass",
        (SWEEP,),
    ),
    Mutation(
        "connections: those that can be used again are closed with the others",
        "actors/transport/pool.py:ConnectionPool.sweep",
        "connection in self._idle and not connection.is_alive()",
        "connection in self._idle",
        (SWEEP,),
    ),
    Mutation(
        "usage: reasoning beside the completion is no output",
        "actors/adapters/openai_chat/decode.py:_PLACES",
        '{**..., "reasoning": (1,), **...}',
        '{**..., "reasoning": (), **...}',
        (REASONING,),
    ),
    Mutation(
        "usage: reasoning in the completion counts twice",
        "actors/adapters/openai_chat/decode.py:_reasoning_beside",
        "total == counted + reasoning",
        "True",
        (REASONING,),
    ),
    Mutation(
        "threads: a tool's thread belongs to no event loop",
        "actors/scheduler/calls.py:CallExecution._run_in_thread",
        "with thread():\n    value: object = run_in(context, work)",
        "value: object = run_in(context, work)",
        (FROM_THREADS,),
    ),
    Mutation(
        "threads: trio does not know a tool's thread",
        "actors/scheduler/from_threads.py:_notify_trio",
        "told.token, told.abandon_on_cancel = (token, True)",
        "told.token, told.abandon_on_cancel = (None, True)",
        (FROM_THREADS,),
    ),
    Mutation(
        "variables: validators of arguments see those of nobody",
        "actors/scheduler/scheduler_actor.py:SchedulerActor._plan_batch",
        "with_variables(command.variables, planning)",
        "planning()",
        (VARIABLES,),
    ),
    Mutation(
        "variables: rules see those of nobody",
        "actors/scheduler/calls.py:CallExecution._must_wait",
        "partial(with_variables, self.site.context, rule)",
        "rule",
        (VARIABLES,),
    ),
    Mutation(
        "variables: validators of answers see those of nobody",
        "actors/session/inflight.py:AskInFlight.read_answer",
        "with_variables(self.variables, partial(self.output.parse, text, repair))",
        "self.output.parse(text, repair)",
        (VARIABLES,),
    ),
    Mutation(
        "retries: those that were answered use up the share of outages",
        "actors/provider/admission.py:Admission.leave",
        "self._retries.give_back()",
        "pass",
        (f"{BURSTS}::test_retries_that_are_answered_leave_others_theirs",),
    ),
)
