"""Form: how every value of a session is described, once.

A form's annotations are its schema. From them follow the object, its bytes (msgpack, fields in order and without
names) and the strict reading of these: no second list of the same names is kept anywhere.

Forms are frozen and refer only to what is frozen and older, so they cannot be in a cycle and the garbage collector
need not visit them (`gc=False`). What is made, is not checked; what is read, is.
"""

from collections.abc import Callable
from inspect import Signature, signature
from typing import Any, Protocol, TypeVar

from msgspec import Struct, StructMeta
from msgspec.structs import replace

__all__ = ["Form", "Public", "kept", "reduce_fields", "replace"]

F = TypeVar("F")


class _FromFields(Protocol):
    def __call__(self, kind: type[F], /, *values: object) -> F: ...


kept: _FromFields = StructMeta.__call__
"""Returns a form made of its fields as they are kept, whatever its constructor takes."""


def reduce_fields(form: Struct) -> tuple[Callable[..., object], tuple[object, ...]]:
    """Return how a form is pickled and copied: by its fields, whatever its constructor takes."""
    return kept, (type(form), *(getattr(form, name) for name in form.__struct_fields__))


class Form(Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A value that is kept, written and read as its annotations say."""

    __reduce__ = reduce_fields


class Public(StructMeta):
    """The type of forms that are made of something else than what is kept: they have a `__new__`, and `init=False`.

    msgspec's classes cannot have one, so it is kept aside and run when the class is called. Reading does without.
    """

    _make: Callable[..., object]

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        init: bool = True,  # for type checkers: there is no constructor that takes the fields
        **options: Any,  # Any: what a class statement holds
    ) -> "Public":
        make = namespace.pop("__new__", None)
        cls: Public = super().__new__(mcls, name, bases, namespace, **options)
        if make is not None:
            cls._make = make
        return cls

    def __call__(cls, *given: Any, **named: Any) -> Any:  # Any: what `__new__` takes
        return cls._make(cls, *given, **named)

    @property
    def __signature__(cls) -> Signature:
        own = signature(cls._make)
        return own.replace(parameters=list(own.parameters.values())[1:], return_annotation=Signature.empty)
