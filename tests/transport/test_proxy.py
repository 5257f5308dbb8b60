"""Proxies from the environment: the requests that use one, and the data that it sees."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.abc
import pytest
import trustme

from actors.errors import ConfigError, ProviderFailed
from actors.transport import HttpTransport, Timeouts
from actors.transport.contract import parse_target
from actors.transport.dial import proxy_for
from tests.runtime.hosting_cases import case
from tests.transport.support import GOOD, SECRET, Peer, answer_correctly, fetch, raw
from tests.transport.test_tls import context

PLAIN, FOR_ALL = case("plain-http-through-a-proxy"), case("proxy-for-all")
HOST = "model.test"  # a name that only the proxy can resolve
EVERYWHERE = pytest.mark.anyio


@dataclass
class ForwardingProxy:
    """A small real proxy: it opens tunnels to this machine, whatever the host name.

    Attributes:
        asked: The heads of the CONNECT requests.
        seen: The data sent through its tunnels to servers.
    """

    refusal: bytes = b""
    asked: list[bytes] = field(default_factory=list)
    seen: bytearray = field(default_factory=bytearray)
    url: str = ""

    async def __call__(self, peer: Peer) -> None:
        head = await peer.request()
        assert head is not None
        self.asked.append(head)
        if self.refusal:
            await peer.say(self.refusal)
            return
        authority = head.split(b" ")[1].decode()
        if not head.startswith(b"CONNECT "):
            await self._forward(peer, head)
            return
        async with await anyio.connect_tcp("127.0.0.1", int(authority.rpartition(":")[2])) as onward:
            await peer.say(b"HTTP/1.1 200 Connection established\r\n\r\n")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._pump, peer.stream, onward, self.seen)
                await self._pump(onward, peer.stream, bytearray())
                tasks.cancel_scope.cancel()

    async def _forward(self, peer: Peer, request: bytes) -> None:
        """Forward a request to this machine as an HTTP/1.1 proxy does, and its answer back."""
        line, _, rest = request.partition(b"\r\n")
        method, url, version = line.split(b" ")
        origin = parse_target(url.decode())
        lines = [each for each in rest.split(b"\r\n") if not each.startswith(b"proxy-authorization")]
        async with await anyio.connect_tcp("127.0.0.1", origin.origin.port) as onward:
            await onward.send(b"\r\n".join([b" ".join([method, origin.path.encode(), version]), *lines]))
            await peer.say(await onward.receive())

    async def _pump(self, source: anyio.abc.ByteStream, sink: anyio.abc.ByteStream, seen: bytearray) -> None:
        try:
            while True:
                data = await source.receive()
                seen += data
                await sink.send(data)
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass


@asynccontextmanager
async def run_forwarding_proxy(refusal: bytes = b"") -> AsyncIterator[ForwardingProxy]:
    proxy = ForwardingProxy(refusal)
    async with raw(proxy) as server:
        proxy.url = f"http://127.0.0.1:{server.port}"
        yield proxy


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    return made


@EVERYWHERE
async def test_https_uses_a_tunnel_in_which_the_proxy_sees_only_the_host(
    authority: trustme.CA,
) -> None:
    tls = context(authority.issue_cert(HOST))
    async with raw(answer_correctly, tls) as server, run_forwarding_proxy() as proxy:
        transport = HttpTransport(environ={"HTTPS_PROXY": proxy.url})
        for _ in range(2):
            assert (await fetch(transport, server.url_for_host(HOST))).body == b"Yes."
        await transport.close()
    assert proxy.asked == [
        f"CONNECT {HOST}:{server.port} HTTP/1.1\r\nhost: {HOST}:{server.port}\r\n\r\n".encode()
    ]
    assert proxy.seen
    assert SECRET.encode() not in proxy.seen
    assert b"/v1/chat" not in proxy.seen


@EVERYWHERE
async def test_the_certificate_of_a_host_behind_a_proxy_must_name_the_host(authority: trustme.CA) -> None:
    tls = context(authority.issue_cert("127.0.0.1"))
    async with raw(answer_correctly, tls) as server, run_forwarding_proxy() as proxy:
        transport = HttpTransport(environ={"https_proxy": proxy.url})
        with pytest.raises(ProviderFailed, match=f"not valid for '{HOST}'"):
            await fetch(transport, server.url_for_host(HOST))
        await transport.close()


@EVERYWHERE
async def test_plain_http_is_sent_to_the_proxy_with_the_full_url() -> None:
    assert PLAIN["setup"].startswith("HTTP_PROXY=")
    async with raw(answer_correctly) as server, run_forwarding_proxy() as proxy:
        transport = HttpTransport(environ={"HTTP_PROXY": proxy.url})
        assert (
            await fetch(transport, f"http://{HOST}:{server.port}/v1/chat/completions?a=b")
        ).body == b"Yes."
        await transport.close()
    (head,) = proxy.asked
    url = f"http://{HOST}:{server.port}/v1/chat/completions?a=b"
    assert head.startswith(f"POST {url} HTTP/1.1\r\nhost: {HOST}:{server.port}\r\n".encode())


@EVERYWHERE
async def test_the_answer_of_a_proxy_that_cannot_forward_a_request_is_returned() -> None:
    refusal = b"HTTP/1.1 503 No\r\ncontent-length: 4\r\n\r\nGone"
    async with run_forwarding_proxy(refusal) as proxy:
        transport = HttpTransport(environ={"HTTP_PROXY": proxy.url})
        answer = await fetch(transport, f"http://{HOST}/v1")
        await transport.close()
    assert (answer.status, answer.body) == (503, b"Gone")


@EVERYWHERE
async def test_a_proxy_may_itself_use_tls(authority: trustme.CA) -> None:
    proxy = ForwardingProxy()
    async with (
        raw(proxy, context(authority.issue_cert("127.0.0.1"))) as front,
        raw(answer_correctly, context(authority.issue_cert(HOST))) as server,
    ):
        transport = HttpTransport(environ={"HTTPS_PROXY": f"https://127.0.0.1:{front.port}"})
        assert (await fetch(transport, server.url_for_host(HOST))).body == b"Yes."
        await transport.close()
    assert len(proxy.asked) == 1


@EVERYWHERE
async def test_proxy_credentials_are_sent_only_to_the_proxy() -> None:
    heads: list[bytes] = []

    async def answer(peer: Peer) -> None:
        heads.append(await peer.request() or b"")
        await peer.say(GOOD)

    async with raw(answer) as server, run_forwarding_proxy() as proxy:
        told = proxy.url.replace("//", "//me:pass%20word@")
        transport = HttpTransport(environ={"HTTP_PROXY": told})
        await fetch(transport, server.url_for_host(HOST))
        await transport.close()
    said = base64.b64encode(b"me:pass word")
    assert b"proxy-authorization: Basic " + said + b"\r\n" in proxy.asked[0]
    assert b"proxy-authorization" not in heads[0]
    assert said.decode() not in repr(proxy_for(parse_target("http://a.test/").origin, {"HTTP_PROXY": told}))


@EVERYWHERE
@pytest.mark.parametrize(
    ("refusal", "why"),
    [
        (
            b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n",
            "with status 407",
        ),
        (b"HTTP/1.1 503 No\r\n\r\n", "with status 503"),
        (b"SSH-2.0\r\n\r\n", "the proxy's response to CONNECT is not HTTP"),
        (b"HTTP/1.1 200 OK\r\n", "the proxy closed the connection"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + GOOD, "the proxy sent unexpected data after its response to CONNECT"),
    ],
)
async def test_a_refused_tunnel_raises_a_typed_error_and_sends_no_request(refusal: bytes, why: str) -> None:
    async with run_forwarding_proxy(refusal) as proxy:
        transport = HttpTransport(
            connections=1, environ={"HTTPS_PROXY": proxy.url.replace("//", "//me:sk-word@")}
        )
        for _ in range(2):
            with pytest.raises(ProviderFailed, match=why) as failed:
                await fetch(transport, f"https://{HOST}/v1")
            assert "sk-word" not in repr(failed.value)
        await transport.close()
    assert all(SECRET.encode() not in head for head in proxy.asked)


@EVERYWHERE
async def test_an_unreachable_or_silent_proxy_raises_a_typed_error() -> None:
    async with raw(Peer.wait_closed) as silent:
        for port, why in (
            (1, "the proxy 127.0.0.1:1 cannot be reached: connection refused"),
            (silent.port, "connecting took longer"),
        ):
            transport = HttpTransport(environ={"HTTPS_PROXY": f"127.0.0.1:{port}"})
            with pytest.raises(ProviderFailed, match=why):
                await fetch(transport, f"https://{HOST}/v1", Timeouts(connect=0.3))
            await transport.close()


@EVERYWHERE
async def test_the_local_machine_is_reached_without_the_proxy() -> None:
    async with raw(answer_correctly) as server, run_forwarding_proxy() as proxy:
        transport = HttpTransport(environ={"HTTP_PROXY": proxy.url})
        for host in ("127.0.0.1", "localhost"):
            assert (await fetch(transport, server.url_for_host(host))).body == b"Yes."
        await transport.close()
    assert proxy.asked == []


PROXY = {"HTTPS_PROXY": "http://proxy.test:3128", "HTTP_PROXY": "proxy.test"}
DIRECT = [
    ("https://api.example.com/v1", "*"),
    ("https://api.example.com/v1", "example.com"),
    ("https://api.example.com/v1", ".example.com"),
    ("https://api.example.com/v1", "*.example.com"),
    ("https://example.com/v1", ".example.com"),
    ("https://API.example.com/v1", "other.test, api.EXAMPLE.com ,"),
    ("https://api.example.com/v1", "example.com:443"),
    ("https://10.1.2.3/v1", "10.0.0.0/8"),
    ("https://10.1.2.3:8443/v1", "10.1.2.3"),
    ("https://10.1.2.3:8443/v1", "10.1.2.3:8443"),
    ("https://[fd00::1]/v1", "fd00::1"),
    ("https://[fd00::1]:8443/v1", "[fd00::1]:8443"),
    ("https://[fd00::1]/v1", "fd00::/8"),
    ("https://api.example.com/v1", "api.example.com."),
    ("https://api.example.com./v1", ".example.com"),
    ("https://[::1]/v1", ""),
    ("https://127.9.9.9/v1", ""),
    ("https://localhost:8000/v1", ""),
]
THROUGH = [
    ("https://api.example.com/v1", ""),
    ("https://api.example.com/v1", "ample.com"),
    ("https://api.example.com/v1", "example.com:8443"),
    ("https://example.com.evil.test/v1", "example.com"),
    ("https://11.1.2.3/v1", "10.0.0.0/8"),
    ("https://11.1.2.3/v1", "10.0.0.0/99"),
    ("https://10.1.2.3/v1", "10.1.2"),
    ("https://api.example.com./v1", "."),
    ("https://[fd00::1]/v1", "fd00::2"),
]


@pytest.mark.parametrize(("url", "exceptions"), DIRECT)
def test_hosts_in_no_proxy_are_reached_without_the_proxy(url: str, exceptions: str) -> None:
    assert proxy_for(parse_target(url).origin, PROXY | {"NO_PROXY": exceptions}) is None


@pytest.mark.parametrize(("url", "exceptions"), THROUGH)
def test_hosts_outside_of_no_proxy_use_the_proxy(url: str, exceptions: str) -> None:
    found = proxy_for(parse_target(url).origin, PROXY | {"NO_PROXY": exceptions})
    assert found is not None
    assert found.origin.authority == "proxy.test:3128"


def test_each_scheme_has_its_proxy_and_lower_case_variables_take_precedence() -> None:
    http, https = parse_target("http://a.test/").origin, parse_target("https://a.test/").origin
    environ = {
        "http_proxy": "http://one:1",
        "HTTP_PROXY": "http://two:2",
        "no_proxy": "b",
        "NO_PROXY": "a.test",
    }
    found = proxy_for(http, environ)
    assert found is not None
    assert found.origin.authority == "one:1"
    assert proxy_for(https, environ) is None
    assert proxy_for(http, {}) is None


def test_a_client_of_a_cgi_program_cannot_choose_the_proxy() -> None:
    http = parse_target("http://a.test/").origin
    assert proxy_for(http, {"HTTP_PROXY": "http://evil:1", "REQUEST_METHOD": "POST"}) is None


@pytest.mark.parametrize(
    "given",
    [
        "socks5://me:sk-word@proxy:1080",
        "http://me:sk-word@:80",
        "http://a:sk-word",
        "http://me:sk-word@prøxy:80",
        "http://me:sk-word@\udc80:80",
        f"http://me:sk-word@{'a' * 64}:80",
    ],
)
def test_an_invalid_proxy_variable_is_refused_and_its_value_is_not_shown(given: str) -> None:
    with pytest.raises(ConfigError, match="HTTPS_PROXY") as refused:
        proxy_for(parse_target("https://a.test/").origin, {"HTTPS_PROXY": given})
    assert "sk-word" not in repr(refused.value)


def test_the_variable_all_proxy_applies_to_schemes_without_their_own_proxy() -> None:
    named, switched_off = FOR_ALL["environments"]
    origin = parse_target(FOR_ALL["url"]).origin
    found = proxy_for(origin, named)
    assert found is not None
    assert found.origin.authority == "proxy:3128"
    assert proxy_for(origin, switched_off) is None
    own = proxy_for(origin, named | {"https_proxy": "http://own:1"})
    assert own is not None
    assert own.origin.authority == "own:1"
    assert proxy_for(origin, named | {"https_proxy": ""}) is None
    assert proxy_for(origin, named | {"all_proxy": ""}) is None
    assert proxy_for(parse_target("http://a.test/").origin, named | {"https_proxy": ""}) == found
    assert proxy_for(origin, named | {"NO_PROXY": "api.example"}) is None
    assert proxy_for(origin, named | {"NO_PROXY": "api.example", "no_proxy": ""}) == found


def test_the_error_that_refuses_a_socks_proxy_names_its_variable_and_kind() -> None:
    with pytest.raises(ConfigError, match="ALL_PROXY names a SOCKS proxy"):
        proxy_for(parse_target("https://a.test/").origin, {"ALL_PROXY": "socks5://proxy:1080"})
