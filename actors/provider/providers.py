"""The provider actors of a runtime: one for each member that is asked, made at its first use."""

from functools import partial
from random import Random
from typing import TYPE_CHECKING

from actors.adapters.adapter import adapter
from actors.core.values.identity import Binding
from actors.errors import ConfigError
from actors.kernel import SHARED, Ref, Restart, System
from actors.provider.meters import Meters
from actors.provider.provider_actor import ProviderCommand
from actors.provider.resolver import provider_at
from actors.transport import Transport

if TYPE_CHECKING:
    from actors.config import Config


class Providers:
    """Those of one runtime.

    Args:
        config: What the members are.
        transport: How requests travel.
        random: Of the jitter in retries.
        meters: What is counted of them.
    """

    def __init__(self, config: "Config", transport: Transport, random: Random, meters: Meters) -> None:
        self._config, self._transport, self._random, self._meters = config, transport, random, meters
        self._count = 0
        self.made: dict[tuple[str, Binding], Ref[ProviderCommand]] = {}

    def provider(self, system: System, member: str, binding: Binding) -> Ref[ProviderCommand]:
        """Return the provider actor of a member, made at its first use under its target's name.

        Raises:
            ConfigError: The member cannot be used, or as many backends are in use as the limit allows.
        """
        if (known := self.made.get((member, binding))) is not None:
            return known
        config = self._config
        if len(self.made) >= (most := config.limits.backends):
            raise ConfigError(
                f"{most} backends are in use, and {member!r} would be one more; raise limits.backends"
            )
        from actors.provider.credentials.configured import credentials_of, headers_of, query_of

        backend = config.backend(member)
        codec = adapter(config.dialect_of(binding))
        credentials, headers = credentials_of(config, member), partial(headers_of, config, member)
        query = partial(query_of, config, member)
        weights = {name: tenant.weight for name, tenant in config.settings.tenants.items()}
        meter = self._meters.provider(backend.binding)
        make = partial(
            provider_at,
            backend,
            codec,
            credentials,
            headers,
            query,
            self._transport,
            self._random,
            weights,
            meter,
        )
        self._count += 1
        name = f"provider/{backend.name}/{self._count}"
        ref: Ref[ProviderCommand] = system.spawn(make, name, depth=SHARED, restart=Restart(intensity=10))
        self.made[member, binding] = ref
        forget = partial(self.made.pop, (member, binding), None)
        system.watch(ref, forget)  # it was given up: a new one may do better
        return ref
