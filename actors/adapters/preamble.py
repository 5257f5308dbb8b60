"""The preamble of a request: its settings as a table of the wire's keys, written up to where the messages begin."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from actors.adapters.request import Settings, ToolSpec
from actors.core.data.jsonio import dump, quote
from actors.core.settings.values import Choose

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


def chosen(settings: Settings) -> Literal["none", "required"] | ToolSpec | None:
    """Return the tool choice, the one tool that is forced as it is declared; None where it goes without saying."""
    choice = settings.tool_choice
    if choice == "auto" or not settings.tools:
        return None
    if isinstance(choice, Choose):
        return next(tool for tool in settings.tools if tool.name == choice.tool)
    return choice


def system(settings: Settings) -> str | None:
    """Return the system prompt, None for a blank one."""
    return settings.system if settings.system and settings.system.strip() else None
