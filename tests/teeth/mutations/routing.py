"""Mutations of backend state shared by sessions: pacing, breaker, retries, pools, recorded refusals."""

from tests.teeth.mutations.mutation import Mutation

PACE, FAIR, STORMS = "tests/core/test_pace.py", "tests/core/test_fair.py", "tests/provider/test_storms.py"
REPRODUCTION = "tests/core/test_reproduction.py"
ROUTING, POOLS = "tests/core/test_routing.py", "tests/provider/test_pools.py"

MUTATIONS = (
    Mutation(
        "breaker: all other requests are refused until the probe's answer has ended",
        "actors/provider/rounds.py:Round._read_answer",
        "events and (ticket.is_probe or ticket.is_in_doubt)",
        "events and (ticket.is_probe or ticket.is_in_doubt) and decoder.ended",
        (STORMS,),
    ),
    Mutation(
        "breaker: any byte of a probe's answer closes it",
        "actors/provider/rounds.py:Round._read_answer",
        "events and (ticket.is_probe or ticket.is_in_doubt)",
        "ticket.is_probe or ticket.is_in_doubt",
        (STORMS,),
    ),
    Mutation(
        "budget: the use in a second is forgotten a second too early",
        "actors/core/policy/pace.py:MinuteBudget._expire_usage",
        "self._seconds[0][0] + 1",
        "self._seconds[0][0]",
        (PACE,),
    ),
    Mutation(
        "budget: use beyond the reserve does not count",
        "actors/core/policy/pace.py:MinuteBudget.settle",
        """
        entry[1] += change
        self._used += change
        """,
        """
        entry[1] += min(change, 0.0)
        self._used += min(change, 0.0)
        """,
        (PACE,),
    ),
    Mutation(
        "concurrency: every refusal of one wave halves it again",
        "actors/core/policy/pace.py:Concurrency.record_rate_limit",
        "wave == self.wave",
        "wave <= self.wave",
        (PACE, STORMS),
    ),
    Mutation(
        "concurrency: concurrency refused by the backend is offered again at once",
        "actors/core/policy/pace.py:Concurrency.record_rate_limit",
        "max(1.0, self.limit / 2)",
        "max(1.0, self.limit)",
        (PACE, STORMS),
    ),
    Mutation(
        "concurrency: an outage lowers it",
        "actors/provider/admission.py:Admission._adjust_limits",
        """
        if failure.kind == "rate_limit":
            self.concurrency.record_rate_limit(ticket.wave)
            ...
            if asked is not None:
                self.pause(asked)
        """,
        """
        self.concurrency.record_rate_limit(ticket.wave)
        if True:
            if asked is not None:
                self.pause(asked)
        """,
        (STORMS,),
    ),
    Mutation(
        "retries: there is no retry budget",
        "actors/core/policy/pace.py:RetryBudget.take_retry",
        "return left >= 1",
        "return True",
        (PACE, STORMS),
    ),
    Mutation(
        "retries: delays have no jitter",
        "actors/provider/attempts.py:Retries.wait_seconds",
        "self._wait_before_jitter(attempt) * random.uniform(*...)",
        "self._wait_before_jitter(attempt)",
        (STORMS,),
    ),
    Mutation(
        "breaker: all requests pass it once its time is over",
        "actors/core/policy/pace.py:Breaker.wait",
        "self.until is None or (now >= self.until and (not self.probing))",
        "self.until is None or now >= self.until",
        (PACE, STORMS),
    ),
    Mutation(
        "breaker: waiting requests keep waiting when it opens",
        "actors/provider/admission.py:Admission._reject_queued",
        """
        for ticket in (*self._retry_queue.clear(), *self._queue.clear()):
            wake(ticket.waiter)
        """,
        "pass",
        (STORMS,),
    ),
    Mutation(
        "breaker: a stopped probe is waited for",
        "actors/provider/admission.py:Admission.record_end",
        """
        if ticket.is_probe:
            self.breaker.cancel_probe()
        """,
        "pass",
        (STORMS,),
    ),
    Mutation(
        "recovery: all requests return at once",
        "actors/core/policy/pace.py:Concurrency.restart",
        "self.limit = self.quick = 1.0",
        "",
        (STORMS,),
    ),
    Mutation(
        "overload: the queue is unbounded",
        "actors/provider/admission.py:Admission.wait_to_start",
        "self._queue_of(ticket).size >= self._queue_capacity(ticket)",
        "self._queue_of(ticket).size >= 1 << 30",
        (STORMS,),
    ),
    Mutation(
        "overload: a stopped request keeps its place in the queue",
        "actors/provider/admission.py:Admission._wait_in_queue",
        "queue.remove(ticket.tenant, ticket.session, ticket)",
        "pass",
        (STORMS,),
    ),
    Mutation(
        "fairness: an idle session accumulates credit",
        "actors/core/policy/fair.py:_Flows.add_flow",
        "max(self._now, self._tags.pop(name, 0.0))",
        "self._tags.pop(name, 0.0)",
        (FAIR, STORMS),
    ),
    Mutation(
        "fairness: requests are served in order of arrival",
        "actors/core/policy/fair.py:_Flows.charge_first",
        "self._push_flow(tag + cost, name, lead)",
        "self._push_flow(-1.0, name, lead)",
        (FAIR, STORMS),
    ),
    Mutation(
        "fairness: all tenants have equal weights",
        "actors/core/policy/fair.py:FairQueue.pop",
        "self._tenants.charge_first(cost / self._weights.get(tenant, 1.0), has_more=bool(sessions))",
        "self._tenants.charge_first(cost, has_more=bool(sessions))",
        (FAIR, STORMS),
    ),
    Mutation(
        "rate limits: the backend's remaining quota is ignored",
        "actors/provider/rounds.py:Round._send_and_read",
        "self._admission.pause(wait)",
        "pass",
        (STORMS,),
    ),
    Mutation(
        "retries: a waiting retry keeps its slot",
        "actors/provider/rounds.py:Round.run",
        "await anyio.sleep(wait)",
        """
        self._admission.in_flight += 1
        await anyio.sleep(wait)
        self._admission.in_flight -= 1
        """,
        ("tests/provider/test_provider.py::test_a_waiting_retry_leaves_its_slot_to_other_requests",),
    ),
    Mutation(
        "pool: the next session tries a failed member again",
        "actors/provider/resolver.py:MemberSelector._member_state",
        "Member(failed or condition.closed_for > 0, *...)",
        "Member(condition.closed_for > 0, *...)",
        (POOLS, "tests/provider/test_failover.py"),
    ),
    Mutation(
        "pool: a paused member is chosen first",
        "actors/provider/resolver.py:MemberSelector._member_state",
        "Member(failed or condition.closed_for > 0, *...)",
        "Member(failed, *...)",
        (POOLS,),
    ),
    Mutation(
        "pool: a member that has answered is always skipped",
        "actors/core/policy/pace.py:Breaker.record_answer",
        "self.in_a_row, self.tries, self.failed_at, self.probing = (0, 0, None, False)",
        "self.in_a_row, self.tries, self.probing = (0, 0, False)",
        (POOLS,),
    ),
    Mutation(
        "pool: reads from a warm cache cost the full price",
        "actors/core/policy/routing.py:expected_cost",
        "min(size, member.lane_bytes) if member.is_warm else 0",
        "0",
        (ROUTING,),
    ),
    Mutation(
        "pool: a cache stays warm forever",
        "actors/core/policy/routing.py:Member.is_warm",
        "self.seconds_since_use is not None and self.seconds_since_use < CACHE_LIFE",
        "self.used is not None",
        (ROUTING,),
    ),
    Mutation(
        "pool: all sessions start with the same member",
        "actors/core/policy/routing.py:_order_members",
        "position.place + position.ask",
        "position.ask",
        (ROUTING,),
    ),
    Mutation(
        "pool: the busiest member serves",
        "actors/core/policy/routing.py:_order_members",
        "each[1].in_flight",
        "-each[1].in_flight",
        (ROUTING, POOLS),
    ),
    Mutation(
        "attempts: a repeated request is not reported",
        "actors/session/inflight.py:AskTotals.record_round",
        'self.retried += (Attempt(binding, "retried", failure.message, cause, tried.wait),)',
        "pass",
        (POOLS,),
    ),
    Mutation(
        "provider: the repr of a round contains its fields",
        "actors/provider/rounds.py:Round.__repr__",
        'f"<Round {self._command.key}>"',
        'f"<Round {self._command.key} {self._auth_headers} {self._command}>"',
        ("tests/provider/test_credentials.py::test_the_repr_of_a_round_contains_no_credential_or_message",),
    ),
    Mutation(
        "reproduction: arguments are recorded unredacted",
        "actors/core/lanes/reproduction.py:_Redactor._redact_string",
        'return "{}"',
        "return text",
        (REPRODUCTION,),
    ),
    Mutation(
        "reproduction: the quote in the refusal is recorded",
        "actors/core/lanes/reproduction.py:reproduce",
        "why = redactor.redact_text(why)",
        "",
        (REPRODUCTION, "tests/provider/test_failover.py"),
    ),
    Mutation(
        "reproduction: any fault qualifies",
        "actors/core/lanes/reproduction.py:reproduce",
        "rule in _broken_rules(body, dialect)",
        "bool(_broken_rules(body, dialect))",
        (REPRODUCTION,),
    ),
    Mutation(
        "reproduction: only the first removable part is removed",
        "actors/core/lanes/reproduction.py:_minimise",
        "body, found = (smaller, True)",
        "body = smaller",
        (REPRODUCTION,),
    ),
    Mutation(
        "reproduction: two ids become one",
        "actors/core/lanes/reproduction.py:_Redactor._redact_string",
        'f"id_{len(self.ids) + 1}"',
        'f"id_{len(text)}"',
        (REPRODUCTION,),
    ),
    Mutation(
        "retries: shown text is repeated",
        "actors/provider/rounds.py:Round._retry_wait",
        'failure.action != "retry" or self._visible',
        'failure.action != "retry"',
        ("tests/provider/test_retries.py",),
    ),
    Mutation(
        "fair: a departing waiter is searched for among all others",
        "actors/core/policy/fair.py:_Flows.remove_flow",
        "len(self._heap) > 2 * len(self._places)",
        "self._heap",
        (FAIR,),
    ),
    Mutation(
        "admission: requests behind a stopped one keep waiting for its need",
        "actors/provider/admission.py:Admission._wait_in_queue",
        "self._start_queued()",
        "",
        (STORMS,),
    ),
    Mutation(
        "reproduction: messages of a request count as arguments",
        "actors/core/lanes/reproduction.py:_Redactor.redact_request",
        "hidden = self.redact({**body, _MESSAGES: None})",
        """
        return self.redact(body)
        hidden = self.redact({**body, _MESSAGES: None})
        """,
        (REPRODUCTION,),
    ),
    Mutation(
        "reproduction: text in arguments under a protocol field's name is kept",
        "actors/core/lanes/reproduction.py:_Redactor._redact_string",
        "not is_content and key in _KEPT and (len(text) <= 128)",
        "key in _KEPT and len(text) <= 128",
        (REPRODUCTION,),
    ),
    Mutation(
        "reproduction: arguments that are an object keep their text",
        "actors/core/lanes/reproduction.py:_CONTENT",
        '("args", "arguments", *...)',
        '("args", *...)',
        (REPRODUCTION,),
    ),
    Mutation(
        "reproduction: the number of queued refusals is unbounded",
        "actors/provider/dumps.py:Dumps.try_reserve",
        "self._waiting >= MAX_QUEUED",
        "self._waiting > MAX_QUEUED + 9",
        (
            "tests/provider/test_failover.py::test_refusals_beyond_the_queue_limit_are_not_passed_to_on_refusal",
        ),
    ),
)
