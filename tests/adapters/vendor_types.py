"""Check JSON values against the request types of vendors' SDKs.

The SDKs describe requests as typed dicts. pydantic validates these leniently: it does not check the items of an
`Iterable`, and it accepts unknown keys and the response models in the unions. This module checks every item, and
rejects unknown keys and response models.
"""

import types
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from typing_extensions import TypeAliasType, is_typeddict

_LISTS = (list, Iterable, Sequence)
_UNWRAPPED = (Required, NotRequired, Annotated)


def nonconformity(value: Any, declared: Any, path: str = "body") -> str | None:  # Any: JSON, and any type
    """Return where and how `value` departs from the declared type, or None."""
    if isinstance(declared, TypeAliasType):
        return nonconformity(value, declared.__value__, path)
    origin = get_origin(declared)
    if isinstance(origin, TypeAliasType):
        return nonconformity(value, origin.__value__[get_args(declared)], path)
    if origin in _UNWRAPPED:
        return nonconformity(value, get_args(declared)[0], path)
    if is_typeddict(declared):
        return _dict(value, declared, path)
    if origin in (Union, types.UnionType):
        found = [nonconformity(value, arm, path) for arm in get_args(declared)]
        return None if None in found else " | ".join(str(why) for why in found)[:2000]
    if origin is Literal:
        return None if value in get_args(declared) else f"{path}: {value!r} is none of {get_args(declared)}"
    if origin in _LISTS:
        return _list(value, get_args(declared)[0], path)
    if origin in (dict, Mapping) or declared is dict:
        return None if isinstance(value, dict) else f"{path}: not an object"
    return _scalar(value, declared, path)


def _scalar(value: Any, declared: Any, path: str) -> str | None:  # Any: JSON, and any type
    if declared in (object, Any):
        return None
    if declared is float and isinstance(value, int) and not isinstance(value, bool):
        return None
    right = isinstance(declared, type) and isinstance(value, declared)
    if right and not (declared is int and isinstance(value, bool)):
        return None
    return f"{path}: {value!r} is no {declared}"[:500]


def _list(value: Any, item: Any, path: str) -> str | None:  # Any: JSON, and any type
    if not isinstance(value, list):
        return f"{path}: not a list"
    found = (nonconformity(element, item, f"{path}[{at}]") for at, element in enumerate(value))
    return next((why for why in found if why is not None), None)


@lru_cache
def _fields(declared: Any) -> tuple[dict[str, Any], frozenset[str]]:  # Any: any type
    """Return a typed dict's fields, and which of them it requires."""
    hints = get_type_hints(declared, include_extras=True)
    marked = {name for name, hint in hints.items() if get_origin(hint) is Required}
    left_out = {name for name, hint in hints.items() if get_origin(hint) is NotRequired}
    return hints, frozenset(marked | (declared.__required_keys__ - left_out))


def _dict(value: Any, declared: Any, path: str) -> str | None:  # Any: JSON, and any type
    if not isinstance(value, dict):
        return f"{path}: not an object"
    hints, required = _fields(declared)
    if missing := sorted(required - value.keys()):
        return f"{path}: lacks {missing}"
    if unknown := sorted(value.keys() - hints.keys()):
        return f"{path}: has unknown {unknown}"
    found = (nonconformity(item, hints[name], f"{path}.{name}") for name, item in value.items())
    return next((why for why in found if why is not None), None)
