"""Run the benchmarks from the command line. `python -m benchmarks --help` lists the options."""

import sys
from collections.abc import Sequence

from benchmarks import command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks that the arguments (by default those of the process) select, and return the exit code."""
    return command.main(command.parser("python -m benchmarks").parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
