"""Proxies of the environment: which one a request goes through, and the tunnel it opens.

`HTTPS_PROXY` and `HTTP_PROXY` name a proxy for the URLs of their scheme, `ALL_PROXY` one for those that have none of
their own, `NO_PROXY` the hosts that are reached without one. Lower case wins, and a variable that is set to nothing
switches its other spelling off. This machine is always reached directly.

A request by https goes through a tunnel (CONNECT), so the proxy sees where it goes and nothing else. One by http is
handed to the proxy, which is told its whole URL: many proxies open tunnels to port 443 alone.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import unquote, urlsplit

import anyio
import anyio.abc
import h11

from actors.errors import ConfigError
from actors.transport.origin import PORTS, Origin

HEAD = 16 * 1024
"""Bytes of a proxy's answer beyond which it is refused."""


class ProxyRefused(Exception):
    """The proxy did not open a tunnel. The text says how it answered."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy and its auth header. It opens tunnels, or forwards requests, as the origin's scheme says."""

    origin: Origin
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def proxy_for(origin: Origin, environ: Mapping[str, str]) -> Proxy | None:
    """Return the proxy for an origin, or None if it is reached directly.

    Raises:
        ConfigError: The variable names no proxy that can be used.
    """
    name, given = _named(f"{origin.scheme}_proxy", environ)
    if not given or _is_direct(origin, _value("no_proxy", environ) or ""):
        return None
    try:
        parts = urlsplit(given if "://" in given else f"http://{given}")
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme.startswith("socks"):
        raise ConfigError(f"{name} names a SOCKS proxy, which is not supported; it takes http://host:port")
    if parts.scheme not in PORTS or not parts.hostname:
        raise ConfigError(f"{name} names no proxy that can be used; it takes http://host:port")
    headers: tuple[tuple[str, str], ...] = ()
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        headers = (("proxy-authorization", f"Basic {base64.b64encode(user).decode()}"),)
    return Proxy(Origin(parts.scheme, parts.hostname, port or PORTS[parts.scheme]), headers)


def _named(name: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the variable that names the proxy, and what it says; nothing if none does."""
    for each in (name, "all_proxy"):
        value = _value(each, environ)
        if value is not None:
            return each.upper(), value
    return name.upper(), ""


def _value(name: str, environ: Mapping[str, str]) -> str | None:
    """Return what a variable says, in lower case or else in upper case, None if it is not set."""
    if name in environ:
        return environ[name].strip()
    if name == "http_proxy" and "REQUEST_METHOD" in environ:
        return None  # in a CGI program a client's `Proxy:` header arrives as HTTP_PROXY
    upper = environ.get(name.upper())
    return None if upper is None else upper.strip()


def _is_direct(origin: Origin, exceptions: str) -> bool:
    address = _address(origin.host)
    if origin.host == "localhost" or (address is not None and address.is_loopback):
        return True
    entries = [entry.strip().lower() for entry in exceptions.split(",")]
    return any(entry and _covers(entry, origin, address) for entry in entries)


def _covers(entry: str, origin: Origin, address: IPv4Address | IPv6Address | None) -> bool:
    """Say whether an entry of NO_PROXY covers a host: `*`, an address, a network, a domain; with a port or without."""
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
        return _address(entry.strip("[]")) == address
    domain, name = entry.removeprefix("*").strip("."), origin.host.removesuffix(".")
    return name == domain or name.endswith(f".{domain}")


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


async def tunnel(stream: anyio.abc.ByteStream, proxy: Proxy, origin: Origin) -> None:
    """Ask a proxy for a tunnel to an origin; the stream leads there afterwards.

    Raises:
        ProxyRefused: There is none.
    """
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD)
    headers = [("host", origin.authority), *proxy.headers]
    await stream.send(http.send(h11.Request(method="CONNECT", target=origin.authority, headers=headers)))
    http.send(h11.EndOfMessage())
    try:
        while type(event := http.next_event()) is not h11.Response:
            if event is h11.NEED_DATA:
                http.receive_data(await stream.receive())
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        raise ProxyRefused("the proxy closed the connection") from None
    except h11.RemoteProtocolError:
        raise ProxyRefused("what the proxy answered is not HTTP") from None
    if not 200 <= event.status_code < 300:
        raise ProxyRefused(f"the proxy answered {event.status_code} to CONNECT {origin.authority}")
    if http.trailing_data[0]:
        raise ProxyRefused("the proxy said more than that the tunnel is open")
