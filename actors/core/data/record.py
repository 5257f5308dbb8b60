"""Define `StoredRecord`, the base class of all values that are stored in logs.

The annotations of a subclass define its fields, its encoding (msgpack, with the fields in order and without names) and
its strict decoding. So field names are listed only once.

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


# type checkers do not know that `StructMeta` is the metaclass of every `kind`
from_fields: _FromFields = StructMeta.__call__  # pyright: ignore[reportAssignmentType]
"""Create an instance of a class from its stored fields, without running the class's own constructor."""


def reduce_fields(self: Struct) -> tuple[Callable[..., object], tuple[object, ...]]:
    """Implement `__reduce__` with the stored fields, so that unpickling does not run the class's own constructor."""
    return from_fields, (type(self), *(getattr(self, name) for name in self.__struct_fields__))


class StoredRecord(Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """The base class of frozen values that are encoded and decoded as their annotations define."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return reduce_fields(self)


class ConstructorMeta(StructMeta):
    """The metaclass of values whose constructor takes arguments other than the stored fields.

    msgspec classes cannot define `__new__`. So this metaclass takes `__new__` out of the class and calls it whenever an
    instance is created. The class must pass `init=False`. Decoding does not run `__new__`.
    """

    _make: Callable[..., object]

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        init: bool = True,  # declared so that type checkers expect no constructor with the fields
        **options: Any,  # Any: passed on unchanged, and each keyword has its own type
    ) -> "ConstructorMeta":
        make = namespace.pop("__new__", None)
        cls: ConstructorMeta = super().__new__(mcls, name, bases, namespace, **options)
        if make is not None:
            cls._make = make
        return cls

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:  # Any: `__new__` of each class declares the types
        return cls._make(cls, *args, **kwargs)

    @property
    def __signature__(cls) -> Signature:
        own = signature(cls._make)
        return own.replace(parameters=list(own.parameters.values())[1:], return_annotation=Signature.empty)
