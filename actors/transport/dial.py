"""Open a stream to an origin, directly or through a proxy. The stream uses TCP, and TLS for https.

Connection pools use this module. TLS trusts the system's certificates, or the certificates that `SSL_CERT_FILE` and
`SSL_CERT_DIR` name; the certificate must match the requested host. anyio races IPv4 and IPv6 addresses.

The environment chooses the proxy. `HTTPS_PROXY` names the proxy for https URLs, and `HTTP_PROXY` the proxy for http
URLs. `ALL_PROXY` names the proxy for a scheme whose own variable is not set. `NO_PROXY` lists the hosts that are
reached directly. Lower-case names take precedence, and an empty lower-case variable disables its upper-case form.
Loopback addresses are always reached directly.

An https request goes through a tunnel (CONNECT), so the proxy learns only the host. An http request is forwarded by the
proxy, which receives the complete URL, because many proxies open tunnels to port 443 only.
"""

import base64
import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import unquote, urlsplit

import anyio
import anyio.abc
import h11
from anyio.streams.tls import TLSStream

from actors.errors import ConfigError
from actors.interrupts import is_group
from actors.transport.contract import PORTS, Origin, is_host_name

MAX_RESPONSE = 16 * 1024
"""Maximum size of a proxy's response, in bytes."""
LoadTlsContext = Callable[[], ssl.SSLContext]
"""A function that returns the TLS context for connections to origins and proxies."""


class ProxyRefused(Exception):
    """The proxy is unreachable or did not open a tunnel. The message gives the reason."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy and its auth headers. A proxy opens tunnels to https origins, and forwards requests to http origins."""

    origin: Origin
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def proxy_for(origin: Origin, environ: Mapping[str, str]) -> Proxy | None:
    """Return the proxy for an origin, or None if the origin is reached directly.

    Raises:
        ConfigError: The environment names a proxy that cannot be used.
    """
    name, address_ = _proxy_variable(f"{origin.scheme}_proxy", environ)
    if not address_ or _bypasses_proxy(origin, _environment_variable("no_proxy", environ) or ""):
        return None
    try:
        parts = urlsplit(address_ if "://" in address_ else f"http://{address_}")
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme.startswith("socks"):
        raise ConfigError(
            f"{name} names a SOCKS proxy, which is not supported; use an HTTP proxy: http://host:port"
        )
    if parts.scheme not in PORTS or not parts.hostname or not is_host_name(parts.hostname):
        raise ConfigError(f"The value of {name} is not a proxy URL; write it as http://host:port")
    headers: tuple[tuple[str, str], ...] = ()
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        headers = (("proxy-authorization", f"Basic {base64.b64encode(user).decode()}"),)
    return Proxy(Origin(parts.scheme, parts.hostname, port or PORTS[parts.scheme]), headers)


def _proxy_variable(name: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the name and the value of the variable that names the proxy. The value is empty if no variable is set."""
    for each in (name, "all_proxy"):
        value = _environment_variable(each, environ)
        if value is not None:
            return each.upper(), value
    return name.upper(), ""


def _environment_variable(name: str, environ: Mapping[str, str]) -> str | None:
    """Return the value of an environment variable, or None if it is not set.

    `name` is in lower case; the upper-case variable is read only if the lower-case variable is not set.
    """
    if name in environ:
        return environ[name].strip()
    if name == "http_proxy" and "REQUEST_METHOD" in environ:
        return None  # in a CGI program, HTTP_PROXY may contain the `Proxy:` header of a client
    upper = environ.get(name.upper())
    return None if upper is None else upper.strip()


def _bypasses_proxy(origin: Origin, exceptions: str) -> bool:
    """Return True if `origin` is a loopback address, or `exceptions` (the value of `NO_PROXY`) contains its host."""
    address = _parse_address(origin.host)
    if origin.host == "localhost" or (address is not None and address.is_loopback):
        return True
    entries = [entry.strip().lower() for entry in exceptions.split(",")]
    return any(entry and _matches_host(entry, origin, address) for entry in entries)


def _matches_host(entry: str, origin: Origin, address: IPv4Address | IPv6Address | None) -> bool:
    """Return True if an entry of `NO_PROXY` matches a host.

    An entry is `*`, an address, a network or a domain, with or without a port.
    """
    if entry == "*":
        return True
    if address is not None and "/" in entry:
        try:
            return address in ip_network(entry, strict=False)
        except ValueError:
            return False
    host, colon, port = entry.rpartition(":")
    if colon and port.isdigit() and (":" not in host or host.endswith("]")):
        if int(port) != origin.port:
            return False
        entry = host
    if address is not None:
        return _parse_address(entry.strip("[]")) == address
    domain, name = entry.removeprefix("*").strip("."), origin.host.removesuffix(".")
    return name == domain or name.endswith(f".{domain}")


def _parse_address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


async def open_tunnel(stream: anyio.abc.ByteStream, proxy: Proxy, origin: Origin) -> None:
    """Ask a proxy for a tunnel to an origin. Afterwards, the stream leads to the origin.

    Raises:
        ProxyRefused: The proxy did not open the tunnel.
    """
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_RESPONSE)
    headers = [("host", origin.authority), *proxy.headers]
    await stream.send(http.send(h11.Request(method="CONNECT", target=origin.authority, headers=headers)))
    http.send(h11.EndOfMessage())
    try:
        while not isinstance(event := http.next_event(), h11.Response):
            if event is h11.NEED_DATA:
                http.receive_data(await stream.receive())
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        raise ProxyRefused("the proxy closed the connection before it opened a tunnel") from None
    except h11.RemoteProtocolError:
        raise ProxyRefused("the proxy's response to CONNECT is not HTTP") from None
    if not 200 <= event.status_code < 300:
        raise ProxyRefused(f"the proxy rejected CONNECT {origin.authority} with status {event.status_code}")
    if http.trailing_data[0]:
        raise ProxyRefused("the proxy sent unexpected data after its response to CONNECT")


def system_tls_context() -> ssl.SSLContext:
    """Return a TLS context with the system's certificates. Loading them is slow, so the caller caches it."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


async def dial(origin: Origin, proxy: Proxy | None, load_tls_context: LoadTlsContext) -> anyio.abc.ByteStream:
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
            stream = await _wrap_tls(stream, first, load_tls_context)
            if origin.scheme == "http":
                return stream  # a proxy forwards plain http requests without a tunnel
            await open_tunnel(stream, proxy, origin)
        return await _wrap_tls(stream, origin, load_tls_context)
    except BaseException:
        await anyio.aclose_forcefully(stream)
        raise


async def _wrap_tls(
    stream: anyio.abc.ByteStream, origin: Origin, load_tls_context: LoadTlsContext
) -> anyio.abc.ByteStream:
    """Wrap the stream in TLS if the origin uses https.

    The closing handshake of TLS is skipped, because HTTP itself shows where a response ends.
    """
    if origin.scheme == "http":
        return stream
    return await TLSStream.wrap(
        stream,
        hostname=origin.host,
        ssl_context=load_tls_context(),
        standard_compatible=False,
        server_side=False,
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
