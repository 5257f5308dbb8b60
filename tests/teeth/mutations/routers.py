"""Mutations of the routing of requests to the hosts that own their sessions."""

from tests.teeth.mutations.mutation import Mutation

TABLE = "actors/hosts/routing.py:RoutingTable"
ROUTE = "actors/hosts/routing.py:RequestRoute"
ROUTING = "tests/hosts/test_routing.py"
GENERATED = f"{ROUTING}::test_every_request_ends_within_its_limits_and_obeys_the_rules"
UNHEALTHY = f"{ROUTING}::test_an_unhealthy_host_receives_no_session_while_another_is_left"
DIRECTORY = "actors/hosts/directory.py:HostDirectory"
DIRECTORIES = "tests/hosts/test_directory.py"
SEARCH = "actors/hosts/search.py"
SEARCHES = "tests/hosts/test_search.py"
FORWARDER = "actors/hosts/forwarding.py:Forwarder"
FORWARDING = "tests/hosts/test_forwarding.py"
REQUEST = "actors/hosts/requests.py:SessionRequest"
REJECTIONS = "tests/hosts/test_rejections.py"
LOCAL = "actors/hosts/local.py"
ROUTER = "actors/hosts/router.py"
ROUTED = "tests/hosts/test_router.py"
RAY = "tests/hosts/test_ray_hosts.py"
LISTENER = "tests/hosts/test_listener.py"
WORKERS = "docs/examples/with_uvicorn/workers.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "host router: a known owner is not followed",
        f"{ROUTE}._choose",
        "if (owner := table.reachable_owner(self._session, now)) is not None:\n    return owner",
        "",
        (GENERATED, f"{ROUTING}::test_a_host_that_names_the_owner_is_followed_and_remembered"),
    ),
    Mutation(
        "host router: an unreachable owner is tried again at once",
        f"{TABLE}.reachable_owner",
        "None if owner in self.unreachable(now) else owner",
        "owner",
        (GENERATED,),
    ),
    Mutation(
        "host router: unreachable hosts are not excluded",
        f"{TABLE}.record",
        "_store(self._unreachable, address, until, EXCLUSIONS)",
        "pass",
        (f"{ROUTING}::test_an_unreachable_host_is_left_out_for_all_requests_until_its_exclusion_ends",),
    ),
    Mutation(
        "host router: an exclusion never ends",
        "actors/hosts/routing.py:_current",
        "until <= now",
        "until < 0",
        (f"{ROUTING}::test_an_unreachable_host_is_left_out_for_all_requests_until_its_exclusion_ends",),
    ),
    Mutation(
        "host router: a host that refuses receives further sessions",
        f"{TABLE}.record",
        "_store(self._refusing, address, until, EXCLUSIONS)",
        "pass",
        (f"{ROUTING}::test_a_host_that_refuses_a_session_receives_no_others_but_keeps_its_own",),
    ),
    Mutation(
        "host router: a host that refuses a session loses those that it owns",
        f"{TABLE}.record",
        "rejection.kind == 'unreachable'",
        "rejection.kind != 'leased'",
        (f"{ROUTING}::test_a_host_that_refuses_a_session_receives_no_others_but_keeps_its_own",),
    ),
    Mutation(
        "host router: a host is tried again without a delay",
        f"{ROUTE}.next_step",
        "address in self._tried and not self._has_waited",
        "False",
        (GENERATED, f"{ROUTING}::test_hosts_that_name_each_other_are_tried_with_growing_delays"),
    ),
    Mutation(
        "host router: the delay between tries does not grow",
        f"{ROUTE}._wait",
        "self._waits += 1",
        "",
        (f"{ROUTING}::test_hosts_that_name_each_other_are_tried_with_growing_delays",),
    ),
    Mutation(
        "host router: the number of tries is not limited",
        f"{ROUTE}._is_exhausted",
        "self._tries >= limits.max_tries or self._idle >= limits.deadline or self._ended >= ENDED",
        "self._idle >= limits.deadline or self._ended >= ENDED",
        (GENERATED,),
    ),
    Mutation(
        "host router: the deadline is ignored",
        f"{ROUTE}._is_exhausted",
        "self._tries >= limits.max_tries or self._idle >= limits.deadline or self._ended >= ENDED",
        "self._tries >= limits.max_tries or self._ended >= ENDED",
        (f"{ROUTING}::test_only_time_without_a_working_host_counts_toward_the_deadline",),
    ),
    Mutation(
        "host router: work of a host counts toward the deadline",
        f"{ROUTE}.record",
        "self._count_idle(now, self._limits.connect_timeout)",
        "self._count_idle(now)",
        (f"{ROUTING}::test_only_time_without_a_working_host_counts_toward_the_deadline",),
    ),
    Mutation(
        "host router: a closed session is tried until the deadline",
        f"{ROUTE}.record",
        "self._ended += rejection.kind == 'ended'",
        "",
        (f"{ROUTING}::test_a_closed_session_is_given_up_after_a_few_tries_with_its_error",),
    ),
    Mutation(
        "host router: owners are remembered without a limit",
        "actors/hosts/routing.py:_store",
        "while len(entries) > limit:\n    entries.popitem(last=False)",
        "",
        (f"{ROUTING}::test_the_number_of_remembered_owners_is_bounded_and_the_oldest_is_forgotten",),
    ),
    Mutation(
        "host router: sessions are placed on draining hosts",
        "actors/hosts/placement.py:place",
        "host.state == 'serving' and host.address and host.address not in excluded",
        "host.address and host.address not in excluded",
        (UNHEALTHY,),
    ),
    Mutation(
        "host router: sessions are placed on hosts that do not renew their lease",
        "actors/hosts/placement.py:_is_healthy",
        "renews and host.lag <= lag",
        "host.lag <= lag",
        (UNHEALTHY,),
    ),
    Mutation(
        "host router: sessions are placed on slow hosts",
        "actors/hosts/placement.py:_is_healthy",
        "renews and host.lag <= lag",
        "renews",
        (UNHEALTHY,),
    ),
    Mutation(
        "host router: the hash of a session depends on nothing but its id",
        "actors/hosts/placement.py:_score",
        "f'{address} {session}'",
        "session",
        (
            f"{ROUTING}::test_all_routers_place_a_session_at_the_same_host_and_only_sessions_of_a_lost_host_move",
        ),
    ),
    Mutation(
        "host router: an owner that has left is followed",
        f"{SEARCH}:HostSearch._read_hosts",
        "self._table.forget_owner(self._session, owner)",
        "pass",
        (f"{SEARCHES}::test_an_owner_that_is_no_live_host_is_forgotten",),
    ),
    Mutation(
        "host router: an outage of the journal makes all owners unknown",
        f"{SEARCH}:HostSearch._read_hosts",
        "owner is not None and hosts and self._directory.is_current and not is_listed",
        "owner is not None and not is_listed",
        (
            f"{SEARCHES}::test_an_owner_is_followed_while_no_list_of_hosts_can_be_read",
            f"{SEARCHES}::test_an_owner_is_followed_while_the_list_of_hosts_is_not_current",
        ),
    ),
    Mutation(
        "host router: an owner that joined after the list was read is not followed",
        f"{SEARCH}:HostSearch._read_hosts",
        "owner in (self._here, self._named)",
        "owner == self._here",
        (f"{SEARCHES}::test_an_owner_that_a_host_has_just_named_is_followed",),
    ),
    Mutation(
        "host router: each reader of the directory reads the journal",
        f"{DIRECTORY}.hosts",
        "if self._is_due():\n    await self._refresh()",
        "await self._refresh()",
        (f"{DIRECTORIES}::test_concurrent_readers_share_one_read_per_period",),
    ),
    Mutation(
        "host router: an outage of the journal makes all hosts disappear",
        f"{DIRECTORY}.wait_gone",
        "self.is_current and all(host.address != address for host in hosts)",
        "all(host.address != address for host in hosts) or not self.is_current",
        (f"{DIRECTORIES}::test_a_host_is_gone_when_a_current_list_lacks_its_address",),
    ),
    Mutation(
        "host router: a suspended host is awaited for ever",
        f"{FORWARDER}.forward",
        "partial(self._directory.wait_gone, address)",
        "__import__('anyio').sleep_forever",
        (f"{FORWARDING}::test_a_suspended_host_rejects_the_request_when_its_lease_has_expired[asyncio]",),
    ),
    Mutation(
        "host router: a request is repeated after its response has begun",
        f"{FORWARDER}.forward",
        "failure is None or not response.is_started",
        "True",
        (f"{FORWARDING}::test_a_response_that_breaks_is_not_repeated",),
    ),
    Mutation(
        "host router: the answer of a program that is no router reaches the client",
        f"{FORWARDER}._exchange",
        "all((name != ANSWERED for name, _ in answer.raw_headers))",
        "False",
        (f"{FORWARDING}::test_a_program_that_is_no_router_is_unreachable",),
    ),
    Mutation(
        "host router: an error of the application is repeated at other hosts",
        f"{ROUTER}:SessionRouter._answer_forwarded",
        "not response.is_started",
        "False",
        (f"{REJECTIONS}::test_an_error_of_the_application_is_marked_as_the_answer_of_the_router",),
    ),
    Mutation(
        "host router: a host that has left answers a forwarded request with an error",
        f"{ROUTER}:SessionRouter.__call__",
        "(requests is not None or is_forwarded(scope))",
        "requests is not None",
        (f"{REJECTIONS}::test_a_host_that_has_left_rejects_forwarded_requests",),
    ),
    Mutation(
        "host router: headers of the connection are forwarded",
        "actors/hosts/requests.py:end_to_end",
        "header[0] not in omitted",
        "True",
        (
            f"{FORWARDING}::test_a_response_is_streamed_with_its_status_and_headers",
            f"{ROUTED}::test_a_forwarded_request_has_the_key_and_the_address_of_the_client[asyncio-sqlite]",
        ),
    ),
    Mutation(
        "host router: a client can pretend to have another address",
        "actors/hosts/requests.py:REPLACED",
        "frozenset({b'content-length', b'expect', b'x-forwarded-for', b'x-forwarded-proto', FORWARDS})",
        "frozenset({b'content-length', b'expect', b'x-forwarded-proto', FORWARDS})",
        (f"{ROUTED}::test_a_forwarded_request_has_the_key_and_the_address_of_the_client[asyncio-sqlite]",),
    ),
    Mutation(
        "host router: the key of the client is replaced",
        f"{REQUEST}.__init__",
        "KEY not in names and scope['method'] not in WITHOUT_EFFECT",
        "scope['method'] not in WITHOUT_EFFECT",
        (f"{REJECTIONS}::test_a_request_with_effects_has_one_key",),
    ),
    Mutation(
        "host router: an application changes the headers of the next try",
        f"{REQUEST}.scope",
        "[*self.headers]",
        "self.headers",
        (f"{REJECTIONS}::test_each_try_receives_the_complete_request_with_the_same_key",),
    ),
    Mutation(
        "host router: the limit of a body is ignored",
        "actors/hosts/requests.py:read_request",
        "size > limit",
        "False",
        (f"{REJECTIONS}::test_a_body_is_read_up_to_its_limit",),
    ),
    Mutation(
        "host router: the path of a request extends the address of a host",
        f"{ROUTER}:SessionRouter._read",
        "not request.target.startswith('/')",
        "False",
        (f"{REJECTIONS}::test_a_path_that_would_extend_the_address_of_a_host_is_rejected",),
    ),
    Mutation(
        "host router: a forwarded request is forwarded again",
        f"{ROUTER}:SessionRouter.__call__",
        "await self._answer_forwarded(session, scope, receive, MarkedResponse(send))",
        "request = await self._read(session, scope, receive, send)\n"
        "await requests.find_host(request, receive, MarkedResponse(send).send)",
        (f"{ROUTED}::test_a_forwarded_request_is_not_forwarded_again_and_names_the_owner[asyncio-sqlite]",),
    ),
    Mutation(
        "host router: a forward continues after its client has disconnected",
        f"{ROUTER}:_RequestRouter._try",
        "await run_while_connected(receive, partial(self._forwarder.forward, address, request, send))",
        "await self._forwarder.forward(address, request, send)",
        (f"{ROUTED}::test_a_client_that_disconnects_ends_the_forwarded_request[asyncio-sqlite]",),
    ),
    Mutation(
        "host router: sessions do not move to hosts that join",
        "actors/hosts/balancing.py:_rebalance",
        "await runtime.rebalance()",
        "pass",
        (f"{ROUTED}::test_sessions_move_to_a_host_that_joins_until_the_load_is_even[asyncio-sqlite]",),
    ),
    Mutation(
        "host router: a host leaves without moving its sessions",
        f"{ROUTER}:_Shutdown._drain",
        "await self._runtime.drain(rate=self._rate, timeout=self._timeout)",
        "await anyio.sleep(0)",
        (f"{ROUTED}::test_a_host_that_leaves_has_moved_its_sessions[asyncio-sqlite]",),
    ),
    Mutation(
        "host router: a rejection that a framework has answered with 500 reaches the client",
        f"{LOCAL}:ResponseFilter.send",
        "self._held or (message['type'] == 'http.response.start' and message['status'] >= 500)",
        "self._held",
        (f"{REJECTIONS}::test_a_rejection_that_the_application_raises_is_not_sent_to_the_client",),
    ),
    Mutation(
        "host router: a rejection that an error handler answers reaches the client",
        f"{LOCAL}:ResponseFilter.send",
        "if self.rejection is not None:\n    return",
        "",
        (f"{REJECTIONS}::test_a_rejection_that_an_error_handler_answers_is_not_sent_to_the_client",),
    ),
    Mutation(
        "host router: rejections in exception groups are not recognised",
        f"{LOCAL}:_find_rejection",
        "error.exceptions if is_group(error) else [error.__cause__] if error.__cause__ else []",
        "[error.__cause__] if error.__cause__ else []",
        (f"{REJECTIONS}::test_a_rejection_that_the_application_raises_is_not_sent_to_the_client",),
    ),
    Mutation(
        "host router: a cancelled ask is an answer although its session leaves",
        f"{LOCAL}:ensure_answered",
        "result.status == 'interrupted' or (result.status == 'cancelled' and is_leaving)",
        "result.status == 'interrupted'",
        (f"{ROUTED}::test_an_ask_that_its_host_cancels_continues_at_another_host[asyncio-sqlite-False]",),
    ),
    Mutation(
        "host router: a cancelled ask is no answer after a departure that failed",
        f"{LOCAL}:ensure_answered",
        "lifecycle.departure is not None and not lifecycle.departure.has_failed",
        "lifecycle.departure is not None",
        (f"{REJECTIONS}::test_a_cancelled_ask_is_repeated_only_if_its_session_leaves",),
    ),
    Mutation(
        "host router: a client is asked to repeat a failed ask with its key",
        "actors/hosts/responses.py:_STATUSES",
        "(AskFailed, 502)",
        "(AskFailed, 503)",
        (f"{REJECTIONS}::test_a_failed_ask_is_not_to_be_repeated_with_its_key",),
    ),
    Mutation(
        "host router: a client learns the addresses of the hosts",
        "actors/hosts/responses.py:error_messages",
        "name not in own",
        "True",
        (f"{REJECTIONS}::test_the_final_answer_names_no_other_host_and_may_be_repeated_later",),
    ),
    Mutation(
        "host router: an error that a framework raises from a rejection is an error",
        f"{LOCAL}:_find_rejection",
        "error.exceptions if is_group(error) else [error.__cause__] if error.__cause__ else []",
        "error.exceptions if is_group(error) else []",
        (f"{REJECTIONS}::test_a_stream_of_events_ends_in_order_if_its_session_moves",),
    ),
    Mutation(
        "host router: each try of an ask at a Ray actor has a new key",
        "actors/hosts/ray_hosts.py:RayHosts.ask",
        "partial(self._ask, address, session, arguments)",
        "partial(self._ask, address, session, {**arguments, 'key': key or uuid4().hex})",
        (f"{RAY}::test_an_ask_whose_answer_is_lost_is_repeated_with_the_same_key",),
    ),
    Mutation(
        "host router: a stream of events from a Ray actor begins anew at the next owner",
        "actors/hosts/ray_hosts.py:RayHosts.events",
        "after, search = item.seq, self._search(session)",
        "search = self._search(session)",
        (f"{RAY}::test_events_continue_at_the_next_owner_without_loss",),
    ),
    Mutation(
        "host router: a Ray actor that has ended is not replaced by another one",
        "actors/hosts/ray_hosts.py:RayHosts._wait_for_answer",
        "(errors.RayError, ValueError)",
        "(ValueError,)",
        (f"{RAY}::test_an_ask_whose_answer_is_lost_is_repeated_with_the_same_key",),
    ),
    Mutation(
        "host router: a Ray actor holds each session that it has opened",
        "actors/hosts/ray_hosts.py:HostActor._holding",
        "await opened._lifecycle.give_back()",
        "pass",
        (f"{RAY}::test_an_actor_serves_more_sessions_than_may_be_open",),
    ),
    Mutation(
        "host router: the handle of a Ray actor that has ended is kept",
        "actors/hosts/ray_hosts.py:RayHosts._forgetting",
        "self._actors[address] = None",
        "pass",
        (f"{RAY}::test_an_actor_that_another_program_creates_again_is_found_by_its_name",),
    ),
    Mutation(
        "host router: a Ray actor is looked up in the namespace of the program",
        "actors/hosts/ray_hosts.py:RayHosts._actor",
        "self._ray.get_actor(address, namespace=self._namespace)",
        "self._ray.get_actor(address)",
        (f"{RAY}::test_an_actor_that_another_program_creates_again_is_found_by_its_name",),
    ),
    Mutation(
        "host router: the Ray actors of other programs are ended too",
        "actors/hosts/ray_hosts.py:RayHosts.close",
        "self._created",
        "[*self._actors]",
        (f"{RAY}::test_close_ends_only_the_named_actors",),
    ),
    Mutation(
        "host router: a Ray actor never serves if its journal was unavailable when it started",
        "actors/hosts/ray_hosts.py:HostActor._live",
        "if not isinstance(error, JournalError):\n    return",
        "return",
        (f"{RAY}::test_an_actor_enters_its_runtime_as_soon_as_the_journal_can_be_used",),
    ),
    Mutation(
        "host router: the documented application holds each session that it has opened",
        f"{WORKERS}:open_session",
        "async with request.app.state.open(name) as session:\n    yield session",
        "yield await request.app.state.open(name)",
        ("tests/hosts/test_workers.py::test_the_application_serves_more_sessions_than_may_be_open",),
    ),
    Mutation(
        "host router: a runtime that was left fails requests for good",
        "actors/runtime/runtime.py:Runtime._running_host",
        "ShuttingDown if self._has_ended else KernelError",
        "KernelError",
        (f"{REJECTIONS}::test_a_runtime_that_was_left_rejects_requests",),
    ),
    Mutation(
        "host router: a listener takes the signals of the server",
        "actors/hosts/listener.py:_Listener.capture_signals",
        "yield",
        "signal = __import__('signal')\nsignal.signal(signal.SIGTERM, self.handle_exit)\nyield",
        (f"{LISTENER}::test_the_listener_leaves_signals_to_the_program",),
    ),
    Mutation(
        "host router: a signal no longer ends the server",
        "actors/hosts/shutdown.py:call_at_signals.handle",
        "handler(number, frame)",
        "pass",
        (f"{LISTENER}::test_a_signal_calls_the_function_and_the_earlier_handler",),
    ),
)
