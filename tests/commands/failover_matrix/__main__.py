"""The failover matrix: every kind of replication and failure, on both event loops, with several failovers in a row.

python -m tests.commands.failover_matrix
python -m tests.commands.failover_matrix --only lagging silence --backend trio --rounds 20
"""

import argparse
import sys
import traceback
from collections.abc import Collection, Iterator
from functools import partial
from itertools import product
from time import monotonic

import anyio

from tests.commands.failover_matrix.cell import Cell, play
from tests.commands.failover_matrix.site import FAILURES, REPLICATIONS, site
from tests.saying import say


def main() -> int:
    """Play the cells; print the losses of each, and exit with 1 if a cell broke a promise."""
    parser = argparse.ArgumentParser("python -m tests.commands.failover_matrix", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    words = (*REPLICATIONS, *FAILURES)
    parser.add_argument("--only", nargs="+", choices=words, default=words, help="cells of these kinds only")
    parser.add_argument("--backend", choices=("asyncio", "trio", "both"), default="both")
    parser.add_argument("--failovers", type=int, default=2, help="consecutive failovers in each cell")
    parser.add_argument("--rounds", type=int, default=1, help="through all cells")
    options = parser.parse_args()
    backends = ("asyncio", "trio") if options.backend == "both" else (options.backend,)
    cells = list(_cells(options.only))
    say(
        f"{'replication':<13}{'failure':<9}{'backend':<9}{'events':>8}{'asks':>8}{'sessions':>10}  lost, each reported"
    )
    rows = [(*row, options.failovers) for row in [*product(cells, backends)] * options.rounds]
    broken = sum(not _keeps_promises(*row) for row in rows)
    say(f"{len(rows)} cells, {broken} broke a promise")
    return int(bool(broken))


def _cells(only: Collection[str]) -> Iterator[Cell]:
    """Yield the cells of these kinds, with every replication or failure if none is named."""
    for replication, failure in product(REPLICATIONS, FAILURES):
        if _is_selected(replication, REPLICATIONS, only) and _is_selected(failure, FAILURES, only):
            yield Cell(replication, failure)


def _is_selected(kind: str, kinds: Collection[str], only: Collection[str]) -> bool:
    return kind in only or not {*kinds} & {*only}


def _keeps_promises(cell: Cell, backend: str, failovers: int) -> bool:
    """Play a cell; return True if every promise was kept."""
    began, name = monotonic(), f"{cell.replication:<13}{cell.failure:<9}{backend:<9}"
    try:
        with site() as servers:
            found = anyio.run(partial(play, servers, cell, failovers=failovers), backend=backend)
    except Exception:
        say(f"{name} broke a promise", traceback.format_exc())
        return False
    say(f"{name}{found.events:>8}{found.asks:>8}{found.sessions:>10}  in {monotonic() - began:.1f} s")
    return True


if __name__ == "__main__":
    sys.exit(main())
