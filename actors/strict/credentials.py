"""Check the credentials of requests as cloud platforms do: bearer tokens that expire, and AWS signatures (version 4).

A signature is an HMAC of the method, the path, the signed headers and the digest of the body. The HMAC's key is derived
from the secret, the day, the region and the service. Except for the secret, the request contains all of this, so the
server computes the signature itself and compares it with the request's. The age of a request is not checked.
"""

import hashlib
import hmac
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from urllib.parse import quote

from actors.strict.loopback import HttpRequest
from actors.strict.rules.base import ServerRefusal

State: TypeAlias = Literal["valid", "expired", "unknown"]
_FORM = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/(?P<scope>(?P<day>\d{8})/(?P<region>[^/]+)/"
    r"(?P<service>[^/]+)/aws4_request), ?SignedHeaders=(?P<names>[^,]+), ?Signature=(?P<signature>[0-9a-f]{64})"
)
_MISMATCH = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret "
    "Access Key and signing method. Consult the service documentation for details."
)


class OAuth:
    """The bearer tokens that a strict server accepts instead of a key.

    Args:
        tokens: Lifetime of each token in seconds; a token with None never expires. `grant` adds tokens.
        project: Required value of the header `x-goog-user-project` on Google's host; None requires no project.
        clock: Returns the time in seconds.

    `refusals` counts the requests whose credentials were refused.
    """

    def __init__(
        self,
        tokens: Mapping[str, float | None],
        *,
        project: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock = clock
        self.project = project
        self.refusals = 0
        self._expires: dict[str, float | None] = {}
        for token, seconds in tokens.items():
            self.grant(token, seconds)

    def grant(self, token: str, seconds: float | None = None) -> None:
        """Accept a token for the next `seconds` seconds. With None, the token never expires."""
        self._expires[token] = None if seconds is None else self.clock() + seconds

    def expire(self, token: str) -> None:
        """Make a token expire now."""
        self._expires[token] = self.clock()

    def state(self, token: str) -> State:
        """Return the state of a token: valid, expired or unknown."""
        if token not in self._expires:
            return "unknown"
        expires = self._expires[token]
        return "valid" if expires is None or self.clock() < expires else "expired"


@dataclass(frozen=True, slots=True)
class AwsKey:
    """An AWS access key with its region.

    Args:
        access_key: The id of the key, which each signed request contains.
        secret_key: The secret with which the requests must be signed.
        region: The region that the requests must be signed for.
        token: The session token that each request must contain; None for a permanent key.
    """

    access_key: str
    secret_key: str = field(repr=False)
    region: str = "us-east-1"
    token: str | None = field(default=None, repr=False)


def signature_refusal(request: HttpRequest, key: AwsKey, service: str) -> ServerRefusal | None:
    """Return a refusal unless the request is correctly signed with `key` for `service`."""
    given = _FORM.fullmatch(request.headers.get("authorization", ""))
    if given is None:
        return _make_refusal("MissingAuthenticationTokenException", "Missing Authentication Token")
    token = request.headers.get("x-amz-security-token")
    if given["key"] != key.access_key or token != key.token:
        return _make_refusal(
            "UnrecognizedClientException", "The security token included in the request is invalid."
        )
    if (given["region"], given["service"]) != (key.region, service):
        return _make_refusal(
            "InvalidSignatureException", f"Credential should be scoped to a valid region: {key.region}."
        )
    names = given["names"].split(";")
    required = {"host", "x-amz-date"} | ({"x-amz-security-token"} if key.token else set[str]())
    if not required <= set(names) or not hmac.compare_digest(
        _signature(request, names, given["scope"], key), given["signature"]
    ):
        return _make_refusal("InvalidSignatureException", _MISMATCH)
    return None


def _make_refusal(error_type: str, message: str) -> ServerRefusal:
    return ServerRefusal("", 403, error_type, None, None, message)


def _signature(request: HttpRequest, signed_headers: list[str], scope: str, key: AwsKey) -> str:
    """Compute the signature of a request. `scope` contains the day, the region and the service."""
    digest = hashlib.sha256(request.body).hexdigest()
    headers = "".join(
        f"{name}:{' '.join(request.headers.get(name, '').split())}\n" for name in signed_headers
    )
    # The request contains the path escaped once, but AWS signs the path escaped twice.
    path = quote(request.path, safe="/-_.~")
    canonical = "\n".join((request.method, path, "", headers, ";".join(signed_headers), digest))
    told = hashlib.sha256(canonical.encode()).hexdigest()
    date = request.headers.get("x-amz-date", "")
    to_sign = "\n".join(("AWS4-HMAC-SHA256", date, scope, told))
    derived = f"AWS4{key.secret_key}".encode()
    for part in scope.split("/"):
        derived = _hmac_of(derived, part)
    return _hmac_of(derived, to_sign).hex()


def _hmac_of(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
