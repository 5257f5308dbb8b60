"""What proves to a provider who asks: headers, made for each request and never logged.

A key is looked up each time, so that a rotated one is used at once. A token comes from a program, is used until
shortly before it expires, and is asked for anew when the provider refuses it. A signature depends on the request.
"""

from collections.abc import Callable
from functools import partial

from actors.config import Aws, AwsKeys, Config, Key, TokenCommand
from actors.credentials.aws import AwsSigner
from actors.credentials.outgoing import Credentials, Headers, Outgoing
from actors.credentials.tokens import Tokens

__all__ = [
    "AwsSigner",
    "Credentials",
    "Headers",
    "Keys",
    "Outgoing",
    "Tokens",
    "credentials_of",
    "headers_of",
]


class Keys:
    """Headers that are looked up for each request.

    Args:
        look: Returns them. Raises ConfigError if the key is gone.
    """

    def __init__(self, look: Callable[[], Headers] = tuple) -> None:
        self._look = look

    async def headers(self, outgoing: Outgoing) -> Headers:
        """Return the headers as they are now."""
        return self._look()

    def refused(self, sent: Headers) -> bool:
        """Return False: the same key would be sent again."""
        return False


def credentials_of(config: Config, member: str) -> Credentials:
    """Return what proves to a backend who asks.

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
    """Return the headers that a backend's requests take beside its credential, as they are now.

    Raises:
        ConfigError: The backend does not exist, or a variable holds what no header can.
    """
    return tuple((name, value.get_secret_value()) for name, value in config.backend(member).headers)


def _aws_keys(config: Config, member: str) -> AwsKeys | None:
    """Return a member's AWS keys as they are now; None leaves them to AWS's own chain."""
    found = config.backend(member).credential
    return found.keys if isinstance(found, Aws) else None


def _key(config: Config, member: str) -> Headers:
    """Return the header that carries a member's key as it is now: it may have been rotated."""
    found = config.backend(member).credential
    if not isinstance(found, Key):
        return ()
    value = found.value.get_secret_value()
    return ((found.header, f"Bearer {value}" if found.header == "authorization" else value),)
