"""Define a resolved backend: its address, dialect, settings and credential. Sessions and provider actors use it."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

from msgspec.structs import asdict
from pydantic import ConfigDict, PlainSerializer, SecretStr

from actors.config.fields import FrozenModel
from actors.config.providers import Kind
from actors.config.settings import BackendLimits, ReasoningSettings, Thinking
from actors.core.dialects.dialect import Cache
from actors.core.policy.routing import Policy
from actors.core.settings.values import RequestSettings
from actors.core.values.identity import Binding


@dataclass(frozen=True, slots=True)
class Key:
    """A key or token, and the request header that carries it.

    Args:
        header: Name of the header in lower case. In `authorization`, the key is sent as a bearer token.
        value: The key, without the prefix `Bearer`.
    """

    header: str
    value: SecretStr


@dataclass(frozen=True, slots=True)
class TokenCommand:
    """A program that prints a token.

    Args:
        command: The program and its arguments. No shell interprets them.
        lifetime: Seconds for which a token is used if the program prints no expiry.
    """

    command: tuple[str, ...]
    lifetime: float


@dataclass(frozen=True, slots=True)
class AwsKeys:
    """An AWS access key.

    Args:
        access_key: The id of the key, which is not secret.
        secret_key: The secret that signs requests.
        session_token: The token of temporary credentials; None for permanent credentials.
    """

    access_key: str
    secret_key: SecretStr
    session_token: SecretStr | None = None


@dataclass(frozen=True, slots=True)
class Aws:
    """The region and the access key with which requests to AWS are signed.

    Args:
        region: The AWS region that receives the requests, such as `eu-central-1`.
        keys: The access key; None if AWS's default credential chain (shared files, roles) provides it.
    """

    region: str
    keys: AwsKeys | None


Credential: TypeAlias = Key | TokenCommand | Aws


class Backend(FrozenModel):
    """A configured backend with its credential, ready for requests.

    Args:
        name: The name of the `[backends.NAME]` table, or `provider:model` for a backend that no table configures.
        kind: The provider or API, such as `anthropic`.
        dialect: Name of the profile, built in or from a `[dialects.NAME]` table.
        model: The provider's name of the model.
        endpoint: Base URL without its query; the adapter appends the path of a request.
        query: The query of the base URL, appended to the path of each request. It may contain a key, so it is not part
            of the binding and is never shown.
        account: Label of the account, or an empty string. It is part of the binding.
        upstream: The provider to which a gateway must forward requests; empty lets the gateway choose. It is part of
            the binding.
        credential: The credential for this endpoint, which is never sent elsewhere; None if the endpoint needs no
            credential.
        headers: Additional headers to send with every request, with names in lower case.
        reasoning: The thinking mode and its token budget.
        request: Settings of requests, which an ask may override.
        cache: How the provider's prompt cache is used.
        stream: Whether answers are streamed.
        thinking: How earlier reasoning is sent: natively where the dialect can, not at all, or as text.
        limits: The timeouts, rate limits and retries of the backend.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

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
        """The backend, dialect, endpoint, account and model as one value without secrets."""
        return Binding(self.name, self.dialect, self.endpoint, self.account, self.model, self.upstream)

    @property
    def members(self) -> "tuple[Backend, ...]":
        """A tuple with only this backend, so that callers can treat a backend as a pool with one member."""
        return (self,)


class ResolvedPool(FrozenModel):
    """A pool with its resolved backends.

    Args:
        name: The name of the `[pools.NAME]` table.
        members: The backends, in the order of the table.
        policy: How the member for a turn is chosen.
        cooldown: Seconds for which a member whose turn failed is skipped, unless it answers a request earlier.
        failover_after_output: Whether another member continues an ask even if a part of the answer was already shown.
        failover_on_refusal: Whether another member continues an ask after a member has rejected the structure of a
            request.
    """

    name: str
    members: tuple[Backend, ...]
    policy: Policy
    cooldown: float
    failover_after_output: bool = False
    failover_on_refusal: bool = True


def split_query(url: str) -> tuple[str, SecretStr | None]:
    """Split a base URL into the URL without its query, and the query.

    If the URL has no query, return None as the query.
    """
    place, _, query = url.partition("?")
    return place, SecretStr(query) if query else None
