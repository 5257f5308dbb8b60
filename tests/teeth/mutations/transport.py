"""Mistakes in the HTTP client."""

from tests.teeth.mutations.mutation import Mutation

FAULTS = "tests/transport/test_faults.py"
POOL = "tests/transport/test_pool.py"
PROXY = "tests/transport/test_proxy.py"
RESENDING = "tests/transport/test_resending.py"
TLS = "tests/transport/test_tls.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "transport: a request that no server read has failed",
        "actors/transport/exchange.py",
        "            if not connection.is_kept or connection.is_heard:\n                raise\n",
        "            raise\n",
        (RESENDING,),
    ),
    Mutation(
        "transport: a request goes out again after a byte of its answer came",
        "actors/transport/exchange.py",
        "if not connection.is_kept or connection.is_heard:",
        "if not connection.is_kept:",
        (FAULTS,),
    ),
    Mutation(
        "transport: a request that a server may have read goes out again",
        "actors/transport/exchange.py",
        "if not connection.is_kept or connection.is_heard:",
        "if connection.is_heard:",
        (RESENDING,),
    ),
    Mutation(
        "transport: a request goes out again over a connection that was kept as well",
        "actors/transport/exchange.py",
        "self._connection = connection = await self._pool.renew(connection, self._patience, self._timeouts)",
        "await self._pool.drop(connection)\n"
        "        self._connection = connection = await self._pool.take(self._patience, self._timeouts)",
        (FAULTS,),
    ),
    Mutation(
        "transport: a compressed answer is accepted",
        "actors/transport/exchange.py",
        '.strip().lower()) != "identity":',
        '.strip().lower()) == "unknown":',
        (FAULTS,),
    ),
    Mutation(
        "transport: bytes that lead to nothing prolong a wait",
        "actors/transport/exchange.py",
        "                await connection.receive()\n",
        '                self._patience.wait("waiting for more of the answer", self._timeouts.idle)\n'
        "                await connection.receive()\n",
        (FAULTS,),
    ),
    Mutation(
        "transport: an answer is not read until the request has been sent",
        "actors/transport/exchange.py",
        "        if self._writing is None:\n",
        "        if True:\n",
        (FAULTS,),
    ),
    Mutation(
        "transport: a request that was overtaken by its answer still has a say in how long that may take",
        "actors/transport/exchange.py",
        "if connection is self._connection and not self._is_answered:",
        "if connection is self._connection:",
        (FAULTS,),
    ),
    Mutation(
        "transport: a connection is given back half-read",
        "actors/transport/connection.py",
        "        if http.our_state is not h11.DONE or http.their_state is not h11.DONE:\n            return False\n",
        "        if http.our_state is not h11.DONE or http.their_state is not h11.DONE:\n"
        "            self._http = http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD)\n"
        "            self.is_kept, self.is_heard, self.is_over, self._idle_since = True, False, False, monotonic()\n"
        "            return True\n",
        (FAULTS, "tests/transport/test_cancelling.py"),
    ),
    Mutation(
        "transport: what follows an answer is the next one",
        "actors/transport/connection.py",
        'http.trailing_data != (b"", False)',
        'http.trailing_data == (b"-", False)',
        (FAULTS,),
    ),
    Mutation(
        "transport: what follows an answer inside TLS is the next one",
        "actors/transport/connection.py",
        " or (self._tls and _has_more(self._tls))",
        "",
        (TLS,),
    ),
    Mutation(
        "transport: a connection that ended while it rested is used",
        "actors/transport/connection.py",
        "return not self.has_expired() and not _readable(self._socket)",
        "return not self.has_expired()",
        (FAULTS,),
    ),
    Mutation(
        "transport: an error repeats what a server said",
        "actors/transport/connection.py",
        "{str(error).partition(':')[0][:120]}",
        "{error}",
        (FAULTS,),
    ),
    Mutation(
        "transport: the cap on connections is ignored",
        "actors/transport/pool.py",
        "        if self._free:\n            self._free -= 1\n",
        "        if True:\n            self._free -= 1\n",
        (POOL,),
    ),
    Mutation(
        "transport: the cap on connects under way is ignored",
        "actors/transport/pool.py",
        "            async with self._connects:\n",
        "            if True:\n",
        (POOL,),
    ),
    Mutation(
        "transport: a connect that failed keeps its place",
        "actors/transport/pool.py",
        "await self._dial())\n        except BaseException:\n            self._freed()\n",
        "await self._dial())\n        except BaseException:\n",
        (POOL,),
    ),
    Mutation(
        "transport: who is cancelled while it waits keeps the place it was given",
        "actors/transport/pool.py",
        "            elif waiter.connection is None:  # it was given what it no longer wants\n"
        "                self._freed()\n",
        "            elif waiter.connection is None:\n                pass\n",
        ("tests/transport/test_cancelling.py",),
    ),
    Mutation(
        "transport: a certificate may be for any host",
        "actors/transport/dial.py",
        "    context.set_alpn_protocols",
        "    context.check_hostname = False\n    context.set_alpn_protocols",
        (TLS,),
    ),
    Mutation(
        "transport: a certificate may be from anyone",
        "actors/transport/dial.py",
        "    context.set_alpn_protocols",
        "    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE\n    context.set_alpn_protocols",
        (TLS,),
    ),
    Mutation(
        "transport: HTTP/2 may be agreed on",
        "actors/transport/dial.py",
        'set_alpn_protocols(["http/1.1"])',
        'set_alpn_protocols(["h2", "http/1.1"])',
        (TLS,),
    ),
    Mutation(
        "transport: a proxy sees what is inside its tunnel",
        "actors/transport/dial.py",
        "        return await _secured(stream, origin, trust)\n",
        "        return stream if proxy else await _secured(stream, origin, trust)\n",
        (PROXY,),
    ),
    Mutation(
        "transport: a tunnel that was refused is used",
        "actors/transport/proxy.py",
        "if not 200 <= event.status_code < 300:",
        "if not 200 <= event.status_code < 600:",
        (PROXY,),
    ),
    Mutation(
        "transport: the exceptions from a proxy are ignored",
        "actors/transport/proxy.py",
        "    return any(entry and _covers(entry, origin, address) for entry in entries)",
        "    return not entries",
        (PROXY,),
    ),
)
