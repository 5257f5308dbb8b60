"""Create the credentials of a configured backend. A separate module, because it imports the configuration."""

from functools import partial

from actors.config import Aws, AwsKeys, Config, Key, TokenCommand
from actors.provider.credentials import Credentials, Headers, Keys
from actors.provider.credentials.aws import AwsSigner
from actors.provider.credentials.tokens import Tokens


def credentials_of(config: Config, member: str) -> Credentials:
    """Return the credentials for a backend.

    Raises:
        ConfigError: The backend does not exist or cannot be used.
    """
    match config.backend(member).credential:
        case TokenCommand(command=command, lifetime=lifetime):
            return Tokens(command, lifetime)
        case Aws(region=region):
            return AwsSigner(region, partial(_aws_keys, config, member))
        case _:
            return Keys(partial(_key, config, member))


def headers_of(config: Config, member: str) -> Headers:
    """Return the current additional headers of a backend's requests.

    Raises:
        ConfigError: The backend does not exist, or a variable holds a value that is invalid in a header.
    """
    return tuple((name, value.get_secret_value()) for name, value in config.backend(member).headers)


def query_of(config: Config, member: str) -> str:
    """Return the current query of a backend's requests; empty without one.

    Raises:
        ConfigError: The backend does not exist or cannot be used.
    """
    query = config.backend(member).query
    return "" if query is None else query.get_secret_value()


def _aws_keys(config: Config, member: str) -> AwsKeys | None:
    """Return a member's current AWS keys; None leaves them to AWS's own chain."""
    found = config.backend(member).credential
    return found.keys if isinstance(found, Aws) else None


def _key(config: Config, member: str) -> Headers:
    """Return the header with a member's current key, which may have been rotated."""
    found = config.backend(member).credential
    if not isinstance(found, Key):
        return ()
    value = found.value.get_secret_value()
    return ((found.header, f"Bearer {value}" if found.header == "authorization" else value),)
