"""What a request is sent with: its bounds, and its headers.

In:  what the endpoint has, what the ask says, what the backend's settings give.
Out: the timeouts and headers of one request.
"""

from msgspec.structs import replace

from actors.core.settings.asking import Asked
from actors.provider.credentials import Headers
from actors.transport import Timeouts


def timeouts_of(usual: Timeouts, asked: Asked | None) -> Timeouts:
    """Return the bounds of a request, with those of its ask in place of the endpoint's."""
    if asked is None or (asked.first_byte_timeout is None and asked.idle_timeout is None):
        return usual
    first_byte, idle = asked.first_byte_timeout or usual.first_byte, asked.idle_timeout or usual.idle
    return replace(usual, first_byte=first_byte, idle=idle)


def merged_headers(usual: Headers, given: Headers) -> Headers:
    """Return the usual headers with those that were given in their place, or behind them."""
    if not given:
        return usual
    names = {name for name, _ in given}
    return (*(header for header in usual if header[0].lower() not in names), *given)
