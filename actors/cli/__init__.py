"""Run the command line: `actors demo`, `run`, `chat`, `models`, `doctor`, `explain`, `lint` and other commands.

Results go to standard output, everything else to standard error. An error is printed as one line that names the fix.
`--debug` shows its traceback. Modules are imported inside functions, so that `--help` answers immediately, and because
an interrupt before `main` runs would print a traceback.
"""

import os
import sys

from actors.interrupts import is_group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run a command line, by default the arguments of the process, and return the exit code.

    Raises:
        SystemExit: The command line is wrong (code 2), or asks for help (code 0).
    """
    try:
        _open_streams()
        return _run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt as interrupt:
        return _report_error(interrupt)
    finally:
        _discard_unwritable_output()
        if argv is None:
            _end_at_the_next_interrupt()


def _end_at_the_next_interrupt() -> None:
    """Let later interrupts end the process silently, because the command has ended."""
    import signal
    import threading

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _open_streams() -> None:
    """Replace closed standard streams with the null device.

    Make output streams escape characters that they cannot encode.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:  # the process was started with a closed descriptor
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  open until the process ends
        elif name != "stdin" and (reconfigure := getattr(stream, "reconfigure", None)):
            reconfigure(errors="backslashreplace")


def _run(argv: "Sequence[str]") -> int:
    from importlib.util import find_spec

    from actors.cli.parser import parse, parser_for
    from actors.cli.screen import print_notice

    if "_ARGCOMPLETE" in os.environ:  # set by the shell function of `register-python-argcomplete`
        import argcomplete

        argcomplete.autocomplete(parser_for(os.environ["COMP_LINE"].split()[1:]))
    options = parse(argv or ["--help"])
    if getattr(options, "backend", "") == "trio" and find_spec("trio") is None:
        print_notice("trio is not installed; pip install 'llm-actors[trio]', or omit --backend")
        return 3
    from actors.cli.logs import logging_to_stderr

    code = 0
    try:
        with logging_to_stderr(debug=options.debug):
            code = options.run(options)
        sys.stdout.flush()
    except BaseException as error:
        if _is_broken_pipe(error):
            return 0
        if code:  # the command has ended, and only its last output could not be written
            return int(code)
        if options.debug or isinstance(error, SystemExit | GeneratorExit):
            raise
        return _report_error(error)
    return int(code)


def _is_broken_pipe(error: BaseException) -> bool:
    """Return True if an error only means that the reader of the output has ended."""
    if is_group(error):
        return all(map(_is_broken_pipe, error.exceptions))
    return isinstance(error, BrokenPipeError)


def _discard_unwritable_output() -> None:
    """Discard buffered output that cannot be written. Otherwise the interpreter would fail at exit, with code 120."""
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except (OSError, ValueError):
            _replace_with_null_device(name)


def _replace_with_null_device(stream_name: str) -> None:
    """Replace the standard stream with this name with the null device, because its output cannot be written."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), getattr(sys, stream_name).fileno())
    except (OSError, ValueError):  # without a descriptor, the interpreter has nothing to flush
        setattr(sys, stream_name, None)  # the interpreter also uses None for a closed stream


def _report_error(error: BaseException) -> int:
    """Print a one-line message about the error that ended the command, and return the exit code."""
    while is_group(error):
        error = error.exceptions[0]
    if isinstance(error, KeyboardInterrupt):
        _end_at_the_next_interrupt()
    from actors.cli.exits import Exit, exit_for_error
    from actors.cli.screen import print_notice
    from actors.errors import ActorsError

    if isinstance(error, KeyboardInterrupt):
        print_notice("interrupted")
        return Exit.INTERRUPTED

    if not isinstance(error, ActorsError | OSError):
        print_notice(f"unexpected {type(error).__name__}: {error}; --debug shows the traceback")
    else:
        print_notice(_error_message(error))
    return exit_for_error(error)


def _error_message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"Cannot use {error.filename}: {error.strerror.lower()}" if error.filename else error.strerror
    return str(error)
