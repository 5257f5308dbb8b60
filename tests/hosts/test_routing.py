"""The attempts of one request: generated outcomes, and each rule with one example."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.core.data.record import replace
from actors.errors import (
    ConfigError,
    HostDraining,
    HostUnavailable,
    RequestLost,
    SessionClosed,
    SessionLeased,
)
from actors.hosts import RouterLimits
from actors.hosts.routing import (
    MAX_ENDED,
    MAX_LOST,
    GiveUp,
    Rejection,
    RejectionKind,
    RequestRoute,
    RoutingTable,
    SendTo,
    Step,
    Wait,
    place,
)
from actors.journal.storage.directory import Host

A, B, C = "http://a", "http://b", "http://c"
ADDRESSES = (A, B, C)
LIMITS = RouterLimits(max_attempts=15, deadline=5.0, max_owners=4)
KINDS: tuple[RejectionKind, ...] = ("leased", "refused", "ended", "unreachable", "lost")


def host(address: str, /, **fields: object) -> Host:
    return replace(Host(address, address, "serving", 0, 0.0, 10.0), **fields)


HOSTS = [host(address) for address in ADDRESSES]


def rejection(kind: RejectionKind, owner: str = "") -> Rejection:
    errors = {
        "leased": SessionLeased("leased", address=owner),
        "refused": HostDraining("draining"),
        "ended": SessionClosed("ended"),
        "unreachable": HostUnavailable("unreachable"),
        "lost": HostUnavailable("lost"),
    }
    return Rejection(kind, errors[kind], owner)


def reject(route: RequestRoute, kind: RejectionKind, owner: str = "", *, now: float = 0.0) -> str:
    """Reject the next attempt, which must come without a wait. Return its address."""
    step = route.next_step(HOSTS, now)
    assert isinstance(step, SendTo)
    route.record(step.address, rejection(kind, owner), now)
    return step.address


def next_attempt(route: RequestRoute, now: float) -> str:
    """Return the address of the next attempt, after a wait if one is needed."""
    step = route.next_step(HOSTS, now)
    if isinstance(step, Wait):
        step = route.next_step(HOSTS, now + step.seconds)
    assert isinstance(step, SendTo)
    return step.address


OUTCOMES = st.tuples(st.sampled_from(KINDS), st.sampled_from(("", *ADDRESSES)), st.floats(0, 4))


@given(outcomes=st.lists(OUTCOMES, min_size=1, max_size=40), here=st.sampled_from(("", *ADDRESSES)))
def test_every_request_ends_within_its_limits_and_obeys_the_rules(
    outcomes: list[tuple[RejectionKind, str, float]], here: str
) -> None:
    """Repeat the generated outcomes until the route gives up, and check each step."""
    table, now, attempts, waited = RoutingTable(LIMITS), 100.0, Counter[str](), 0.0
    route, lost = RequestRoute("s", here, table, now), dict[str, float]()
    for number in range(10_000):
        known, unreachable = table.reachable_owner("s", now), table.unreachable(now)
        step = route.next_step(HOSTS, now)
        if isinstance(step, GiveUp):
            break
        if isinstance(step, Wait):
            assert 0 < step.seconds <= LIMITS.max_delay
            waited += step.seconds
            now += step.seconds
            after = route.next_step(HOSTS, now)
            assert isinstance(after, SendTo | GiveUp), "a wait is not followed by another wait"
            if isinstance(after, GiveUp):
                break
            known, unreachable, step = table.reachable_owner("s", now), table.unreachable(now), after
        else:
            assert not attempts[step.address], "a host is tried again without a wait"
        assert len(lost) < MAX_LOST, "a request is sent again after several hosts have lost it"
        avoided = {address for address, until in lost.items() if until > now}
        assert known in (None, step.address) or known in avoided, "a reachable owner is not followed"
        for excluded in (unreachable, avoided):
            assert step.address not in excluded or avoided | unreachable >= {*ADDRESSES}
        attempts[step.address] += 1
        kind, owner, seconds = outcomes[number % len(outcomes)]
        now += seconds
        if kind == "lost":
            lost[step.address] = now + LIMITS.exclusion_time
        route.record(step.address, rejection(kind, owner), now)
    else:
        pytest.fail("the request does not end")
    assert sum(attempts.values()) <= LIMITS.max_attempts
    assert waited <= LIMITS.deadline + LIMITS.max_delay


def test_all_routers_place_a_session_at_the_same_host_and_only_sessions_of_a_lost_host_move() -> None:
    names = [f"s{number}" for number in range(300)]
    before = {name: place(name, HOSTS, frozenset(), 1.0) for name in names}
    assert before == {name: place(name, HOSTS[::-1], frozenset(), 1.0) for name in names}
    assert all(count > 60 for count in Counter(before.values()).values())
    after = {name: place(name, HOSTS, frozenset({B}), 1.0) for name in names}
    assert {before[name] for name in names if before[name] != after[name]} == {B}


@pytest.mark.parametrize(
    "fields", [{"state": "draining"}, {"lag": 3.0}, {"remaining_lease": 2.0}, {"address": ""}]
)
def test_an_unhealthy_host_receives_no_session_while_a_healthy_host_is_left(
    fields: dict[str, object],
) -> None:
    hosts = [host(A, **fields), host(B)]
    assert {place(f"s{number}", hosts, frozenset(), 1.0) for number in range(40)} == {B}
    usable = "state" not in fields and "address" not in fields
    assert place("s", hosts[:1], frozenset(), 1.0) == (A if usable else None)


def test_the_owner_that_a_host_names_receives_the_request_and_is_remembered() -> None:
    table = RoutingTable(LIMITS)
    route = RequestRoute("s", A, table, 0.0)
    first = reject(route, "leased", "http://other")
    assert first == place("s", HOSTS, frozenset(), 1.0)
    assert route.next_step(HOSTS, 0.0) == SendTo("http://other")
    route.record_answer("http://other")
    assert RequestRoute("s", A, table, 1.0).next_step((), 1.0) == SendTo("http://other")


def test_two_hosts_that_name_each_other_as_the_owner_are_tried_with_growing_delays() -> None:
    route, steps, now = RequestRoute("s", A, RoutingTable(LIMITS), 0.0), list[Step](), 0.0
    for _ in range(14):
        step = route.next_step(HOSTS, now)
        steps.append(step)
        if isinstance(step, SendTo):
            route.record(step.address, rejection("leased", B if step.address == A else A), now)
        elif isinstance(step, Wait):
            now += step.seconds
    waits = [step.seconds for step in steps if isinstance(step, Wait)]
    assert waits == sorted(waits)
    assert waits[:3] == [0.02, 0.04, 0.08]
    assert max(waits) == LIMITS.max_delay


def test_an_unreachable_host_is_left_out_for_all_requests_until_its_exclusion_ends() -> None:
    table = RoutingTable(LIMITS)
    first = reject(RequestRoute("s", A, table, 0.0), "unreachable")
    second = next_attempt(RequestRoute("s", A, table, 0.1), 0.1)
    assert second != first
    assert next_attempt(RequestRoute("s", A, table, 2.1), 2.1) == first


def test_the_session_of_an_unreachable_owner_is_tried_elsewhere_until_its_lease_expires() -> None:
    table = RoutingTable(LIMITS)
    table.record_owner("s", A)
    route = RequestRoute("s", C, table, 0.0)
    assert reject(route, "unreachable") == A
    other = reject(route, "leased", A)
    assert other in (B, C)
    step = route.next_step(HOSTS, 0.0)
    assert isinstance(step, Wait)
    assert route.next_step(HOSTS, step.seconds) == SendTo(other)


def test_a_host_that_refuses_a_session_receives_no_new_sessions_but_keeps_those_it_owns() -> None:
    table = RoutingTable(LIMITS)
    table.record_owner("mine", A)
    sessions = [f"s{number}" for number in range(40)]
    placed = next(each for each in sessions if place(each, HOSTS, frozenset(), 1.0) == A)
    assert reject(RequestRoute(placed, B, table, 0.0), "refused") == A
    assert {next_attempt(RequestRoute(each, B, table, 0.0), 0.0) for each in sessions} == {B, C}
    assert next_attempt(RequestRoute("mine", B, table, 0.0), 0.0) == A


def test_an_owner_that_refuses_is_tried_again_if_no_other_host_can_claim_the_session() -> None:
    table = RoutingTable(LIMITS)
    table.record_owner("s", A)
    route = RequestRoute("s", B, table, 0.0)
    assert reject(route, "refused") == A
    assert reject(route, "leased", A) != A
    assert next_attempt(route, 0.0) == A


def test_a_request_to_a_closed_session_fails_with_session_closed_after_a_few_attempts() -> None:
    route, now = RequestRoute("s", A, RoutingTable(LIMITS), 0.0), 0.0
    for _ in range(MAX_ENDED):
        route.record(next_attempt(route, now), rejection("ended"), now)
    step = route.next_step(HOSTS, now)
    assert isinstance(step, GiveUp)
    assert isinstance(step.error, SessionClosed)


def test_a_request_is_given_up_after_several_hosts_did_not_answer() -> None:
    table, now = RoutingTable(LIMITS), 0.0
    route = RequestRoute("s", A, table, now)
    lost = [reject(route, "lost") for _ in range(MAX_LOST)]
    assert {*lost} == {A, B, C}
    step = route.next_step(HOSTS, now)
    assert isinstance(step, GiveUp)
    assert isinstance(step.error, RequestLost)
    assert "request for session 's' was given up: 3 hosts" in str(step.error)


def test_a_request_that_one_host_does_not_answer_is_sent_to_another_host() -> None:
    """The owner's address accepts requests although the owner has ended; its lease expires after a while."""
    table, now = RoutingTable(RouterLimits()), 0.0
    table.record_owner("s", A)
    route = RequestRoute("s", C, table, now)
    attempts = Counter[str]()
    while now < 10.0:
        step = route.next_step(HOSTS, now)
        if isinstance(step, Wait):
            now += step.seconds
            continue
        assert isinstance(step, SendTo)
        attempts[step.address] += 1
        route.record(step.address, rejection("lost") if step.address == A else rejection("leased", A), now)
    assert isinstance(route.next_step(HOSTS[1:], now), SendTo)
    assert attempts[A] <= 1 + 10.0 / RouterLimits().exclusion_time


def test_a_restarted_host_counts_again_among_the_hosts_that_lost_the_request() -> None:
    route, now = RequestRoute("s", A, RoutingTable(LIMITS), 0.0), 0.0
    for number in range(MAX_LOST):
        hosts = [host(A, name=f"process {number}")]
        step = route.next_step(hosts, now)
        if isinstance(step, Wait):
            now += step.seconds
            step = route.next_step(hosts, now)
        assert step == SendTo(A)
        route.record(A, rejection("lost"), now)
    step = route.next_step(HOSTS, now)
    assert isinstance(step, GiveUp)
    assert isinstance(step.error, RequestLost)


def test_a_request_that_two_hosts_have_lost_fails_as_lost_at_the_deadline() -> None:
    route = RequestRoute("s", A, RoutingTable(LIMITS), 0.0)
    for _ in range(2):
        reject(route, "lost")
    reject(route, "leased", A)
    step = route.next_step(HOSTS, LIMITS.deadline)
    assert isinstance(step, GiveUp)
    assert isinstance(step.error, RequestLost)


def test_a_host_that_does_not_answer_one_request_still_receives_other_requests() -> None:
    table = RoutingTable(LIMITS)
    table.record_owner("mine", A)
    table.record_owner("s", A)
    assert reject(RequestRoute("s", B, table, 0.0), "lost") == A
    assert next_attempt(RequestRoute("mine", B, table, 0.0), 0.0) == A


def test_only_the_time_without_a_working_host_counts_toward_the_deadline() -> None:
    table = RoutingTable(LIMITS)
    route = RequestRoute("s", A, table, 0.0)
    first = next_attempt(route, 0.0)
    route.record(first, rejection("unreachable"), 600.0)  # the host worked on the request for ten minutes
    assert isinstance(route.next_step(HOSTS, 600.0), SendTo)
    assert isinstance(RequestRoute("s", A, table, 600.0).next_step(HOSTS, 700.0), SendTo)
    route.record(A, rejection("refused"), 600.0)
    assert isinstance(route.next_step(HOSTS, 606.0), GiveUp)


def test_a_host_without_other_hosts_answers_its_requests_itself() -> None:
    for here in ("", A):
        route = RequestRoute("s", here, RoutingTable(LIMITS), 0.0)
        assert route.next_step((), 0.0) == SendTo(here)


def test_the_number_of_remembered_owners_is_bounded_and_the_oldest_is_forgotten() -> None:
    table = RoutingTable(LIMITS)
    for number in range(6):
        table.record_owner(f"s{number}", A)
        assert table.owner("s0") == A
    assert [number for number in range(6) if table.owner(f"s{number}")] == [0, 3, 4, 5]
    table.forget_owner("s0", B)
    assert table.owner("s0") == A


@pytest.mark.parametrize("value", [0, -1, float("inf"), "10"])
def test_an_invalid_limit_is_rejected(value: object) -> None:
    with pytest.raises(ConfigError, match=r"RouterLimits\(deadline=\) takes a number greater than 0"):
        RouterLimits(deadline=value)  # type: ignore[arg-type]  # the case under test


def test_the_owner_is_not_reachable_while_it_is_excluded() -> None:
    table = RoutingTable(LIMITS)
    table.record_owner("s", A)
    table.record(A, rejection("unreachable"), 1.0)
    until = 1.0 + LIMITS.exclusion_time
    assert [table.reachable_owner("s", now) for now in (1.0, until - 0.1, until + 0.1)] == [None, None, A]
