"""Sign requests to AWS with Signature Version 4, using botocore.

botocore is an optional dependency: `pip install "llm-actors[bedrock]"`. It is imported when the first request is
signed.
"""

from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from typing import Any

import anyio.to_thread
from pydantic import SecretStr

from actors.config import AwsKeys
from actors.errors import ConfigError, MissingKey
from actors.provider.credentials import Headers, OutgoingRequest


class AwsSigner:
    """Credentials that sign each request with AWS Signature Version 4.

    Args:
        region: Region of the endpoint.
        service: AWS's name for the service, which is part of the signature.
        look_up: Returns the configured keys. It is called for each request. If it returns None, botocore searches the
            usual places: environment, shared files, container and instance roles. The search may use the network, so it
            runs in a thread. botocore renews keys that expire.
    """

    def __init__(
        self, region: str, look_up: Callable[[], AwsKeys | None] = lambda: None, *, service: str = "bedrock"
    ) -> None:
        self._region = region
        self._service = service
        self._look_up = look_up

    async def headers(self, outgoing: OutgoingRequest) -> Headers:
        """Return the headers that contain the signature.

        Raises:
            ConfigError: botocore is not installed.
            MissingKey: No keys are configured, and botocore finds none.
        """
        keys = self._look_up()
        if keys is None:
            keys = await anyio.to_thread.run_sync(_aws_chain_keys)
        return signature_headers(outgoing, keys, self._region, self._service)

    def record_rejection(self, sent: Headers) -> bool:
        """Return False, because the next signature would use the same keys."""
        return False


def signature_headers(
    request: OutgoingRequest, keys: AwsKeys, region: str, service: str = "bedrock"
) -> Headers:
    """Return the headers that sign a request. The signature contains the current time.

    The body's digest is computed from its segments, without joining them.

    Raises:
        ConfigError: botocore is not installed.
    """
    digest = sha256()
    for segment in request.segments:
        digest.update(segment)
    auth = _import_botocore("auth").SigV4Auth(
        _import_botocore("credentials").Credentials(*_key_strings(keys)), service, region
    )
    outgoing = _import_botocore("awsrequest").AWSRequest(
        "POST",
        request.url,
        {"content-type": "application/json", "x-amz-content-sha256": digest.hexdigest()},
    )
    auth.add_auth(outgoing)
    made = outgoing.headers.items()
    return tuple((name.lower(), value) for name, value in made if name.lower() != "content-type")


def _key_strings(keys: AwsKeys) -> tuple[str, str, str | None]:
    token = keys.session_token
    secret = keys.secret_key.get_secret_value()
    return keys.access_key, secret, None if token is None else token.get_secret_value()


def _aws_chain_keys() -> AwsKeys:
    """Return the keys that botocore finds in the environment, in shared files or in roles. botocore refreshes keys that
    are about to expire.
    """
    credentials = _botocore_session().get_credentials()
    if credentials is None:
        raise MissingKey(
            "No AWS credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
            "AWS_BEARER_TOKEN_BEDROCK"
        )
    frozen = credentials.get_frozen_credentials()
    token = None if frozen.token is None else SecretStr(frozen.token)
    return AwsKeys(frozen.access_key, SecretStr(frozen.secret_key), token)


@lru_cache(maxsize=1)
def _botocore_session() -> Any:  # Any: botocore has no types
    return _import_botocore("session").get_session()


def _import_botocore(module: str) -> Any:  # Any: botocore has no types
    try:
        return import_module(f"botocore.{module}")
    except ImportError as error:
        raise ConfigError(
            'Requests to AWS are signed with botocore, which is not installed; run pip install "llm-actors[bedrock]"'
        ) from error
