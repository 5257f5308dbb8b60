"""Define the limits of a router."""

from math import isfinite

from msgspec import Struct

from actors.errors import ConfigError


class RouterLimits(Struct, frozen=True, kw_only=True):
    """The limits of a router. All times are in seconds.

    Args:
        max_attempts: Maximum number of hosts that are tried for one request, including repeated attempts at one host.
        deadline: Maximum time without a host that works on the request, counted over all attempts. It should exceed the
            lease of the journal, because the sessions of a killed host are free only after its lease has expired.
        max_delay: Maximum delay before a host is tried again for the same request.
        exclusion_time: Time for which a host is not tried after it was unreachable, and receives no further sessions
            after it refused one.
        max_lag: Maximum delay of a host's event loop. While other hosts are faster, a slower host receives no further
            sessions.
        max_owners: Maximum number of sessions whose owner is remembered.
        max_body: Maximum size in bytes of the body of a request for a session. The body is kept in memory, so that the
            request can be repeated.
        connect_timeout: Maximum time to connect to a host.
        idle_timeout: Maximum time without a byte from the host that answers a request.

    Raises:
        ConfigError: A limit is not a number greater than 0.
    """

    max_attempts: int = 200
    deadline: float = 30.0
    max_delay: float = 0.25
    exclusion_time: float = 2.0
    max_lag: float = 1.0
    max_owners: int = 10_000
    max_body: int = 10 * 1024 * 1024
    connect_timeout: float = 2.0
    idle_timeout: float = 600.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not isinstance(value, int | float) or not isfinite(value) or value <= 0:
                raise ConfigError(f"RouterLimits({name}=) takes a number greater than 0, not {value!r}")
