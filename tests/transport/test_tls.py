"""TLS: a certificate is accepted only from a trusted authority, for the requested host, and within its validity."""

import datetime
import ssl
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
import trustme
from anyio.streams.tls import TLSAttribute

from actors.errors import ProviderFailed
from actors.transport import HttpTransport, Timeouts
from tests.transport.support import GOOD, SECRET, Peer, answer_correctly, fetch, raw
from tests.transport.test_faults import HUGE, TOO_LARGE

pytestmark = pytest.mark.anyio

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(autouse=True)
def trust_authority(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the authority the only one that this system trusts."""
    file = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(file))
    monkeypatch.setenv("SSL_CERT_FILE", str(file))


def context(cert: trustme.LeafCert) -> ssl.SSLContext:
    """Return the TLS context of a server with this certificate."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.set_alpn_protocols(["h2", "http/1.1"])
    cert.configure_cert(made)
    return made


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_a_valid_certificate_is_accepted_and_its_connection_is_kept(
    host: str, authority: trustme.CA
) -> None:
    spoken: list[object] = []

    async def answer(peer: Peer) -> None:
        spoken.append(peer.stream.extra(TLSAttribute.alpn_protocol))
        await answer_correctly(peer)

    names: list[str | None] = []
    tls = context(authority.issue_cert("localhost", "127.0.0.1"))
    tls.sni_callback = lambda _, name, __: names.append(name)
    transport = HttpTransport()
    async with raw(answer, tls) as server:
        for _ in range(3):
            assert (await fetch(transport, server.url_for_host(host))).body == b"Yes."
        await transport.close()
    assert spoken == ["http/1.1"]
    assert names == ["localhost" if host == "localhost" else None]


BAD: dict[str, tuple[Callable[[trustme.CA], trustme.LeafCert], str]] = {
    "expired": (
        lambda ca: ca.issue_cert("127.0.0.1", not_before=NOW - 9 * DAY, not_after=NOW - DAY),
        "certificate has expired",
    ),
    "not yet valid": (
        lambda ca: ca.issue_cert("127.0.0.1", not_before=NOW + DAY, not_after=NOW + 9 * DAY),
        "not yet valid",
    ),
    "for another host": (lambda ca: ca.issue_cert("other.test"), "not valid for '127.0.0.1'"),
    "for another address": (lambda ca: ca.issue_cert("127.0.0.2"), "not valid for '127.0.0.1'"),
    "from an unknown authority": (
        lambda _: trustme.CA().issue_cert("127.0.0.1"),
        "unable to get local issuer|self-signed",
    ),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_certificate_is_refused_and_nothing_is_sent(name: str, authority: trustme.CA) -> None:
    make, why = BAD[name]
    heard: list[bytes | None] = []

    async def answer(peer: Peer) -> None:
        heard.append(await peer.request())

    transport = HttpTransport(connections=1)
    async with raw(answer, context(make(authority))) as server:
        for _ in range(2):  # the slot is free for the second request
            with pytest.raises(ProviderFailed, match=f"its certificate is not trusted: .*({why})") as failed:
                await fetch(transport, server.url)
            assert SECRET not in repr(failed.value)
        await transport.close()
    assert [request for request in heard if request] == []


async def test_a_self_signed_certificate_is_refused(tmp_path: Path) -> None:
    alone = _self_signed(tmp_path)
    async with raw(answer_correctly, alone) as server:
        transport = HttpTransport()
        with pytest.raises(ProviderFailed, match="its certificate is not trusted: self-signed certificate"):
            await fetch(transport, server.url)
        await transport.close()


def _self_signed(folder: Path) -> ssl.SSLContext:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    import ipaddress

    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    cert = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - DAY)
        .not_valid_after(NOW + DAY)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "alone.pem"
    encoding, no_key = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, no_key)
    pem.write_bytes(cert.public_bytes(encoding) + private)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(pem)
    return made


async def test_a_server_that_does_not_speak_tls_raises_a_typed_error() -> None:
    async def answer(peer: Peer) -> None:
        await peer.say(GOOD)
        await peer.wait_closed()

    transport = HttpTransport()
    async with raw(answer) as server:
        with pytest.raises(ProviderFailed, match="TLS failed: "):
            await fetch(transport, server.url.replace("http:", "https:"))
        await transport.close()


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_a_connection_that_ends_in_the_handshake_raises_a_typed_error(reset: bool) -> None:
    async def answer(peer: Peer) -> None:
        await peer.stream.receive()
        if reset:
            peer.reset()

    transport = HttpTransport(connections=1)
    async with raw(answer) as server:
        for _ in range(2):
            with pytest.raises(
                ProviderFailed, match=r"the connection broke while it was being opened|TLS failed"
            ):
                await fetch(transport, server.url.replace("http:", "https:"))
        await transport.close()


async def test_a_hanging_handshake_times_out() -> None:
    transport = HttpTransport(connections=1)
    async with raw(Peer.wait_closed) as server:
        url = server.url.replace("http:", "https:")
        with pytest.raises(ProviderFailed, match=r"connecting took longer than 0.2 s"):
            await fetch(transport, url, Timeouts(connect=0.2))
        await transport.close()


@pytest.mark.parametrize("cut", [1, 20, len(GOOD) - 1])
async def test_an_answer_cut_off_inside_tls_raises_a_typed_error(cut: int, authority: trustme.CA) -> None:
    async def answer(peer: Peer) -> None:
        await peer.request()
        await peer.say(GOOD[:cut])

    transport = HttpTransport()
    async with raw(answer, context(authority.issue_cert("127.0.0.1"))) as server:
        with pytest.raises(ProviderFailed, match="closed the connection before the response was complete"):
            await fetch(transport, server.url)
        await transport.close()


async def test_data_after_an_answer_in_a_separate_record_is_not_read_as_the_next_answer(
    authority: trustme.CA,
) -> None:
    forged = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged"

    async def answer(peer: Peer) -> None:
        await peer.request()
        if peer.number == 0:
            written = peer.stream.extra(TLSAttribute.ssl_object)
            written.write(GOOD)  # two TLS records in one packet
            await peer.say(forged)
        else:
            await peer.say(GOOD)
        await peer.wait_closed()

    transport = HttpTransport(connections=1)
    async with raw(answer, context(authority.issue_cert("127.0.0.1"))) as server:
        bodies = [(await fetch(transport, server.url)).body for _ in range(2)]
        await transport.close()
    assert bodies == [b"Yes."] * 2
    assert len(server.peers) == 2


async def test_an_early_answer_inside_tls_is_read_before_a_long_request_is_completely_sent(
    authority: trustme.CA,
) -> None:
    async def answer(peer: Peer) -> None:
        if peer.number:
            await answer_correctly(peer)
            return
        await peer.head()
        await peer.say(TOO_LARGE)
        await anyio.sleep_forever()

    transport = HttpTransport(connections=1)
    async with raw(answer, context(authority.issue_cert("127.0.0.1"))) as server:
        answered = await fetch(transport, server.url, segments=HUGE)
        assert (answered.status, answered.body) == (413, b"large")
        assert (await fetch(transport, server.url)).body == b"Yes."
        await transport.close()


async def test_a_long_request_arrives_complete_inside_tls(authority: trustme.CA) -> None:
    received: list[bytes] = []

    async def answer(peer: Peer) -> None:
        while (request := await peer.request()) is not None:
            received.append(request.partition(b"\r\n\r\n")[2])
            await peer.say(GOOD)

    transport = HttpTransport()
    async with raw(answer, context(authority.issue_cert("127.0.0.1"))) as server:
        for _ in range(2):
            assert (await fetch(transport, server.url, segments=HUGE)).body == b"Yes."
        await transport.close()
    assert received == [b"".join(HUGE)] * 2
    assert len(server.peers) == 1
