"""Find errors of a configuration file that no single value shows: duplicate names and references to missing names.

`actors.config.load` uses this module after all values have been validated.
"""

from collections.abc import Iterable

from actors.config.complaints import header, hint, quote_key
from actors.config.dialects import custom_dialect, no_dialect
from actors.config.fields import NAME
from actors.config.models import check_models_table
from actors.config.providers import PROVIDERS
from actors.config.settings import FileSettings
from actors.core.dialects.dialect import ChatDialect
from actors.core.dialects.profiles import ALIASES, PROFILES, dialect


def contradictions(settings: FileSettings) -> Iterable[tuple[tuple[str, ...], str]]:
    """Yield the place of each error, and a message with the problem and the fix."""
    tables = (("backends", settings.backends), ("pools", settings.pools), ("dialects", settings.dialects))
    for table, names in tables:
        for name in names:
            if not NAME.fullmatch(name):
                yield (
                    (table, name),
                    f"{quote_key(name)} is not a valid name; use letters, digits, '_', '-' and '.'",
                )
    yield from _wrong_dialects(settings)
    yield from _wrong_upstreams(settings)
    yield from _wrong_models(settings)
    for name, pool in settings.pools.items():
        place = ("pools", name, "members")
        if name in settings.backends:
            yield ("pools", name), f"{name!r} is the name of a backend too; rename the pool"
        for member in pool.members:
            yield from ((place, wrong) for wrong in _no_backend(settings, member))
        if len(set(pool.members)) < len(pool.members):
            yield place, "a member is named twice"
        for member in pool.weights:
            if member not in pool.members:
                wrong = f"{quote_key(member)} is no member; {hint(member, pool.members, 'there are')}"
                yield ("pools", name, "weights"), wrong
    if (writer := settings.compaction.summarizer) is not None:
        yield from ((("compaction", "summarizer"), wrong) for wrong in _no_backend(settings, writer))


def _no_backend(settings: FileSettings, name: str) -> Iterable[str]:
    if name not in settings.backends and name.partition(":")[0] not in PROVIDERS:
        yield f"no backend {quote_key(name)}; {hint(name, settings.backends, 'there are')}"


def _wrong_dialects(settings: FileSettings) -> Iterable[tuple[tuple[str, ...], str]]:
    for name, table in settings.dialects.items():
        try:
            custom_dialect(name, table)
        except ValueError as error:
            yield ("dialects", name), f"{header('dialects', name)} {error}"
    known = {*settings.dialects, *PROFILES, *ALIASES}
    for name, backend in settings.backends.items():
        if backend.dialect is not None and backend.dialect not in known:
            wrong = f"{header('backends', name)} dialect: {no_dialect(backend.dialect)}"
            yield ("backends", name, "dialect"), wrong


def _wrong_models(settings: FileSettings) -> Iterable[tuple[tuple[str, ...], str]]:
    """Yield errors in the names, fields and providers of `[models]` tables."""
    for name, table in settings.models.items():
        try:
            check_models_table(name, table, {*settings.backends, *PROVIDERS})
        except ValueError as error:
            yield ("models", name), f"[models.{quote_key(name)}] {error}"


def _wrong_upstreams(settings: FileSettings) -> Iterable[tuple[tuple[str, ...], str]]:
    """Yield backends whose `upstream` cannot be sent in their dialect. The dialects are known to exist."""
    for name, backend in settings.backends.items():
        if backend.upstream is None:
            continue
        provider = PROVIDERS[backend.kind]
        speaks = backend.dialect or provider.dialect_at(backend.base_url or provider.endpoint)
        table = settings.dialects.get(speaks)
        profile = dialect(speaks) if table is None else custom_dialect(speaks, table)
        if not isinstance(profile, ChatDialect) or profile.request.upstream_pin == "none":
            problem = (
                f"{header('backends', name)} upstream: dialect {profile.name!r} cannot name one; leave it out"
            )
            yield ("backends", name, "upstream"), problem
