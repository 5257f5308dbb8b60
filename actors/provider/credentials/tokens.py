"""Obtain bearer tokens from a program, for OAuth accounts, cloud platforms, or a company's own token service."""

import json
import math
import subprocess
import time
from collections.abc import Callable, Sequence
from datetime import datetime

import anyio

from actors.errors import CredentialFailed
from actors.provider.credentials import Headers, OutgoingRequest

COMMAND_SECONDS = 60.0
"""Maximum run time of a token command, in seconds."""
MARGIN_SECONDS = 60.0
"""How many seconds before its expiry a token is renewed; at most half of its lifetime."""
MAX_TOKEN = 64 * 1024
"""Maximum number of bytes that a token command may print."""


class Tokens:
    """Credentials that consist of a bearer token, which a program prints.

    All requests that wait for a token share one run of the program; if it fails, they all fail. Cancelling the request
    that started the program kills it, and the next request starts it again.

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
