"""Mutations of the HTTP client."""

from tests.teeth.mutations.mutation import Mutation

FAULTS = "tests/transport/test_faults.py"
POOL = "tests/transport/test_pool.py"
PROXY = "tests/transport/test_proxy.py"
RESENDING = "tests/transport/test_resending.py"
TLS = "tests/transport/test_tls.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "transport: a request that no server read has failed",
        "actors/transport/exchange.py:ClientExchange._fetch_head",
        """
        if not connection.is_reused or connection.has_received:
            raise
        """,
        "raise",
        (RESENDING,),
    ),
    Mutation(
        "transport: a request is sent again after a byte of its answer arrived",
        "actors/transport/exchange.py:ClientExchange._fetch_head",
        "not connection.is_reused or connection.has_received",
        "not connection.is_reused",
        (FAULTS,),
    ),
    Mutation(
        "transport: a request that a server may have read is sent again",
        "actors/transport/exchange.py:ClientExchange._fetch_head",
        "not connection.is_reused or connection.has_received",
        "connection.has_received",
        (RESENDING,),
    ),
    Mutation(
        "transport: a request is sent again over another kept connection",
        "actors/transport/exchange.py:ClientExchange._fetch_head",
        """
        self._connection = connection = await self._pool.replace(
            connection, self._deadlines, self._timeouts
        )
        """,
        """
        await self._pool.drop(connection)
        self._connection = connection = await self._pool.acquire(self._deadlines, self._timeouts)
        """,
        (FAULTS,),
    ),
    Mutation(
        "transport: a compressed answer is accepted",
        "actors/transport/exchange.py:ClientExchange.chunks",
        '... != "identity"',
        '... == "unknown"',
        (FAULTS,),
    ),
    Mutation(
        "transport: useless bytes prolong a timeout",
        "actors/transport/exchange.py:ClientExchange._next_chunk",
        "await connection.receive()",
        """
        self._deadlines.limit_wait("waiting for more of the answer", self._timeouts.idle)
        await connection.receive()
        """,
        (FAULTS,),
    ),
    Mutation(
        "transport: an answer is not read until the request has been sent",
        "actors/transport/exchange.py:ClientExchange._send_request",
        "self._writing is None",
        "True",
        (FAULTS,),
    ),
    Mutation(
        "transport: the head of a request stays in memory during its answer",
        "actors/transport/exchange.py:ClientExchange._send_request",
        "head, self._request_head = self._request_head or self._create_head(), None",
        "head = self._request_head or self._create_head()",
        (f"{RESENDING}::test_the_head_of_a_request_is_dropped_once_it_is_sent",),
    ),
    Mutation(
        "transport: an overtaken request still affects the timeout of its answer",
        "actors/transport/exchange.py:ClientExchange._limit_wait",
        "connection is self._connection and (not self._is_answered)",
        "connection is self._connection",
        (FAULTS,),
    ),
    Mutation(
        "transport: bytes that arrive after a wait are never parsed",
        "actors/transport/connection.py:Connection.receive",
        "self._is_drained = False",
        "",
        (f"{FAULTS}::test_framing_and_packet_boundaries_do_not_change_an_answer",),
    ),
    Mutation(
        "transport: a connection is returned half-read",
        "actors/transport/connection.py:Connection.prepare_reuse",
        """
        if http.our_state is not h11.DONE or http.their_state is not h11.DONE:
            return False
        """,
        """
        if http.our_state is not h11.DONE or http.their_state is not h11.DONE:
            self._http = http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
            self.is_reused, self.has_received, self.is_response_complete, self._idle_since = (
                True,
                False,
                False,
                monotonic(),
            )
            return True
        """,
        (FAULTS, "tests/transport/test_cancelling.py"),
    ),
    Mutation(
        "transport: data after an answer is the next answer",
        "actors/transport/connection.py:Connection.prepare_reuse",
        'http.trailing_data != (b"", False)',
        'http.trailing_data == (b"-", False)',
        (FAULTS,),
    ),
    Mutation(
        "transport: data after an answer inside TLS is the next answer",
        "actors/transport/connection.py:Connection.prepare_reuse",
        "self._is_broken or ... or (self._tls and _has_extra_data(self._tls))",
        "self._is_broken or ...",
        (TLS,),
    ),
    Mutation(
        "transport: an idle connection that has ended is used",
        "actors/transport/connection.py:Connection.is_alive",
        "not self.has_expired() and (not _is_readable(self._socket))",
        "not self.has_expired()",
        (FAULTS,),
    ),
    Mutation(
        "transport: an error repeats the server's text",
        "actors/transport/connection.py:_error_text",
        "f\"the received data is not HTTP: {str(error).partition(':')[0][:120]}\"",
        'f"the received data is not HTTP: {error}"',
        (FAULTS,),
    ),
    Mutation(
        "transport: the limit of connections is ignored",
        "actors/transport/pool.py:ConnectionPool.acquire",
        """
        if self._free:
            ...
        else:
            ...
        """,
        """
        if True:
            ...
        else:
            ...
        """,
        (POOL,),
    ),
    Mutation(
        "transport: the limit of concurrent connects is ignored",
        "actors/transport/pool.py:ConnectionPool._open_connection",
        """
        async with self._connects:
            ...
        """,
        """
        if True:
            ...
        """,
        (POOL,),
    ),
    Mutation(
        "transport: a failed connect keeps its slot",
        "actors/transport/pool.py:ConnectionPool._open_connection",
        "self._release_slot()",
        "",
        (POOL,),
    ),
    Mutation(
        "transport: a cancelled waiter keeps its assigned slot",
        "actors/transport/pool.py:ConnectionPool._wait_for_slot",
        "self._release_slot()",
        "pass",
        ("tests/transport/test_cancelling.py",),
    ),
    Mutation(
        "transport: a certificate may be for any host",
        "actors/transport/dial.py:system_tls_context",
        "context = ssl.create_default_context()",
        """
        context = ssl.create_default_context()
        context.check_hostname = False
        """,
        (TLS,),
    ),
    Mutation(
        "transport: a certificate may be from anyone",
        "actors/transport/dial.py:system_tls_context",
        "context = ssl.create_default_context()",
        """
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = (False, ssl.CERT_NONE)
        """,
        (TLS,),
    ),
    Mutation(
        "transport: HTTP/2 may be negotiated",
        "actors/transport/dial.py:system_tls_context",
        '["http/1.1"]',
        '["h2", "http/1.1"]',
        (TLS,),
    ),
    Mutation(
        "transport: a proxy sees the content of its open_tunnel",
        "actors/transport/dial.py:dial",
        "await _wrap_tls(stream, origin, load_tls_context)",
        "stream if proxy else await _wrap_tls(stream, origin, load_tls_context)",
        (PROXY,),
    ),
    Mutation(
        "transport: a refused open_tunnel is used",
        "actors/transport/dial.py:open_tunnel",
        "200 <= event.status_code < 300",
        "200 <= event.status_code < 600",
        (PROXY,),
    ),
    Mutation(
        "transport: NO_PROXY is ignored",
        "actors/transport/dial.py:_bypasses_proxy",
        "any((entry and _matches_host(entry, origin, address) for entry in entries))",
        "not entries",
        (PROXY,),
    ),
)
