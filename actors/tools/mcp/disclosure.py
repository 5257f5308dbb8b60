"""Remove secrets from URLs and from standard error, before they become part of an error message."""

import os
import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

_NAMES_A_SECRET = re.compile(r"(?i)(token|key|secret|passw|auth|credential|bearer|cookie)")
_LEAST = 4  # minimum length of a secret in characters; hiding shorter values would make the text unreadable
HIDDEN = "***"


def public_url(url: str) -> str:
    """Return a URL without its user, password and query. Path segments that may be secrets are hidden."""
    parts = urlsplit(url)
    path = "/".join(HIDDEN if may_be_secret(segment) else segment for segment in parts.path.split("/"))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{path}"


def may_be_secret(text: str) -> bool:
    """Return True if a string may be a token, a key or a UUID: 8 or more characters, with letters and digits."""
    return len(text) >= 8 and any(map(str.isdigit, text)) and any(map(str.isalpha, text))


def find_secrets(args: Iterable[str], env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values to hide in errors, longest first.

    They are the values of all environment variables, and the arguments that may be secrets.
    """
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
    """Return a string with each of the secrets replaced by `***`."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text
