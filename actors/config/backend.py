"""A backend as a target resolves to it: where it is, what it speaks, and the credential that goes with its requests."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from msgspec.structs import asdict
from pydantic import ConfigDict, PlainSerializer, SecretStr

from actors.config.fields import Frozen
from actors.config.providers import Kind
from actors.config.settings import BackendLimits, ReasoningSettings, Thinking
from actors.core.dialects.dialect import Cache
from actors.core.policy.routing import Policy
from actors.core.settings.values import RequestSettings
from actors.core.values.identity import Binding


@dataclass(frozen=True, slots=True)
class Key:
    """A key or a token, and the header that carries it; in `authorization` it is a bearer token."""

    header: str
    value: SecretStr


@dataclass(frozen=True, slots=True)
class TokenCommand:
    """A program that prints a token, and the seconds it is used for where the program does not say."""

    command: tuple[str, ...]
    lifetime: float


@dataclass(frozen=True, slots=True)
class AwsKeys:
    """An AWS access key; the token is that of a session, if the key is of one."""

    access_key: str
    secret_key: SecretStr
    session_token: SecretStr | None = None


@dataclass(frozen=True, slots=True)
class Aws:
    """Signing for a region: with these keys, or with what AWS's usual chain finds (shared files, roles)."""

    region: str
    keys: AwsKeys | None


Credential: TypeAlias = Key | TokenCommand | Aws


class Backend(Frozen):
    """A backend that can be talked to.

    Args:
        endpoint: Base URL without its query; the adapter's path is put behind it.
        query: The query of the base URL, appended to the path of each request. It may hold a key, so it is no part of
            the binding and is never shown.
        account: Label of the account, part of the binding; empty if none was given.
        upstream: The one upstream of a gateway that serves, part of the binding; empty leaves it to choose.
        credential: For this endpoint and no other; None if it takes none.
        headers: Sent with every request, names in lower case.
        reasoning: The thinking mode and its budget.
        request: The settings that requests send unless an ask replaces them.
        cache: What is asked of the host's prompt cache.
        stream: Whether answers are asked for as streams.
        thinking: How reasoning blocks are sent: kept where the dialect can, dropped, or turned into text.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: str
    kind: Kind
    dialect: str
    model: str
    endpoint: str
    account: str = ""
    upstream: str = ""
    query: SecretStr | None = None
    credential: Credential | None = None
    headers: tuple[tuple[str, SecretStr], ...] = ()
    thinking: Thinking = "native"
    reasoning: ReasoningSettings = ReasoningSettings()
    request: Annotated[RequestSettings, PlainSerializer(asdict)] = RequestSettings()
    cache: Cache = "default"
    stream: bool = True
    limits: BackendLimits = BackendLimits()

    @property
    def binding(self) -> Binding:
        """What a switch to this backend binds a session to. No secret is in it."""
        return Binding(self.name, self.dialect, self.endpoint, self.account, self.model, self.upstream)

    @property
    def members(self) -> "tuple[Backend, ...]":
        """Itself: a backend is a pool of one."""
        return (self,)


class ResolvedPool(Frozen):
    """Backends that stand in for each other, in order. `cooldown` is in seconds."""

    name: str
    members: tuple[Backend, ...]
    policy: Policy
    cooldown: float
    failover_after_output: bool = False
    failover_on_refusal: bool = True


def divided(url: str) -> tuple[str, SecretStr | None]:
    """Return a base URL without its query, and the query."""
    place, _, query = url.partition("?")
    return place, SecretStr(query) if query else None
