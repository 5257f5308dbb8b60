"""Measure eight other libraries and this package in the same passes.

python -m benchmarks.peers                     render, turns over HTTP, import, size, memory
python -m benchmarks.peers --peers litellm,strands --only B2
The other options are those of `python -m benchmarks`. The first run installs missing libraries, which takes minutes.
"""

import argparse
import sys
from collections.abc import Sequence

from benchmarks import command
from benchmarks.peers.pins import LIBRARIES
from benchmarks.peers.process import run_libraries

GOALS = "A1,A3,B2,B3,B4,B5,D1,D2,E1"
"""The goals for which other libraries can be measured."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks together with the other libraries, and return the exit code."""
    names = [pinned.name for pinned in LIBRARIES]
    own = argparse.ArgumentParser(
        "python -m benchmarks.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    own.add_argument(
        "--peers", default=",".join(names), metavar="NAMES", help=f"comma-separated: {', '.join(names)}"
    )
    given, rest = own.parse_known_args(sys.argv[1:] if arguments is None else arguments)
    wanted = [name.strip() for name in given.peers.split(",")]
    if unknown := sorted(set(wanted) - set(names)):
        print(
            f"no library {', '.join(map(repr, unknown))}; the libraries are {', '.join(names)}",
            file=sys.stderr,
        )
        return 2
    if {"-h", "--help"} & set(rest):
        print(own.format_help())
    options = command.parser("python -m benchmarks.peers").parse_args(rest)
    if options.only is None:
        options.only = GOALS
    with run_libraries([pinned for pinned in LIBRARIES if pinned.name in wanted]) as libraries:
        return command.main(options, libraries=libraries)


if __name__ == "__main__":
    sys.exit(main())
