"""What a runtime is given: each argument is what it must be, or is refused where the runtime is made."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from actors.core.compaction import Compaction
from actors.errors import ConfigError


class _Kind(NamedTuple):
    """What an argument may be, beside None: of a type, or anything that has these members."""

    words: str
    types: tuple[type, ...] = ()
    members: tuple[str, ...] = ()

    def takes(self, given: object) -> bool:
        """Say whether it may be this."""
        has_all = bool(self.members) and all(hasattr(given, each) for each in self.members)
        return isinstance(given, self.types) or has_all


_KINDS: Mapping[str, _Kind] = {
    "config": _Kind("the path of an actors.toml, a Config", (str, Path), ("settings", "limits")),
    "environ": _Kind("a mapping of names to texts", (Mapping,)),
    "journal": _Kind(
        "the path of a file, a postgresql:// address, a Storage",
        (str, Path),
        ("open", "close", "claim", "append", "read", "level"),
    ),
    "transport": _Kind("a Transport", (), ("send", "close")),
    "seed": _Kind("a whole number", (int,)),
    "on_tool_error": _Kind("a function", (), ("__call__",)),
    "on_refusal": _Kind("a function, the path of a directory", (str, Path), ("__call__",)),
    "compaction": _Kind("a Compaction", (Compaction,)),
    "budgets": _Kind("a mapping of tenants.NAME and pools.NAME to Allowances", (Mapping,)),
}


def check_given(**arguments: object) -> None:
    """Check what a runtime is made with.

    Raises:
        ConfigError: One is no such thing.
    """
    for name, given in arguments.items():
        if given is not None and not _KINDS[name].takes(given):
            # not the value: an address may hold a password, an environment keys
            raise ConfigError(f"{name}= takes {_KINDS[name].words}, or None, not {type(given).__name__}")
