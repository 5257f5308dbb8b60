"""The preamble of a request: its settings as a table of the wire's keys, written up to where the messages begin."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from actors.adapters.request import Settings
from actors.core.asking import ToolChoice
from actors.core.jsonio import dump, quote

Wire: TypeAlias = "bytes | str | int | float | Sequence[Wire] | Mapping[str, Wire] | None"
"""A value of a request. Bytes are JSON already."""


class Preamble(NamedTuple):
    """All of a request that its settings decide. What asks a cache to keep the lane stands between its two parts."""

    path: str
    before: bytes
    after: bytes
    headers: tuple[tuple[str, str], ...] = ()
    losses: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


def written(value: Wire) -> bytes:
    """Return a value as JSON without whatever in it says nothing; empty for None, and where nothing is left."""
    if value is None or isinstance(value, bytes):
        return value or b""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, int | float):
        return dump(value)
    if isinstance(value, dict):
        pairs = [b'"%b":%b' % (key.encode(), text) for key, item in value.items() if (text := written(item))]
        return b"{%b}" % b",".join(pairs) if pairs else b""
    items = b",".join(filter(None, map(written, value)))
    return b"[%b]" % items if items else b""


def opened(table: Mapping[str, Wire], messages: str) -> bytes:
    """Return the beginning of a body: the keys of a table, and the messages' up to the first of them."""
    return written({**table, messages: b"["})[:-1]


def chosen(settings: Settings) -> ToolChoice | Literal["answer"] | None:
    """Return the tool choice, None where it goes without saying."""
    return None if settings.tool_choice == "auto" or not settings.tools else settings.tool_choice


def system(settings: Settings) -> str | None:
    """Return the system prompt, None for a blank one."""
    return settings.system if settings.system and settings.system.strip() else None
