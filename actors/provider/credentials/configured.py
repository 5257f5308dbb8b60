"""Create the credentials, headers and query of a configured backend.

It is a separate module because it imports the configuration.
"""

from functools import partial

from actors.config import Aws, AwsKeys, Config, Key, TokenCommand
from actors.provider.credentials import Credentials, Headers, Keys
from actors.provider.credentials.aws import AwsSigner
from actors.provider.credentials.tokens import Tokens


def credentials_of(config: Config, backend: str) -> Credentials:
    """Return the credentials of a backend: a token command, AWS keys or an API key.

    Raises:
        ConfigError: The backend does not exist or cannot be used.
    """
    match config.backend(backend).credential:
        case TokenCommand(command=command, lifetime=lifetime):
            return Tokens(command, lifetime)
        case Aws(region=region):
            return AwsSigner(region, partial(_aws_keys, config, backend))
        case _:
            return Keys(partial(_key_header, config, backend))


def headers_of(config: Config, backend: str) -> Headers:
    """Return the additional headers that the configuration currently defines for a backend's requests.

    Raises:
        ConfigError: The backend does not exist, or the value of an environment variable is invalid in a header.
    """
    return tuple((name, value.get_secret_value()) for name, value in config.backend(backend).headers)


def url_query_of(config: Config, backend: str) -> str:
    """Return the query of a backend's base URL, as currently configured. It is empty if the URL has no query.

    Raises:
        ConfigError: The backend does not exist or cannot be used.
    """
    query = config.backend(backend).query
    return "" if query is None else query.get_secret_value()


def _aws_keys(config: Config, backend: str) -> AwsKeys | None:
    """Return the AWS keys of a backend, as currently configured, or None if botocore should search for keys."""
    found = config.backend(backend).credential
    return found.keys if isinstance(found, Aws) else None


def _key_header(config: Config, backend: str) -> Headers:
    """Return the header with the current key of a backend, or no header if the backend needs no key."""
    found = config.backend(backend).credential
    if not isinstance(found, Key):
        return ()
    value = found.value.get_secret_value()
    return ((found.header, f"Bearer {value}" if found.header == "authorization" else value),)
