"""Create the credentials, headers and query of a configured backend: keys, tokens from a program, or AWS signatures.

A bearer token, which a program prints, is used until shortly before it expires, and is renewed if the provider rejects
it. Tokens are for OAuth accounts, cloud platforms, or a company's own token service.

Requests to AWS are signed with Signature Version 4. A signature depends on the request. The library botocore creates
the signatures. It is an optional dependency (`pip install "llm-actors[bedrock]"`), which is imported when the first
request is signed.

This module is separate from `actors.provider.credentials`, because it imports the configuration.
"""

import json
import math
import subprocess
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache, partial
from hashlib import sha256
from importlib import import_module
from typing import Any

import anyio
import anyio.to_thread
from pydantic import SecretStr

from actors.config import Aws, AwsKeys, Config, Key, TokenCommand
from actors.errors import ConfigError, CredentialFailed, MissingKey
from actors.provider.credentials import Credentials, Headers, Keys, OutgoingRequest

COMMAND_SECONDS = 60.0
"""Maximum run time of a token command, in seconds."""
MARGIN_SECONDS = 60.0
"""Seconds between the renewal of a token and its expiry, but at most half of the token's lifetime."""
MAX_TOKEN = 64 * 1024
"""Maximum number of bytes that a token command may print."""


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
    """Return the query of a backend's base URL, as currently configured; empty if the URL has no query.

    Raises:
        ConfigError: The backend does not exist or cannot be used.
    """
    query = config.backend(backend).query
    return "" if query is None else query.get_secret_value()


def _aws_keys(config: Config, backend: str) -> AwsKeys | None:
    """Return the AWS keys that are currently configured for a backend, or None if botocore should search for keys."""
    found = config.backend(backend).credential
    return found.keys if isinstance(found, Aws) else None


def _key_header(config: Config, backend: str) -> Headers:
    """Return the header with the current key of a backend, or no header if the backend needs no key."""
    found = config.backend(backend).credential
    if not isinstance(found, Key):
        return ()
    value = found.value.get_secret_value()
    return ((found.header, f"Bearer {value}" if found.header == "authorization" else value),)


class Tokens:
    """Credentials that consist of a bearer token, which a program prints.

    All requests that wait for a token share one run of the program; if the run fails, all of these requests fail. If
    the request that started the program is cancelled, the program is killed, and the next request starts it again.

    Args:
        command: The program and its arguments. No shell is involved.
        lifetime: Seconds for which a token is used if the program does not report its expiry.
        clock: A monotonic clock, in seconds.
        now: Returns the wall-clock time in seconds since 1970, for programs that report when a token expires.
    """

    def __init__(
        self,
        command: Sequence[str],
        lifetime: float,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._command = tuple(command)
        self._lifetime = lifetime
        self._clock, self._now = clock, now
        self._lock = anyio.Lock()
        self._token = ""
        self._until = -math.inf
        self._runs = 0
        self._failure: CredentialFailed | None = None  # the error of the program's last run

    async def headers(self, outgoing: OutgoingRequest) -> Headers:
        """Return the header with the token. Run the program first if there is no valid token."""
        runs = self._runs  # changes if the program runs while this caller waits for the lock
        async with self._lock:
            if self._clock() >= self._until:
                if self._failure is not None and self._runs != runs:
                    # the run for which this caller waited has failed
                    raise CredentialFailed(str(self._failure))
                await self._renew()
            return self._header()

    def record_rejection(self, sent: Headers) -> bool:
        """Discard the token if the rejected headers contain it.

        Return True, because a retry would use a newer token.
        """
        if sent == self._header():
            self._until = -math.inf
        return True

    def _header(self) -> Headers:
        return (("authorization", f"Bearer {self._token}"),)

    async def _renew(self) -> None:
        """Run the program, and store the token and the time until which it is used."""
        self._runs += 1
        try:
            self._token, seconds = _parse_token(await self._command_output(), self._lifetime, self._now())
        except CredentialFailed as failure:
            self._failure = failure
            raise
        self._failure = None
        self._until = self._clock() + seconds - min(MARGIN_SECONDS, seconds / 2)

    async def _command_output(self) -> str:
        """Run the program and return its output. The output is secret, so errors do not contain it."""
        program = repr(self._command[0][:80])
        try:
            with anyio.fail_after(COMMAND_SECONDS):
                printed, status = await self._run_command(program)
        except TimeoutError:
            raise CredentialFailed(
                f"Token command {program} was stopped because it took longer than {COMMAND_SECONDS:g} s"
            ) from None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise CredentialFailed(f"Token command {program} cannot be run: {why}") from None
        if status != 0:
            raise CredentialFailed(
                f"Token command {program} failed with exit status {status}; run it in a terminal to see the error"
            )
        return printed.decode("utf-8", "replace").strip()

    async def _run_command(self, program: str) -> tuple[bytes, int]:
        """Return the program's output and its exit status. A program with too much output is killed."""
        printed = bytearray()
        async with await anyio.open_process(
            self._command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None
            async for chunk in process.stdout:
                printed += chunk
                if len(printed) > MAX_TOKEN:
                    process.kill()
                    raise CredentialFailed(f"Token command {program} printed more than {MAX_TOKEN} bytes")
            return bytes(printed), await process.wait()


def _parse_token(printed: str, lifetime: float, now: float) -> tuple[str, float]:
    """Return the token in a program's output, and the seconds for which the token is valid."""
    token: object = printed
    seconds = lifetime
    if printed.startswith("{"):
        try:
            printed_json = json.loads(printed)
        except (ValueError, RecursionError):
            raise CredentialFailed(
                "The token command printed neither a token nor JSON; it must print one line with the token, or JSON "
                "with access_token"
            ) from None
        token = printed_json.get("access_token") or printed_json.get("token") or ""
        seconds = _seconds_valid(printed_json, lifetime, now)
    if (
        not isinstance(token, str)
        or not token
        or not token.isascii()
        or not token.isprintable()
        or " " in token
    ):
        raise CredentialFailed(
            "The token command printed no token; it must print one line with the token, or JSON with access_token"
        )
    return token, seconds


def _seconds_valid(printed_json: dict[str, object], lifetime: float, now: float) -> float:
    """Return the seconds until the token expires according to the program's JSON, or `lifetime` if the JSON does not
    say.
    """
    left, until = printed_json.get("expires_in"), printed_json.get("expires_at") or printed_json.get("expiry")
    try:
        if isinstance(until, str):
            until = datetime.fromisoformat(until).timestamp()
        if isinstance(left, str):
            left = float(left)
    except (ValueError, OverflowError):
        return lifetime
    seconds = (
        left if isinstance(left, int | float) else until - now if isinstance(until, int | float) else lifetime
    )
    return max(0.0, seconds) if math.isfinite(seconds) else lifetime


class AwsSigner:
    """Credentials that sign each request with AWS Signature Version 4.

    Args:
        region: Region of the endpoint.
        service: AWS's name for the service, which is part of the signature.
        look_up: Returns the configured keys. It is called for each request. If it returns None, botocore searches the
            usual places: environment, shared files, container and instance roles. The search may use the network, so it
            runs in a thread. botocore renews keys before they expire.
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
