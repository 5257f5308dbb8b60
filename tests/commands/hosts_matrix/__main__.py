"""Hosts that are killed, suspended, restarted and added under load, behind clients that know no owners.

    python -m tests.commands.hosts_matrix                   all cases, with a file
    python -m tests.commands.hosts_matrix --postgres        all cases, with a temporary Postgres server
    python -m tests.commands.hosts_matrix --only suspend    one case

Each host is a uvicorn process with an address of its own. The clients send each request to the next host, and to the
one after it if the connection fails, with the same key, as a load balancer does. The program prints a line per case
with the delays that the clients saw, which depend on the other load of the machine. It fails if a request was not
answered, or an ask has not exactly one turn in its log. The case `failover` always uses Postgres, with a synchronous
standby.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial

import anyio

from tests.commands.hosts_matrix.cases import CASES
from tests.commands.hosts_matrix.matrix import Size, run_case, temporary_journal
from tests.saying import say


def main(arguments: Sequence[str]) -> None:
    """Play the selected cases."""
    parser = argparse.ArgumentParser(prog="python -m tests.commands.hosts_matrix")
    parser.add_argument("--only", choices=[*CASES], action="append")
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--sessions", type=int, default=12)
    parser.add_argument(
        "--asks", type=int, default=1000, help="asks of the case `repeat`; `compare` sends four times as many"
    )
    options = parser.parse_args(arguments)
    size = Size(options.hosts, options.sessions, options.asks)
    for name in options.only or CASES:
        standby = CASES[name].needs_standby
        if standby and not (options.postgres or options.only):
            continue
        with temporary_journal(postgres=options.postgres, standby=standby) as journal:
            line = anyio.run(partial(run_case, name, journal, size))
            say(f"{line}; load average {os.getloadavg()[0]:.0f}")


if __name__ == "__main__":
    main(sys.argv[1:])
