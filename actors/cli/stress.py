"""`actors stress`: many sessions at once over your own tools and backends, and a report.

Without a target, strict servers of four dialects are started on this machine, whose model calls the tools. A target
elsewhere is asked only if that is said in so many words: a thousand sessions cost money there.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import anyio
from msgspec import to_builtins

from actors.cli.exits import Exit
from actors.cli.logs import show_logs
from actors.cli.screen import Wish, complain, safe, screen
from actors.cli.targets import tools
from actors.testing import StressReport, stress

FIELDS = ("sessions", "turns", "switching", "cancelling", "think", "seconds", "seed")


def main(options: argparse.Namespace) -> Exit:
    """Run the sessions, print the report; 1 if a request was refused, something leaked, or an ask failed.

    Raises:
        ConfigError: A target or a tool cannot be used, or a target is not on this machine.
    """
    if options.target is None and (options.config or options.switch_to):
        complain("--config and --switch-to go with a TARGET; without one the built-in servers are asked")
        return Exit.USAGE
    show_logs(debug=options.debug)
    load: dict[str, Any] = {name: getattr(options, name) for name in FIELDS}  # Any: the fields of a load
    if options.target is not None:
        load["switches"] = (options.target, *options.switch_to) if options.switch_to else ()
    run = partial(
        stress,
        options.target,
        config=options.config,
        tools=tools(options.tools),
        allow_network=options.allow_network,
        gc="tuned",
        **load,
    )
    report = anyio.run(run, backend=options.backend)
    print(json.dumps(to_builtins(report)) if options.json else "\n".join(_lines(report, options.color)))
    return Exit.OK if report.is_sound else Exit.FAILED


def _lines(report: StressReport, color: Wish) -> Iterator[str]:
    style = screen(color=color).styled
    yield style(f"{sum(report.asks.values()):,} asks in {report.seconds:.1f} s", "bold")
    yield from _rows(report.asks)
    yield from _rows({"rounds": report.rounds, "switches": report.switches})
    yield "  ".join(f"{name} {1000 * seconds:,.0f} ms" for name, seconds in report.latency.items())
    if report.failures:
        yield style("failed, by cause", "bold")
        yield from _rows(report.failures)
    yield style("counters of all backends", "bold")
    yield from _rows(report.counters)
    leaks = ", ".join(f"{count} {name}" for name, count in report.leaks.items() if count) or "none"
    yield f"refused for their structure: {report.refusals}; leaks: {leaks}"


def _rows(counts: Mapping[str, int]) -> Iterator[str]:
    yield from (f"  {safe(name).replace('_', ' '):32}{count:>10,}" for name, count in counts.items())
