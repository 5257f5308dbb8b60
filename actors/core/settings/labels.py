"""Validate the title and the metadata of a session, and encode them for searches in lists of sessions.

`Runtime.open` and the journal storages use this module.

In:  the arguments of `open` and `list`.
Out: values for the first event of a log, and the text that a directory stores and compares.

A directory compares text only: a folded title that contains the words, and metadata entries between line breaks. JSON
escapes line breaks, so a search matches complete entries only. As a result, every storage finds the same sessions,
independent of its rules for letters, numbers and wildcards.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any, TypeAlias
from unicodedata import category

from actors.core.data.jsonio import INT_MAX, INT_MIN
from actors.errors import ConfigError

Scalar: TypeAlias = str | int | float | bool
"""A value of metadata."""
Metadata: TypeAlias = tuple[tuple[str, Scalar], ...]
"""The keys and values of metadata, in the host's order."""

TITLE, KEYS, KEY, TEXT = 200, 16, 64, 512
"""The maximum length of a title, number of metadata keys, and lengths of a key and a value. Lengths in characters."""


def checked_title(title: object) -> str:
    """Return a title. Raises `ConfigError` if it is no string, too long, or has control characters."""
    if not isinstance(title, str) or len(title) > TITLE or not _is_line(title):
        raise ConfigError(
            f"title= takes a string of at most {TITLE} characters without control characters; "
            f"{_size(title) or 'this one has some'}"
        )
    return str(title)


def checked_metadata(metadata: Any) -> Metadata:  # Any: what a caller passes
    """Return metadata; none for None.

    Raises:
        ConfigError: It is no mapping of short names to plain values. The message names the key, and repeats no value.
    """
    if metadata is None:
        return ()
    given: Mapping[str, object] = metadata
    if not isinstance(metadata, Mapping):
        raise ConfigError(f"metadata= takes a mapping of names to values, not {type(metadata).__name__}")
    if len(given) > KEYS:
        raise ConfigError(f"metadata= takes at most {KEYS} keys, not {len(given)}")
    return tuple((_checked_key(key), _checked_value(key, value)) for key, value in given.items())


def _checked_key(key: object) -> str:
    if not isinstance(key, str) or not 0 < len(key) <= KEY or not _is_line(key):
        raise ConfigError(
            f"metadata= takes keys of 1 to {KEY} characters without control characters, not {key!a:.80}"
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
    raise ConfigError(
        f"metadata[{key!r}] takes a string of at most {TEXT} characters, a bool, a finite float or an int of 64 bits; "
        f"{_size(value) or 'this one cannot be kept'}"
    )


def _size(given: object) -> str:
    """Return the part of an error message that names the type or the length of a value."""
    if not isinstance(given, str):
        return f"this one is {type(given).__name__}"
    return f"this one has {len(given)}" if len(given) > TITLE else ""


def _is_line(text: str) -> bool:
    return not any(category(letter) == "Cc" or _is_surrogate(letter) for letter in text)


def _is_surrogate(letter: str) -> bool:
    return "\ud800" <= letter <= "\udfff"


class FrozenMetadata(Mapping[str, Scalar]):
    """Metadata as an immutable mapping. Unlike a `MappingProxyType`, it can be copied and pickled."""

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
    """Return metadata as an immutable mapping."""
    return FrozenMetadata(metadata) if metadata else NO_METADATA


def fold_title(title: str) -> str:
    """Return a title in the form for case-insensitive searches."""
    return title.casefold()


def metadata_text(metadata: Metadata) -> str:
    """Return metadata as a directory stores it: a JSON object with each entry between line breaks; empty for none."""
    return f"{{{','.join(metadata_entries(metadata))}}}" if metadata else ""


def metadata_entries(metadata: Metadata) -> tuple[str, ...]:
    """Return the parts that `metadata_text` contains for these keys and values."""
    return tuple(f"\n{_literal(key)}:{_literal(value)}\n" for key, value in metadata)


def _literal(value: Scalar) -> str:
    return json.dumps(value, ensure_ascii=False)


def metadata_of(text: str) -> dict[str, Scalar]:
    """Parse the output of `metadata_text`."""
    return dict(json.loads(text)) if text else {}


def has_all(text: str, parts: Iterable[str]) -> bool:
    """Return True if a text contains all of these parts."""
    return all(part in text for part in parts)
