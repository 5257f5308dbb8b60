"""Open a stream to an origin, directly or through a proxy: TCP, and TLS for https.

Connection pools use this module. TLS trusts the system's certificates, or the certificates that `SSL_CERT_FILE` and
`SSL_CERT_DIR` name; the certificate must match the requested host. anyio races IPv4 and IPv6 addresses.
"""

import os
import ssl
from collections.abc import Callable

import anyio
import anyio.abc
from anyio.streams.tls import TLSStream

from actors.interrupts import is_group
from actors.transport.origin import Origin
from actors.transport.proxy import Proxy, ProxyRefused, open_tunnel

Trust = Callable[[], ssl.SSLContext]


def system_tls_context() -> ssl.SSLContext:
    """Return a TLS context with the system's certificates. Loading them is slow, so the caller caches it."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


async def dial(origin: Origin, proxy: Proxy | None, trust: Trust) -> anyio.abc.ByteStream:
    """Open and return a stream to an origin.

    Raises:
        OSError: The origin is unreachable or fails its TLS verification (ssl.SSLError is an OSError).
        ProxyRefused: The proxy is unreachable or does not open a tunnel.
    """
    first = origin if proxy is None else proxy.origin
    try:
        stream: anyio.abc.ByteStream = await anyio.connect_tcp(first.host, first.port)
    except OSError as error:
        if proxy is None:
            raise
        raise ProxyRefused(
            f"the proxy {first.authority} cannot be reached: {failure_reason(error)}"
        ) from None
    try:
        if proxy is not None:
            stream = await _wrap_tls(stream, first, trust)
            if origin.scheme == "http":
                return stream  # a proxy forwards plain http requests without a tunnel
            await open_tunnel(stream, proxy, origin)
        return await _wrap_tls(stream, origin, trust)
    except BaseException:
        await anyio.aclose_forcefully(stream)
        raise


async def _wrap_tls(stream: anyio.abc.ByteStream, origin: Origin, trust: Trust) -> anyio.abc.ByteStream:
    """Wrap the stream in TLS if the origin uses https.

    The closing handshake of TLS is skipped, because HTTP marks the end of a response.
    """
    if origin.scheme == "http":
        return stream
    return await TLSStream.wrap(
        stream, hostname=origin.host, ssl_context=trust(), standard_compatible=False, server_side=False
    )


def failure_reason(error: OSError) -> str:
    """Return a short reason why an origin could not be reached, such as `connection refused`."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message.strip()}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {(error.reason or 'no detail').replace('_', ' ').lower()}"
    cause = error.__cause__
    if is_group(cause):
        cause = next((one for one in cause.exceptions if isinstance(one, OSError)), None)
    source = cause if isinstance(cause, OSError) else error
    number = source.errno or 0  # negative for a host name that cannot be resolved
    return (os.strerror(number) if number > 0 else source.strerror or str(source)).lower()
