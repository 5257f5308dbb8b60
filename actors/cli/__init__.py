"""The command line: `actors demo`, `run`, `chat`, `models`, `doctor`, `explain`, `lint` and the others.

Standard output is the answer, standard error everything else. An error is one line with the way out; `--debug`
shows the traceback. What a command needs is imported when it is run, so that `--help` answers at once; and hardly
anything is imported before `main` can catch an interrupt.
"""

import os
import sys
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run a command line, that of the process by default, and return the exit code.

    Raises:
        SystemExit: The command line is wrong (2), or asks for help (0).
    """
    try:
        _open_streams()
        return _ran(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt as interrupt:
        return _failed(interrupt)
    finally:
        _abandon_what_cannot_be_written()
        if argv is None:
            _end_at_the_next_interrupt()


def _end_at_the_next_interrupt() -> None:
    """Let a further interrupt end the process without a word: there is nothing left to do but to leave."""
    import signal
    import threading

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _open_streams() -> None:
    """Make the standard streams usable, whatever the process was started with."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:  # its descriptor was closed: nothing comes in, and nobody reads what goes out
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  lives as long as the process
        elif name != "stdin" and (reconfigure := getattr(stream, "reconfigure", None)):
            reconfigure(errors="backslashreplace")


def _ran(argv: "Sequence[str]") -> int:
    from importlib.util import find_spec

    from actors.cli.options import parser
    from actors.cli.screen import complain

    options = parser().read(argv or ["--help"])
    if getattr(options, "backend", "") == "trio" and find_spec("trio") is None:
        complain("trio is not installed; pip install 'llm-actors[trio]', or leave --backend out")
        return 3
    code = 0
    try:
        code = import_module(f"actors.cli.{options.module}").main(options)
        sys.stdout.flush()
    except BaseException as error:
        if _is_read_no_more(error):
            return 0
        if code:  # how it ended is known, whoever can be shown the rest of it
            return int(code)
        if options.debug or isinstance(error, SystemExit | GeneratorExit):
            raise
        return _failed(error)
    return int(code)


def _is_read_no_more(error: BaseException) -> bool:
    """Say whether all that is wrong is that the reader of our output has seen enough."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_read_no_more, error.exceptions))
    return isinstance(error, BrokenPipeError)


def _abandon_what_cannot_be_written() -> None:
    """Let it go nowhere: the interpreter would fail at exit, with a code of its own (120)."""
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except (OSError, ValueError):
            _abandon(name)


def _abandon(name: str) -> None:
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), getattr(sys, name).fileno())
    except (OSError, ValueError):  # it has no descriptor, so the interpreter has none to flush
        setattr(sys, name, None)  # as the interpreter itself has it for a closed one


def _failed(error: BaseException) -> int:
    """Say in one line what ended the command, and return its exit code."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, KeyboardInterrupt):
        _end_at_the_next_interrupt()
    from actors.cli.exits import Exit, of_error
    from actors.cli.screen import complain
    from actors.errors import ActorsError

    if isinstance(error, KeyboardInterrupt):
        complain("interrupted")
        return Exit.INTERRUPTED

    if not isinstance(error, ActorsError | OSError):
        complain(f"unexpected {type(error).__name__}: {error}; --debug shows where")
    else:
        complain(_words(error))
    return of_error(error)


def _words(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"Cannot use {error.filename}: {error.strerror.lower()}" if error.filename else error.strerror
    return str(error)
