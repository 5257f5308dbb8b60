"""Find errors in a configuration file that involve several values, such as references to missing names.

`actors.config.load` calls `contradictions` after each value has been validated.
"""

from collections.abc import Iterable

from actors.config.complaints import hint, quote_key, table_header
from actors.config.dialects import check_models_table, custom_dialect, unknown_dialect_message
from actors.config.fields import NAME
from actors.config.providers import PROVIDERS
from actors.config.settings import FileSettings
from actors.core.dialects.dialect import ChatDialect
from actors.core.dialects.profiles import ALIASES, PROFILES, dialect


def contradictions(settings: FileSettings) -> Iterable[tuple[tuple[str, ...], str]]:
    """Yield each error as a pair: the keys that lead to the wrong value, and a message with the problem and the fix."""
    tables = (("backends", settings.backends), ("pools", settings.pools), ("dialects", settings.dialects))
    for table, names in tables:
        for name in names:
            if not NAME.fullmatch(name):
                yield (
                    (table, name),
                    f"{quote_key(name)} is not a valid name; use letters, digits, '_', '-' and '.'",
                )
    yield from _dialect_errors(settings)
    yield from _upstream_errors(settings)
    yield from _model_errors(settings)
    for name, pool in settings.pools.items():
        place = ("pools", name, "members")
        if name in settings.backends:
            yield ("pools", name), f"{name!r} is the name of a backend and of a pool; rename the pool"
        for member in pool.members:
            yield from ((place, wrong) for wrong in _unknown_backend_errors(settings, member))
        if len(set(pool.members)) < len(pool.members):
            yield place, "the pool lists a member twice; remove the duplicate"
        for member in pool.weights:
            if member not in pool.members:
                wrong = f"{quote_key(member)} is not a member of the pool; {hint(member, pool.members, 'members')}"
                yield ("pools", name, "weights"), wrong
    if (writer := settings.compaction.summarizer) is not None:
        yield from (
            (("compaction", "summarizer"), wrong) for wrong in _unknown_backend_errors(settings, writer)
        )


def _unknown_backend_errors(settings: FileSettings, name: str) -> Iterable[str]:
    """Yield an error if `name` is neither a configured backend nor `provider:model`."""
    if name not in settings.backends and name.partition(":")[0] not in PROVIDERS:
        yield f"no backend {quote_key(name)}; {hint(name, settings.backends, 'backends')}"


def _dialect_errors(settings: FileSettings) -> Iterable[tuple[tuple[str, ...], str]]:
    for name, table in settings.dialects.items():
        try:
            custom_dialect(name, table)
        except ValueError as error:
            yield ("dialects", name), f"{table_header('dialects', name)} {error}"
    known = {*settings.dialects, *PROFILES, *ALIASES}
    for name, backend in settings.backends.items():
        if backend.dialect is not None and backend.dialect not in known:
            wrong = f"{table_header('backends', name)} dialect: {unknown_dialect_message(backend.dialect)}"
            yield ("backends", name, "dialect"), wrong


def _model_errors(settings: FileSettings) -> Iterable[tuple[tuple[str, ...], str]]:
    """Yield an error for each `[models]` table whose name, provider or field is invalid."""
    for name, table in settings.models.items():
        try:
            check_models_table(name, table, {*settings.backends, *PROVIDERS})
        except ValueError as error:
            yield ("models", name), f"[models.{quote_key(name)}] {error}"


def _upstream_errors(settings: FileSettings) -> Iterable[tuple[tuple[str, ...], str]]:
    """Yield an error for each backend that sets `upstream` although its dialect cannot select an upstream.

    All dialects must exist, so call `_dialect_errors` first.
    """
    for name, backend in settings.backends.items():
        if backend.upstream is None:
            continue
        provider = PROVIDERS[backend.kind]
        speaks = backend.dialect or provider.dialect_at(backend.base_url or provider.endpoint)
        table = settings.dialects.get(speaks)
        profile = dialect(speaks) if table is None else custom_dialect(speaks, table)
        if not isinstance(profile, ChatDialect) or profile.request.upstream_pin == "none":
            owner = table_header("backends", name)
            problem = f"{owner} upstream: dialect {profile.name!r} cannot select an upstream; omit upstream"
            yield ("backends", name, "upstream"), problem
