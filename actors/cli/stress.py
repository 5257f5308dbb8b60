"""`actors stress`: run many concurrent sessions with your tools and backends, and report failures and leaks.

Without a target, strict servers of four dialects run on this machine, and their models call the tools. Targets on other
machines need `--allow-network`, because a thousand sessions may cost money.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import anyio
from msgspec import to_builtins

from actors.cli.arguments import (
    add_backend_option,
    add_config_option,
    add_tools_option,
    count,
    probability,
    seconds,
)
from actors.cli.exits import Exit
from actors.cli.parser import Parser
from actors.cli.screen import ColorOption, escape_controls, screen
from actors.cli.targets import load_tools
from actors.testing import StressReport, stress

EXAMPLES = (
    ("actors stress --sessions 200 --turns 5", "use strict servers on this machine"),
    ("actors stress mine --config actors.toml --tools app.tools:all", "use your own backends and tools"),
)
_FIELDS = ("sessions", "turns", "switching", "cancelling", "think", "seconds", "seed")


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "target",
        nargs="?",
        metavar="TARGET",
        help="as for `run -m`; by default, strict servers on this machine",
    )
    add_config_option(parser)
    add_tools_option(parser)
    parser.add_argument(
        "--sessions", type=count, default=100, metavar="N", help="number of sessions; 100 by default"
    )
    parser.add_argument(
        "--turns", type=count, default=10, metavar="N", help="asks per session; 10 by default"
    )
    parser.add_argument(
        "--switch-to",
        action="append",
        default=[],
        metavar="TARGET",
        help="a target to switch to; may be repeated",
    )
    for name, default, event in (
        ("switching", 0.2, "switching a session before an ask"),
        ("cancelling", 0.02, "cancelling an ask"),
    ):
        parser.add_argument(
            f"--{name}",
            type=probability,
            default=default,
            metavar="PROBABILITY",
            help=f"probability of {event}; {default} by default",
        )
    parser.add_argument(
        "--think", type=seconds, default=0.0, metavar="SECONDS", help="average pause between asks"
    )
    parser.add_argument("--seconds", type=seconds, metavar="SECONDS", help="start no ask after this time")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the random choices")
    parser.add_argument(
        "--allow-network", action="store_true", help="allow targets on other machines, which may cost money"
    )
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")
    add_backend_option(parser)


def run(options: argparse.Namespace) -> Exit:
    """Run the sessions and print the report.

    The exit code is 1 if an ask failed, a request was refused or something leaked.

    Raises:
        ConfigError: A target or a tool cannot be used, or a target is on another machine.
    """
    if options.target is None and (options.config or options.switch_to):
        options.parser.error("--config and --switch-to need a TARGET")
    load: dict[str, Any] = {
        name: getattr(options, name) for name in _FIELDS
    }  # Any: each option has its own type
    if options.target is not None:
        load["switches"] = (options.target, *options.switch_to) if options.switch_to else ()
    start = partial(
        stress,
        options.target,
        config=options.config,
        tools=load_tools(options.tools),
        allow_network=options.allow_network,
        gc="tuned",
        **load,
    )
    report = anyio.run(start, backend=options.backend)
    print(
        json.dumps(to_builtins(report)) if options.json else "\n".join(_report_lines(report, options.color))
    )
    return Exit.OK if report.is_sound else Exit.FAILED


def _report_lines(report: StressReport, color: ColorOption) -> Iterator[str]:
    style = screen(color=color).style
    yield style(f"{sum(report.asks.values()):,} asks in {report.seconds:.1f} s", "bold")
    yield from _count_lines(report.asks)
    yield from _count_lines({"rounds": report.rounds, "switches": report.switches})
    yield "  ".join(f"{name} {1000 * seconds:,.0f} ms" for name, seconds in report.latency.items())
    if report.failures:
        yield style("failures by cause", "bold")
        yield from _count_lines(report.failures)
    yield style("counters of all backends", "bold")
    yield from _count_lines(report.counters)
    leaks = ", ".join(f"{count} {name}" for name, count in report.leaks.items() if count) or "none"
    yield f"requests refused for their structure: {report.refusals}; leaks: {leaks}"


def _count_lines(counts: Mapping[str, int]) -> Iterator[str]:
    yield from (
        f"  {escape_controls(name).replace('_', ' '):32}{count:>10,}" for name, count in counts.items()
    )
