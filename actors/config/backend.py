"""Define a resolved backend: its address, dialect, settings and credential. Sessions and provider actors use it.

Keys come from environment variables, which are looked up in a mapping that the program passes as `environ=`. The
mapping may read them from a vault that is temporarily unavailable, so any exception from the mapping becomes a
`ConfigError`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Never, TypeAlias, cast

from msgspec.structs import asdict
from pydantic import ConfigDict, PlainSerializer, SecretStr

from actors.config.fields import FrozenModel
from actors.config.providers import Kind
from actors.config.settings import BackendLimits, ReasoningSettings, Thinking
from actors.core.dialects.dialect import Cache
from actors.core.policy.routing import Policy
from actors.core.settings.values import RequestSettings
from actors.core.values.identity import Binding
from actors.errors import ConfigError
from actors.kernel.host_code import call_host


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
"""What authenticates the requests to one backend: a key, a program that prints tokens, or an AWS signature."""


class Backend(FrozenModel):
    """A configured backend with its credential, ready for requests.

    Args:
        name: The name of the `[backends.NAME]` table, or `provider:model` for a backend that no table configures.
        kind: The provider or API, such as `anthropic`.
        dialect: Name of the profile, built in or from a `[dialects.NAME]` table.
        model: The provider's name of the model.
        endpoint: Base URL without its query; the adapter appends the path of a request.
        query: The query of the base URL, which is appended to the path of each request. The query may contain a key, so
            it is not part of the binding and is never shown.
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
        thinking: How earlier reasoning is sent: in the provider's format if the dialect supports that (`native`), not
            at all (`drop`), or as text (`text`).
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
    """Split a base URL into the URL without its query, and the query. The second value is None if there is no query."""
    place, _, query = url.partition("?")
    return place, SecretStr(query) if query else None


class RecordingEnvironment(Mapping[str, str]):
    """An environment that forwards lookups to another environment and records them.

    `seen` maps each variable that was looked up to its value, or to None if the variable is not set.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.seen: dict[str, str | None] = {}

    def __getitem__(self, name: str) -> str:
        self.seen[name] = self._environ.get(name)
        return self._environ[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._environ)

    def __len__(self) -> int:
        return len(self._environ)


class Environment(Mapping[str, str]):
    """An environment that forwards lookups to the mapping that the program passed as `environ=`.

    Any exception from that mapping becomes a `ConfigError`.
    """

    __slots__ = ("_environ",)

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def __getitem__(self, name: str) -> str:
        value: object = call_host(
            partial(self._environ.get, name), partial(_raise_config_error, f"reading variable {name!r}")
        )
        if value is None:
            raise KeyError(name)
        if not isinstance(value, str):
            kind = type(value).__name__
            raise ConfigError(
                f"environ= returned a value of type {kind} for variable {name!r}; return a string"
            )
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(
            call_host(
                partial(list[str], self._environ), partial(_raise_config_error, "listing the variables")
            )
        )

    def __len__(self) -> int:
        return call_host(partial(len, self._environ), partial(_raise_config_error, "listing the variables"))


def _raise_config_error(action: str, error: BaseException) -> Never:
    """Raise `ConfigError` without the original exception's message, which may contain a secret."""
    raise ConfigError(
        f"environ= raised {type(error).__name__} while {action}; fix the mapping that you passed as environ="
    ) from error


def guard(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return an environment whose lookups raise only `ConfigError`.

    A plain `dict` of strings never fails and is returned unchanged.
    """
    if isinstance(environ, Environment | RecordingEnvironment):
        return environ
    return environ if _is_dict_of_strings(environ) else Environment(environ)


def _is_dict_of_strings(value: object) -> bool:
    if type(value) is not dict:
        return False
    return all(isinstance(each, str) for each in cast("dict[object, object]", value).values())
