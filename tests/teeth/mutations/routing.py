"""What sessions share of a backend: its pace, its breaker, its retries; pools; refusals written down."""

from tests.teeth.mutations.mutation import Mutation

PACE, FAIR, STORMS = "tests/core/test_pace.py", "tests/core/test_fair.py", "tests/test_storms.py"

MUTATIONS = (
    Mutation(
        "budget: a second's use is forgotten a second too soon",
        "actors/core/pace.py",
        "self._seconds[0][0] + 1 + MINUTE <= now",
        "self._seconds[0][0] + MINUTE <= now",
        (PACE,),
    ),
    Mutation(
        "budget: what was used beyond the reserve does not count",
        "actors/core/pace.py",
        "                entry[1] += change\n                self._used += change\n",
        "                entry[1] += min(change, 0.0)\n                self._used += min(change, 0.0)\n",
        (PACE,),
    ),
    Mutation(
        "concurrency: each refusal of one wave halves it again",
        "actors/core/pace.py",
        "        if wave == self.wave:\n",
        "        if wave <= self.wave:\n",
        (PACE, STORMS),
    ),
    Mutation(
        "concurrency: what the backend refused is offered again at once",
        "actors/core/pace.py",
        "            self.limit = max(1.0, self.limit / 2)\n",
        "            self.limit = max(1.0, self.limit)\n",
        (PACE, STORMS),
    ),
    Mutation(
        "concurrency: an outage lowers it",
        "actors/admission.py",
        '        if failure.kind == "rate_limit":\n            self.concurrency.limited(ticket.wave)\n',
        "        self.concurrency.limited(ticket.wave)\n        if True:\n",
        (STORMS,),
    ),
    Mutation(
        "retries: there is no budget",
        "actors/core/pace.py",
        "        return left >= 1\n",
        "        return True\n",
        (PACE, STORMS),
    ),
    Mutation(
        "retries: they are not jittered",
        "actors/rounds.py",
        "self.base * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.0)",
        "self.base * 2.0 ** (attempt - 1))",
        (STORMS,),
    ),
    Mutation(
        "breaker: all go through it once its time is over",
        "actors/core/pace.py",
        "(now >= self.until and not self.probing)",
        "now >= self.until",
        (PACE, STORMS),
    ),
    Mutation(
        "breaker: those who wait go on waiting when it opens",
        "actors/admission.py",
        "        for ticket in self._queue.clear():\n            wake(ticket.waiter)\n",
        "        pass\n",
        (STORMS,),
    ),
    Mutation(
        "breaker: a probe that was stopped is waited for",
        "actors/admission.py",
        "            if ticket.probes:\n                self.breaker.withdrawn()\n        elif failure is None:",
        "            pass\n        elif failure is None:",
        (STORMS,),
    ),
    Mutation(
        "recovery: all come back at once",
        "actors/core/pace.py",
        "        self.wave += 1\n        self.limit = 1.0\n",
        "        self.wave += 1\n",
        (STORMS,),
    ),
    Mutation(
        "overload: the queue has no end",
        "actors/admission.py",
        "elif self._queue.size >= self._pace.waiting:",
        "elif self._queue.size >= 1 << 30:",
        (STORMS,),
    ),
    Mutation(
        "overload: a request that is stopped keeps its slot of the queue",
        "actors/admission.py",
        "                self._queue.remove(ticket.tenant, ticket.session, ticket)\n",
        "                pass\n",
        (STORMS,),
    ),
    Mutation(
        "fairness: one that was idle has saved up credit",
        "actors/core/fair.py",
        "tag = max(self._now, self._tags.pop(name, 0.0))",
        "tag = self._tags.pop(name, 0.0)",
        (FAIR, STORMS),
    ),
    Mutation(
        "fairness: who asks first is served first",
        "actors/core/fair.py",
        "heapq.heappush(self._heap, (self._now + cost, next(self._order), name))",
        "heapq.heappush(self._heap, (self._now, -1, name))",
        (FAIR, STORMS),
    ),
    Mutation(
        "fairness: all tenants weigh the same",
        "actors/core/fair.py",
        "cost / self._weights.get(tenant, 1.0)",
        "cost",
        (FAIR, STORMS),
    ),
    Mutation(
        "rate limits: what a backend says is left is not heeded",
        "actors/rounds.py",
        "                self._admission.hold(wait)\n",
        "                pass\n",
        (STORMS,),
    ),
    Mutation(
        "retries: one that waits keeps its place",
        "actors/rounds.py",
        "            await anyio.sleep(wait)\n",
        "            self._admission.in_flight += 1\n            await anyio.sleep(wait)\n"
        "            self._admission.in_flight -= 1\n",
        ("tests/test_provider.py::test_a_retry_that_waits_gives_its_place_to_others",),
    ),
)
