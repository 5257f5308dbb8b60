"""Check the title and the metadata that a host gives a session, and write them as lists of sessions search them.

In:  what a host passes to `open` and to `list`.
Out: values of the first event of a log, and the text that a directory keeps and compares.

A directory compares text only: a folded title that contains the words, and entries of metadata that stand between
line breaks. JSON escapes line breaks, so an entry is found where it is one, and nowhere else. Every storage finds the
same sessions so, whatever its rules for letters, numbers and wildcards are.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import TypeAlias
from unicodedata import category

from actors.core.data.jsonio import INT_MAX, INT_MIN
from actors.errors import ConfigError

Scalar: TypeAlias = str | int | float | bool
"""A value of metadata."""
Metadata: TypeAlias = tuple[tuple[str, Scalar], ...]
"""The keys and values of metadata, in the host's order."""

TITLE, KEYS, KEY, TEXT = 200, 16, 64, 512
"""Characters of a title; keys of metadata; characters of a key, and of a value."""


def checked_title(title: object) -> str:
    """Return a title. Raises `ConfigError` if it is no string, too long, or has control characters."""
    if not isinstance(title, str) or len(title) > TITLE or not _is_line(title):
        raise ConfigError(
            f"title= takes a string of at most {TITLE} characters without control characters; "
            f"{_size(title) or 'this one has some'}"
        )
    return str(title)


def checked_metadata(metadata: object) -> Metadata:
    """Return metadata; none for None.

    Raises:
        ConfigError: It is no mapping of short names to plain values. The message names the key, and repeats no value.
    """
    if metadata is None:
        return ()
    if not isinstance(metadata, Mapping):
        raise ConfigError(f"metadata= takes a mapping of names to values, not {type(metadata).__name__}")
    if len(metadata) > KEYS:
        raise ConfigError(f"metadata= takes at most {KEYS} keys, not {len(metadata)}")
    return tuple((_checked_key(key), _checked_value(key, value)) for key, value in metadata.items())


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
    raise ConfigError(
        f"metadata[{key!r}] takes a string of at most {TEXT} characters, a bool, a finite float or an int of 64 bits; "
        f"{_size(value) or 'this one cannot be kept'}"
    )


def _size(given: object) -> str:
    """Return the part of a message that says what is too long, or of which type it is."""
    if not isinstance(given, str):
        return f"this one is {type(given).__name__}"
    return f"this one has {len(given)}" if len(given) > TITLE else ""


def _is_line(text: str) -> bool:
    return not any(category(letter) == "Cc" or _is_surrogate(letter) for letter in text)


def _is_surrogate(letter: str) -> bool:
    return "\ud800" <= letter <= "\udfff"


class FrozenMetadata(Mapping[str, Scalar]):
    """Metadata as a mapping that cannot be changed. Unlike a `MappingProxyType`, it can be copied and pickled."""

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


def frozen(metadata: Metadata) -> Mapping[str, Scalar]:
    """Return metadata as a mapping that cannot be changed."""
    return FrozenMetadata(metadata) if metadata else NO_METADATA


def folded(title: str) -> str:
    """Return a title as words are looked for in it, whatever their case."""
    return title.casefold()


def metadata_text(metadata: Metadata) -> str:
    """Return metadata as a directory keeps it: a JSON object with each entry between line breaks; empty for none."""
    return f"{{{','.join(metadata_entries(metadata))}}}" if metadata else ""


def metadata_entries(metadata: Metadata) -> tuple[str, ...]:
    """Return the parts of `metadata_text` that are there if it has these keys with these values."""
    return tuple(f"\n{_literal(key)}:{_literal(value)}\n" for key, value in metadata)


def _literal(value: Scalar) -> str:
    return json.dumps(value, ensure_ascii=False)


def metadata_of(text: str) -> dict[str, Scalar]:
    """Return the metadata of a text that `metadata_text` made."""
    return dict(json.loads(text)) if text else {}


def has_all(text: str, parts: Iterable[str]) -> bool:
    """Return True if a text contains all of these parts."""
    return all(part in text for part in parts)
