"""Who made a message, and what its tool calls are called.

A *binding* is what a switch moves, as one value: backend, dialect, endpoint, account label and model. It
holds no secret. A message's *origin* is the binding that produced it; the dialect's rules say which
binding may open the provider state the message carries.

Canonical call ids are minted by the session, whatever the provider called the call: several backends
restart their ids with every response, and some leave them empty.
"""

import re
from functools import lru_cache
from typing import NewType

from actors.core.data.form import Form

_MINTED = re.compile(r"hist_tool_([0-9]{1,18})").fullmatch

CallId = NewType("CallId", str)
"""A canonical call id, unique within a session: `hist_tool_<n>`, n counting from 1."""


class Binding(Form, frozen=True):
    """What serves a turn: one value, moved as a whole, without a secret.

    Args:
        backend: Name of the configured backend, or of the provider.
        dialect: Name of the dialect it speaks, as `transcripts.dialect` takes it.
        endpoint: Base URL, without credentials.
        account: Label of the account, never its key.
        model: Model name, as the provider spells it.
        upstream: Who serves it behind a gateway: the one that requests are pinned to. Without a pin only an answer says
            who it was, so only the origin of a seal has it.
    """

    backend: str
    dialect: str
    endpoint: str = ""
    account: str = ""
    model: str = ""
    upstream: str = ""

    def __str__(self) -> str:
        """Return `backend:model`, as a person would say it, and the upstream where there is one."""
        name = f"{self.backend}:{self.model}" if self.model else self.backend
        return f"{name} via {self.upstream}" if self.upstream else name


RUNTIME = Binding("runtime", "runtime")
"""The origin of what the runtime itself adds to a history, such as a late result."""


_MARK = "\0"


def result_key(key: str, tool: str) -> str:
    """Return the call id of a result being imported: the id that it gives, and the name of its tool if it gives one."""
    return f"{key}{_MARK}{tool.replace(_MARK, ' ')}"


def split_key(key: str) -> tuple[CallId, str]:
    """Return the id and the name that `result_key` joined."""
    own, _, tool = key.rpartition(_MARK)
    return CallId(own), tool


@lru_cache(maxsize=1024)  # every session has the first of them, and keeps each in several places
def mint(number: int) -> CallId:
    """Return the canonical id of a session's call, counted from 1."""
    return CallId(f"hist_tool_{number}")


def number_of(call_id: CallId) -> int:
    """Return which number an id was minted with; 0 if it was not."""
    match = _MINTED(call_id)
    return int(match[1]) if match else 0


def content_name(content: str | bytes) -> str:
    """Return what names a content: its SHA-256, as 64 hexadecimal digits. A text may hold lone surrogates."""
    from hashlib import sha256  # it brings OpenSSL along

    raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    return sha256(raw).hexdigest()
