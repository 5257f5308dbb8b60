"""`actors bench`, and what needs this repository besides: its tests and their times.

python -m benchmarks --only T1          the options are those of `actors bench`
"""

import sys
from collections.abc import Sequence

from actors.cli.bench import main as bench
from actors.cli.options import parser
from actors.testing.bench import goals
from actors.testing.bench.figures import Measure
from benchmarks import loop

OWN = {measure.goal: measure for measure in loop.MEASURES}
MEASURES: tuple[Measure, ...] = tuple(OWN.get(measure.goal, measure) for measure in goals.MEASURES)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `actors bench` with these arguments and the repository's measurements."""
    given = sys.argv[1:] if arguments is None else arguments
    return bench(parser().read(["bench", *given]), MEASURES)


if __name__ == "__main__":
    sys.exit(main())
