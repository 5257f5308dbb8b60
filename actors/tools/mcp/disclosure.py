"""Remove secrets from addresses and standard error before errors show them."""

import os
import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

_NAMES_A_SECRET = re.compile(r"(?i)(token|key|secret|passw|auth|credential|bearer|cookie)")
_LEAST = 4  # minimum characters of a secret; redacting shorter values would destroy the text
HIDDEN = "***"


def public_url(url: str) -> str:
    """Return an address without user, password and query, and with path segments that may be secrets hidden."""
    parts = urlsplit(url)
    path = "/".join(HIDDEN if may_be_secret(segment) else segment for segment in parts.path.split("/"))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{path}"


def may_be_secret(text: str) -> bool:
    """Return True for letters and digits as long as a token, such as UUIDs and keys."""
    return len(text) >= 8 and any(map(str.isdigit, text)) and any(map(str.isalpha, text))


def secrets_of(args: Iterable[str], env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values to redact: values of variables, and arguments that may be secrets. Longest first."""
    found = set(env.values())
    is_named = False
    for arg in args:
        option, sign, value = arg.partition("=")
        if is_named or (may_be_secret(arg) and not os.path.exists(arg)):
            found.add(arg)
        if sign and _NAMES_A_SECRET.search(option):
            found.add(value)
        is_named = not sign and arg.startswith("-") and _NAMES_A_SECRET.search(arg) is not None
    return tuple(sorted((each for each in found if len(each) >= _LEAST), key=len, reverse=True))


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return a text with these values hidden."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text
