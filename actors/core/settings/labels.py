"""Validate the title and the metadata of a session, and encode them for searches in lists of sessions.

`Runtime.open` and the journal's storages use this module.

In:  the arguments of `open` and `list`.
Out: values for the first event of a log, and the text that a storage keeps for each session and searches.

A storage only compares text: a folded title must contain the searched words, and the metadata text must contain the
searched entries. Each entry stands between line breaks, which JSON escapes inside an entry, so a search matches
complete entries only. Every storage therefore finds the same sessions, whatever its own rules for letters, numbers and
wildcards are.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any, TypeAlias
from unicodedata import category

from actors.core.data.jsonio import INT_MAX, INT_MIN
from actors.errors import ConfigError

Scalar: TypeAlias = str | int | float | bool
"""A metadata value."""
Metadata: TypeAlias = tuple[tuple[str, Scalar], ...]
"""Metadata as pairs of key and value, in the order in which the application passed them."""

TITLE, KEYS, KEY, TEXT = 200, 16, 64, 512
"""The maximum length of a title, number of metadata keys, length of a key and length of a value; lengths are in
characters.
"""


def checked_title(title: object) -> str:
    """Return the title if it is valid.

    Raises:
        ConfigError: The title is not a string, is too long, or contains control characters.
    """
    if not isinstance(title, str) or len(title) > TITLE or not _is_single_line(title):
        raise ConfigError(
            f"title= must be a string of at most {TITLE} characters without control characters, "
            f"but {_mismatch(title, TITLE) or 'the title contains control characters'}"
        )
    return str(title)


def checked_metadata(metadata: Any) -> Metadata:  # Any: the caller's argument is not validated yet
    """Convert a caller's metadata to pairs; None becomes an empty tuple.

    Raises:
        ConfigError: The metadata is not a mapping of short names to plain values. The error message contains the key
            but no value.
    """
    if metadata is None:
        return ()
    given: Mapping[str, object] = metadata
    if not isinstance(metadata, Mapping):
        raise ConfigError(f"metadata= must be a mapping of names to values, not {type(metadata).__name__}")
    if len(given) > KEYS:
        raise ConfigError(f"metadata= must have at most {KEYS} keys, not {len(given)}")
    return tuple((_checked_key(key), _checked_value(key, value)) for key, value in given.items())


def _checked_key(key: object) -> str:
    if not isinstance(key, str) or not 0 < len(key) <= KEY or not _is_single_line(key):
        raise ConfigError(
            f"metadata= must have keys of 1 to {KEY} characters without control characters, not {key!a:.80}"
        )
    return str(key)


def _checked_value(key: str, value: object) -> Scalar:
    match value:
        case bool():
            return value
        case int() if INT_MIN <= value <= INT_MAX:
            return int(value)
        case float() if isfinite(value):
            return float(value)
        case str() if len(value) <= TEXT and not any(map(_is_surrogate, value)):
            return str(value)
        case _:
            pass
    is_number = isinstance(value, int | float)
    fault = (
        "the number is out of range" if is_number else _mismatch(value, TEXT) or "the value cannot be stored"
    )
    raise ConfigError(
        f"metadata[{key!r}] must be a string of at most {TEXT} characters, a bool, a finite float or a 64-bit int, "
        f"but {fault}"
    )


def _mismatch(value: object, max_length: int) -> str:
    """Return a clause about a wrong type or an excessive length, for an error message; empty if both are valid."""
    if not isinstance(value, str):
        return f"its type is {type(value).__name__}"
    return f"it has {len(value)} characters" if len(value) > max_length else ""


def _is_single_line(text: str) -> bool:
    return not any(category(character) == "Cc" or _is_surrogate(character) for character in text)


def _is_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


class FrozenMetadata(Mapping[str, Scalar]):
    """Metadata as an immutable mapping. Unlike `MappingProxyType`, it can be copied and pickled."""

    __slots__ = ("_values",)

    def __init__(self, metadata: Metadata = ()) -> None:
        self._values = dict(metadata)

    def __getitem__(self, key: str) -> Scalar:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)


NO_METADATA: Mapping[str, Scalar] = FrozenMetadata()


def read_only_metadata(metadata: Metadata) -> Mapping[str, Scalar]:
    """Convert metadata pairs to an immutable mapping. All sessions without metadata share one empty mapping."""
    return FrozenMetadata(metadata) if metadata else NO_METADATA


def fold_title(title: str) -> str:
    """Return a title in the form that case-insensitive searches compare."""
    return title.casefold()


def metadata_text(metadata: Metadata) -> str:
    """Encode metadata as storages keep it: a JSON object with each entry between line breaks; empty for no metadata."""
    return f"{{{','.join(metadata_entries(metadata))}}}" if metadata else ""


def metadata_entries(metadata: Metadata) -> tuple[str, ...]:
    """Encode each entry separately. The `metadata_text` of a session contains the text of each of its entries."""
    return tuple(f"\n{_literal(key)}:{_literal(value)}\n" for key, value in metadata)


def _literal(value: Scalar) -> str:
    return json.dumps(value, ensure_ascii=False)


def metadata_of(text: str) -> dict[str, Scalar]:
    """Parse metadata text, as `metadata_text` encodes it, to a dictionary."""
    return dict(json.loads(text)) if text else {}


def contains_all(text: str, substrings: Iterable[str]) -> bool:
    """Return True if `text` contains every string in `substrings`."""
    return all(substring in text for substring in substrings)
