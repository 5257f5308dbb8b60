"""Dialling: a stream to an origin, by TCP, inside TLS for https; through a proxy's tunnel, or to the proxy for http.

TLS trusts whom the system trusts, or `SSL_CERT_FILE` and `SSL_CERT_DIR` name; the certificate must be for the host
that was asked for. Addresses of both families are raced, as anyio does it.
"""

import os
import ssl
from collections.abc import Callable

import anyio
import anyio.abc
from anyio.streams.tls import TLSStream

from actors.transport.origin import Origin
from actors.transport.proxy import Proxy, ProxyRefused, tunnel

Trust = Callable[[], ssl.SSLContext]


def system_trust() -> ssl.SSLContext:
    """Return whom the system trusts. It reads a file of some hundred certificates, so it is asked for once."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


async def dial(origin: Origin, proxy: Proxy | None, trust: Trust) -> anyio.abc.ByteStream:
    """Return a stream to an origin.

    Raises:
        OSError: It cannot be reached (ssl.SSLError is one), or is not who it should be.
        ProxyRefused: The proxy does not open a tunnel.
    """
    first = origin if proxy is None else proxy.origin
    try:
        stream: anyio.abc.ByteStream = await anyio.connect_tcp(first.host, first.port)
    except OSError as error:
        if proxy is None:
            raise
        raise ProxyRefused(f"the proxy {first.authority} cannot be reached: {why(error)}") from None
    try:
        if proxy is not None:
            stream = await _secured(stream, first, trust)
            if origin.scheme == "http":
                return stream  # the proxy forwards what is handed to it
            await tunnel(stream, proxy, origin)
        return await _secured(stream, origin, trust)
    except BaseException:
        await anyio.aclose_forcefully(stream)
        raise


async def _secured(stream: anyio.abc.ByteStream, origin: Origin, trust: Trust) -> anyio.abc.ByteStream:
    """Return the stream inside TLS if the origin asks for it. HTTP has its own end, so TLS's is not waited for."""
    if origin.scheme == "http":
        return stream
    return await TLSStream.wrap(
        stream, hostname=origin.host, ssl_context=trust(), standard_compatible=False, server_side=False
    )


def why(error: OSError) -> str:
    """Return in a few words why an origin could not be reached."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message.strip()}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {(error.reason or 'no detail').replace('_', ' ').lower()}"
    cause = error.__cause__
    if isinstance(cause, BaseExceptionGroup):
        cause = next((one for one in cause.exceptions if isinstance(one, OSError)), None)
    told = cause if isinstance(cause, OSError) else error
    number = told.errno or 0  # below 0 for names that cannot be resolved
    return (os.strerror(number) if number > 0 else told.strerror or str(told)).lower()
