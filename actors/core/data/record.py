"""Define `StoredRecord`, the base of all values that are stored: annotations are the schema.

The annotations of a subclass define its fields, its bytes (msgpack, fields in order and without names) and their
strict decoding, so field names are listed only once.

Instances are frozen and refer only to older frozen values. They cannot form reference cycles, so the garbage collector
does not track them (`gc=False`). Constructors do not check types; decoding does.
"""

from collections.abc import Callable
from inspect import Signature, signature
from typing import Any, Protocol, TypeVar

from msgspec import Struct, StructMeta
from msgspec.structs import replace

__all__ = ["ConstructorMeta", "StoredRecord", "from_fields", "reduce_fields", "replace"]

F = TypeVar("F")


class _FromFields(Protocol):
    def __call__(self, kind: type[F], /, *values: object) -> F: ...


# `StructMeta` is the metaclass of each `kind`, which type checkers do not know
from_fields: _FromFields = StructMeta.__call__  # pyright: ignore[reportAssignmentType]
"""Return an instance with these stored fields, without running the class's own constructor."""


def reduce_fields(self: Struct) -> tuple[Callable[..., object], tuple[object, ...]]:
    """Implement `__reduce__` over the stored fields, without running the class's own constructor."""
    return from_fields, (type(self), *(getattr(self, name) for name in self.__struct_fields__))


class StoredRecord(Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A frozen value, stored and decoded as its annotations define."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return reduce_fields(self)


class ConstructorMeta(StructMeta):
    """Metaclass for values with a constructor that takes other arguments than the stored fields.

    msgspec classes cannot define `__new__`, so the metaclass removes it from the namespace and runs it on each call of
    the class. The class must pass `init=False`. Decoding does not run `__new__`.
    """

    _make: Callable[..., object]

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        init: bool = True,  # for type checkers: no constructor takes the fields
        **options: Any,  # Any: the keywords of a class statement
    ) -> "ConstructorMeta":
        make = namespace.pop("__new__", None)
        cls: ConstructorMeta = super().__new__(mcls, name, bases, namespace, **options)
        if make is not None:
            cls._make = make
        return cls

    def __call__(cls, *given: Any, **named: Any) -> Any:  # Any: the arguments of `__new__`
        return cls._make(cls, *given, **named)

    @property
    def __signature__(cls) -> Signature:
        own = signature(cls._make)
        return own.replace(parameters=list(own.parameters.values())[1:], return_annotation=Signature.empty)
