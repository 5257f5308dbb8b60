"""Define bindings and canonical call ids.

A *binding* combines the backend, dialect, endpoint, account label and model that serve a turn, without any secret. A
switch replaces the complete binding. A message's *origin* is the binding that produced the message, and the dialect's
rules decide which bindings may read the message's provider state.

The session assigns canonical call ids in place of the provider's ids, because several backends start over with the same
ids in every response, and some leave the ids empty.
"""

import re
from functools import lru_cache
from typing import NewType

from actors.core.data.record import StoredRecord

_MINTED = re.compile(r"hist_tool_([0-9]{1,18})").fullmatch

CallId = NewType("CallId", str)
"""A canonical call id, unique within a session: `hist_tool_<n>`, where n counts from 1."""


class Binding(StoredRecord, frozen=True):
    """The backend, account and model that serve a turn, as one value without a secret.

    Args:
        backend: Name of the configured backend, or of the provider.
        dialect: Name of the backend's dialect; `transcripts.dialect` accepts it.
        endpoint: Base URL, without credentials.
        account: Label of the account, never its key.
        model: Model name, in the provider's spelling.
        upstream: The provider behind a gateway to which requests are pinned; empty without a pin. Without a pin, only
            the gateway's answer names the provider, so only the `origin` of a `ProviderState` contains it.
    """

    backend: str
    dialect: str
    endpoint: str = ""
    account: str = ""
    model: str = ""
    upstream: str = ""

    def __str__(self) -> str:
        """Return `backend:model`, followed by `via` and the upstream if there is one."""
        name = f"{self.backend}:{self.model}" if self.model else self.backend
        return f"{name} via {self.upstream}" if self.upstream else name


RUNTIME = Binding("runtime", "runtime")
"""The origin of messages that the runtime adds to a history, such as a late result."""


_SEPARATOR = "\0"


def imported_call_id(wire_id: str, tool: str) -> str:
    """Return a temporary call id for an imported result: the result's wire id joined with its tool name.

    The tool name is empty if the transcript does not contain it.
    """
    return f"{wire_id}{_SEPARATOR}{tool.replace(_SEPARATOR, ' ')}"


def split_imported_id(imported_id: str) -> tuple[CallId, str]:
    """Return the wire id and the tool name that `imported_call_id` joined."""
    wire_id, _, tool = imported_id.rpartition(_SEPARATOR)
    return CallId(wire_id), tool


# The cache saves memory: all sessions use the low numbers, and each session stores an id several times.
@lru_cache(maxsize=1024)
def mint(number: int) -> CallId:
    """Return the canonical id of a session's call: `mint(1) == "hist_tool_1"`."""
    return CallId(f"hist_tool_{number}")


def number_of(call_id: CallId) -> int:
    """Return the number in a canonical call id, or 0 for any other id."""
    match = _MINTED(call_id)
    return int(match[1]) if match else 0


def content_digest(content: str | bytes) -> str:
    """Return the SHA-256 of the content as 64 hexadecimal digits. Strings may contain lone surrogates."""
    from hashlib import sha256  # imported lazily, because `hashlib` loads OpenSSL

    raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    return sha256(raw).hexdigest()
