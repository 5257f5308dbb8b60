"""Copy the signature of an async method to its blocking variant."""

from collections.abc import Callable
from inspect import signature


def copy_documentation(
    call: Callable[..., object], method: Callable[..., object], result: str | None = None
) -> None:
    """Copy the name and signature of an async method to its blocking variant, with a docstring that refers to it.

    Args:
        call: The blocking variant.
        method: The async method.
        result: The return annotation of the blocking variant; by default, the annotation of the method.
    """
    about = signature(method)
    call.__dict__["__signature__"] = about if result is None else about.replace(return_annotation=result)
    call.__name__, call.__qualname__ = method.__name__, method.__qualname__
    call.__doc__ = f"Call `actors.{method.__qualname__}`, wait, and return the result. See that method."
