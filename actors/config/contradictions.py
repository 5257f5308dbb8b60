"""What no single value of a file shows: names that clash, and what is named and does not exist."""

from collections.abc import Iterable

from actors.config.complaints import header, hint, named
from actors.config.dialects import derived, no_dialect
from actors.config.fields import NAME
from actors.config.models import check_models_table
from actors.config.providers import PROVIDERS
from actors.config.settings import FileSettings
from actors.core.dialects.dialect import ChatDialect
from actors.core.dialects.profiles import ALIASES, PROFILES, dialect


def contradictions(settings: FileSettings) -> Iterable[tuple[tuple[str, ...], str]]:
    """Yield where it is, and what is wrong with it and the way out."""
    tables = (("backends", settings.backends), ("pools", settings.pools), ("dialects", settings.dialects))
    for table, names in tables:
        for name in names:
            if not NAME.fullmatch(name):
                yield (table, name), f"{named(name)} is not a name; use letters, digits, '_', '-' and '.'"
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
                wrong = f"{named(member)} is no member; {hint(member, pool.members, 'there are')}"
                yield ("pools", name, "weights"), wrong
    if (writer := settings.compaction.summarizer) is not None:
        yield from ((("compaction", "summarizer"), wrong) for wrong in _no_backend(settings, writer))


def _no_backend(settings: FileSettings, name: str) -> Iterable[str]:
    if name not in settings.backends and name.partition(":")[0] not in PROVIDERS:
        yield f"no backend {named(name)}; {hint(name, settings.backends, 'there are')}"


def _wrong_dialects(settings: FileSettings) -> Iterable[tuple[tuple[str, ...], str]]:
    for name, table in settings.dialects.items():
        try:
            derived(name, table)
        except ValueError as error:
            yield ("dialects", name), f"{header('dialects', name)} {error}"
    known = {*settings.dialects, *PROFILES, *ALIASES}
    for name, backend in settings.backends.items():
        if backend.dialect is not None and backend.dialect not in known:
            wrong = f"{header('backends', name)} dialect: {no_dialect(backend.dialect)}"
            yield ("backends", name, "dialect"), wrong


def _wrong_models(settings: FileSettings) -> Iterable[tuple[tuple[str, ...], str]]:
    """Yield `[models]` tables with a name or a field that is wrong, or with a provider that does not exist."""
    for name, table in settings.models.items():
        try:
            check_models_table(name, table, {*settings.backends, *PROVIDERS})
        except ValueError as error:
            yield ("models", name), f"[models.{named(name)}] {error}"


def _wrong_upstreams(settings: FileSettings) -> Iterable[tuple[tuple[str, ...], str]]:
    """Yield where an upstream is named and no request could say so. The dialects are known to be there."""
    for name, backend in settings.backends.items():
        if backend.upstream is None:
            continue
        provider = PROVIDERS[backend.kind]
        speaks = backend.dialect or provider.dialect_at(backend.base_url or provider.endpoint)
        table = settings.dialects.get(speaks)
        profile = dialect(speaks) if table is None else derived(speaks, table)
        if not isinstance(profile, ChatDialect) or profile.request.upstream_pin == "none":
            problem = (
                f"{header('backends', name)} upstream: dialect {profile.name!r} cannot name one; leave it out"
            )
            yield ("backends", name, "upstream"), problem
