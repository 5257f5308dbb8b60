"""Run the soak and print its figures; exit with 1 if anything is wrong.

python -m tests.commands.soak --sessions 2000 --minutes 5 --backend both
"""

import argparse
import sys
from collections.abc import Iterator

from tests.commands.soak.load import Soak, Soaked, run
from tests.transport.crowd import has_descriptors


def rows(soaked: Soaked) -> Iterator[tuple[str, str]]:
    """Yield the figures of a soak, each with its name."""
    report, loop, (before, after) = soaked.report, soaked.loop, soaked.held
    asks = ", ".join(f"{count:,} {status}" for status, count in sorted(report.asks.items()))
    failed = ", ".join(f"{count} {cause}" for cause, count in sorted(report.failures.items())) or "none"
    faults = ", ".join(f"{count:,} {kind}" for kind, count in sorted(soaked.faults.items())) or "none"
    yield "asks", asks
    yield "rounds", f"{report.rounds:,} in {report.seconds:.0f} s"
    yield "switches", f"{report.switches:,}"
    yield "requests", f"{sum(each.requests for each in soaked.counts):,}"
    yield "requests refused", f"{sum(sum(each.refusals.values()) for each in soaked.counts)}"
    yield "faults injected, by kind", faults
    yield "asks that failed, by cause", failed
    yield "turns, p50 and p99", f"{report.latency['p50']:.2f} s, {report.latency['p99']:.2f} s"
    delays = ", ".join(f"{1000 * loop.delay(share):.1f} ms" for share in (0.5, 0.99, 1.0))
    yield "scheduling delay, p50, p99, most", delays
    memory = [loop.memory[0], max(loop.memory), loop.memory[-1]]
    yield "memory before, at most, after", ", ".join(f"{each / 2**20:.0f} MiB" for each in memory)
    for name in before.__struct_fields__:
        yield f"{name} before and after", f"{getattr(before, name)}, {getattr(after, name)}"
    yield (
        "connections at most, afterwards",
        (f"{soaked.most:,}, {sum(each.left for each in soaked.counts)}"),
    )


def main() -> int:
    """Run the soak on the requested backends."""
    parser = argparse.ArgumentParser(prog="python -m tests.commands.soak", description="Soak the runtime.")
    usual = Soak()
    parser.add_argument("--sessions", type=int, default=usual.sessions, help="at once")
    parser.add_argument("--minutes", type=float, default=usual.seconds / 60, help="during which asks start")
    parser.add_argument("--think", type=float, default=usual.think, help="seconds between two asks")
    parser.add_argument("--faults", type=float, default=usual.faults, help="share of requests that fail")
    parser.add_argument("--seed", type=int, default=usual.seed)
    parser.add_argument("--backend", choices=["asyncio", "trio", "both"], default="both")
    given = parser.parse_args()
    soak = Soak(given.sessions, given.minutes * 60, given.think, given.faults, seed=given.seed)
    if not has_descriptors(soak.sessions):
        sys.stderr.write(f"{soak.sessions} sessions need {2 * soak.sessions + 100} descriptors: ulimit -Hn\n")
        return 2
    wrong = 0
    for backend in ("asyncio", "trio") if given.backend == "both" else (given.backend,):
        soaked = run(soak, backend)
        wrong += len(soaked.problems)
        sys.stdout.write(f"{backend}\n")
        sys.stdout.writelines(f"  {name:<34}{figure}\n" for name, figure in rows(soaked))
        sys.stdout.writelines(f"  WRONG: {problem}\n" for problem in soaked.problems)
        sys.stdout.flush()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
