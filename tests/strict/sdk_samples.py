"""Samples of the typed dictionaries with which the vendors' SDKs describe a request.

`least` makes the smallest value of a type, `variants` one value for each key and each arm of a union. The SDK itself
validates every sample, so a test that sends samples cannot misread the vendor's API.
"""

import types
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

import pydantic
from typing_extensions import is_typeddict

Sample = Any  # any JSON value
_WRAPPERS = (Required, NotRequired, Annotated)
_PLAIN: Mapping[type, Sample] = {str: "x", int: 1024, float: 1.0, bool: True, bytes: "AAAA", object: {}}


def origin_of(kind: Sample) -> Sample:
    """Return the generic origin of a type, or None. The declared type of `get_origin` is too narrow."""
    return get_origin(kind)


def arms(kind: Sample) -> Iterator[Sample]:
    """Yield the arms of a union, or the type itself."""
    while origin_of(kind) in _WRAPPERS or hasattr(kind, "__value__"):  # the value of a type alias
        kind = kind.__value__ if hasattr(kind, "__value__") else get_args(kind)[0]
    if origin_of(kind) in (Union, types.UnionType):
        for arm in get_args(kind):
            yield from arms(arm)
    elif not (isinstance(kind, type) and kind is not str and issubclass(kind, str)):
        yield kind  # not a word that the SDK itself does not recognise


def dictionaries(kind: Sample) -> list[type]:
    """Return the typed dictionaries of a union, or of the items of a list of them."""
    found = [arm for arm in arms(kind) if is_typeddict(arm)]
    items = [get_args(arm)[0] for arm in arms(kind) if origin_of(arm) is not None and get_args(arm)]
    return found or [arm for item in items for arm in arms(item) if is_typeddict(arm)]


@cache
def fields(kind: type) -> dict[str, Sample]:
    """Return the keys of a typed dictionary with their types."""
    return get_type_hints(kind, include_extras=True)


@cache
def required_keys(kind: type) -> tuple[str, ...]:
    """Return the keys that a typed dictionary must have. Its own list is wrong where annotations are strings."""
    stated: Iterable[str] = kind.__required_keys__  # type: ignore[attr-defined]  # typed dictionaries have it
    wrapped = {name: origin_of(inner) for name, inner in fields(kind).items()}
    return tuple(
        name
        for name, origin in wrapped.items()
        if origin is Required or (name in stated and origin is not NotRequired)
    )


def tags(kind: type, key: str = "type") -> tuple[str, ...]:
    """Return the values of the key that discriminates the arms of a union."""
    return tuple(
        word
        for arm in arms(fields(kind).get(key, type(None)))
        if origin_of(arm) is Literal
        for word in get_args(arm)
    )


def least(kind: Sample, words: Mapping[str, Sample] = types.MappingProxyType({}), key: str = "") -> Sample:
    """Return the smallest value of a type. `words` has values for keys that follow a pattern."""
    kind = next(arms(kind))
    if is_typeddict(kind):
        return {name: least(fields(kind)[name], words, name) for name in required_keys(kind)}
    if origin_of(kind) is Literal:
        return get_args(kind)[0]
    if kind in _PLAIN and key in words:
        return words[key]
    if (origin := origin_of(kind)) is not None:
        return {} if issubclass(origin, Mapping) else [least(get_args(kind)[0], words, key)]
    return None if kind is type(None) or kind not in _PLAIN else _PLAIN[kind]


def variants(kind: type, words: Mapping[str, Sample] = types.MappingProxyType({})) -> Iterator[Sample]:
    """Yield the smallest value of a typed dictionary, and for each key one value of each arm of its type."""
    smallest = least(kind, words)
    yield smallest
    for key, inner in fields(kind).items():
        for arm in arms(inner):
            items = list(arms(get_args(arm)[0])) if _is_list(arm) else [None]
            for item in items:
                value = least(arm, words, key) if item is None else [least(item, words, key)]
                yield {**smallest, key: value}


def _is_list(kind: Sample) -> bool:
    origin = origin_of(kind)
    return origin not in (None, Literal) and not issubclass(origin, Mapping)


@cache
def _adapter(kind: type) -> pydantic.TypeAdapter[Sample]:
    return pydantic.TypeAdapter(kind)


def assert_valid(kind: type, sample: Sample) -> None:
    """Fail if the SDK's type rejects a sample."""
    _consume(_adapter(kind).validate_python(sample), sample)


def _consume(value: Sample, sample: Sample) -> None:
    """Read lazy iterators to their end: pydantic judges the items of a list only then.

    Where a type takes a list or an object, pydantic makes an iterator of either. It has seen the object by then.
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            _consume(inner, sample[key])
    elif isinstance(sample, list):
        for inner, item in zip(value, sample, strict=True):
            _consume(inner, item)
