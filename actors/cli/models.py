"""`actors models`: list the targets of a configuration, or the built-in providers if it has none. Nothing is sent."""

import argparse
import os
from collections.abc import Iterator

from actors.cli.arguments import add_config_option
from actors.cli.exits import Exit
from actors.cli.parser import Parser
from actors.cli.screen import align_columns, escape_controls
from actors.config import Config, load
from actors.config.providers import PROVIDERS
from actors.core.settings.spending import combine_prices
from actors.core.values.identity import Binding
from actors.errors import ActorsError
from actors.provider.pricing import Pricing

EXAMPLES = (
    ("actors models", "list the providers, and whether their keys are set"),
    ("actors models --config actors.toml", "list your backends and pools, with context windows and prices"),
)


def add_arguments(parser: Parser) -> None:
    add_config_option(parser)


def run(options: argparse.Namespace) -> Exit:
    """Print a line for each target of the configuration, or for each provider if there is no target.

    Raises:
        ConfigError: The configuration cannot be used.
    """
    config = load(options.config, os.environ)
    for line in align_columns([*(_target_rows(config) if config.targets else _provider_rows(config))]):
        print(escape_controls(line))
    return Exit.OK


def _target_rows(config: Config) -> Iterator[tuple[str, ...]]:
    pricing = Pricing(config, combine_prices({}, config.settings.prices))
    for name, settings in config.settings.backends.items():
        try:
            backend = config.backend(name)
        except ActorsError as error:
            yield name, settings.dialect or settings.kind, settings.model, str(error), ""
        else:
            yield (
                name,
                backend.dialect,
                backend.model,
                backend.endpoint,
                _window_and_prices(pricing, backend.binding),
            )
    for name, pool in config.settings.pools.items():
        yield name, "pool", pool.policy, ", ".join(pool.members), ""


def _window_and_prices(pricing: Pricing, binding: Binding) -> str:
    """Return a backend's context window and prices as text. Unknown figures are omitted."""
    window, rates = pricing.known_window(binding), pricing.rates(binding)
    size = [] if window is None else [f"{window:,} tokens"]
    price = [] if rates is None else [f"{rates.input:g} in, {rates.output:g} out per million"]
    return "; ".join(size + price)


def _provider_rows(config: Config) -> Iterator[tuple[str, ...]]:
    for kind, provider in PROVIDERS.items():
        key, url = provider.key_variable, provider.endpoint or f"at {provider.url_variable}"
        state = "needs no key" if not key else f"{key} is {'set' if config.environ.get(key) else 'not set'}"
        there = config.environ.get(provider.url_variable, "").strip() or provider.endpoint
        yield f"{kind}:MODEL", provider.dialect_at(there), url, state, ""
