"""Start the provider actors of a runtime.

There is one actor per backend and binding, which the first request starts.
"""

from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from actors.adapters.adapter import adapter
from actors.core.values.identity import Binding
from actors.errors import ConfigError
from actors.kernel import SHARED, Ref, Restart, System
from actors.provider.admission import Pace
from actors.provider.attempts import Retries
from actors.provider.credentials import Credentials, Headers
from actors.provider.meters import Meters
from actors.provider.provider_actor import ProviderActor, ProviderCommand
from actors.provider.rounds import Endpoint
from actors.transport import Timeouts, Transport

if TYPE_CHECKING:
    from actors.config import Backend, Config


class Providers:
    """The provider actors of one runtime.

    Args:
        config: The configuration of the backends.
        transport: Sends the requests.
        random: Draws the jitter of retries.
        meters: Counts requests and answers.
    """

    def __init__(self, config: "Config", transport: Transport, random: Random, meters: Meters) -> None:
        self._config, self._transport, self._random, self._meters = config, transport, random, meters
        self._count = 0
        self.made: dict[tuple[str, Binding], Ref[ProviderCommand]] = {}

    def provider(self, system: System, member: str, binding: Binding) -> Ref[ProviderCommand]:
        """Return the provider actor of a pool's member. The first call for a member and binding starts the actor.

        Raises:
            ConfigError: The member cannot be used, or the maximum number of backends (`limits.backends`) is in use.
        """
        if (known := self.made.get((member, binding))) is not None:
            return known
        config = self._config
        if len(self.made) >= (most := config.limits.backends):
            raise ConfigError(
                f"Cannot use backend {member!r}, because {most} backends are in use already; raise limits.backends"
            )
        from actors.provider.credentials.configured import credentials_of, headers_of, url_query_of

        backend = config.backend(member)
        endpoint = _build_endpoint(
            backend,
            credentials_of(config, member),
            partial(headers_of, config, member),
            partial(url_query_of, config, member),
            {name: tenant.weight for name, tenant in config.settings.tenants.items()},
        )
        meter = self._meters.add_meter(backend.binding)
        codec = adapter(config.dialect_of(binding))
        make = partial(ProviderActor, codec, endpoint, self._transport, self._random, meter)
        self._count += 1
        name = f"provider/{backend.name}/{self._count}"
        ref: Ref[ProviderCommand] = system.spawn(make, name, depth=SHARED, restart=Restart(intensity=10))
        self.made[member, binding] = ref
        forget = partial(self.made.pop, (member, binding), None)
        system.watch(ref, forget)  # if an actor crashed too often, the next request starts a new one
        return ref


def _build_endpoint(
    backend: "Backend",
    credentials: Credentials,
    headers: Callable[[], Headers],
    query: Callable[[], str],
    weights: Mapping[str, float],
) -> Endpoint:
    limits = backend.limits
    return Endpoint(
        backend.endpoint,
        credentials,
        headers,
        query,
        Timeouts(
            limits.connect_timeout,
            limits.first_byte_timeout,
            limits.idle_timeout,
            limits.timeout,
            pool=limits.first_byte_timeout,
        ),
        Retries(attempts=limits.attempts),
        Pace(
            limits.concurrency,
            limits.waiting,
            limits.requests_per_minute,
            limits.tokens_per_minute,
            limits.failures,
            limits.cooldown,
            weights=weights,
        ),
        backend.stream,
        limits.answer_bytes,
        limits.silence_timeout,
    )
