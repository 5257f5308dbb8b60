"""A failure without the credentials of its request: some servers repeat what they were sent.

In:  a classified failure, and the headers whose values are secret.
Out: the same failure; in the provider's words a mark stands for each of the values.
"""

from msgspec.structs import replace

from actors.adapters.failure import Failure
from actors.provider.credentials import Headers

SECRET = 6
"""Fewest characters of a value that is removed."""


def without_secrets(failure: Failure, headers: Headers) -> Failure:
    """Return a failure without the values of headers that were sent."""
    message = failure.message
    for _, value in headers:
        for secret in (value, value.removeprefix("Bearer ")):
            if len(secret) >= SECRET:
                message = message.replace(secret, "[removed]")
    return failure if message == failure.message else replace(failure, message=message)
