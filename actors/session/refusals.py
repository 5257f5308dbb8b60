"""Choose the parameters or attachments to omit from the next request after the provider rejected some.

In:  a classified failure, and the request that failed.
Out: the optional parameters or attachments to omit; none if the request contains none.

The requests of turns and the requests for summaries use this module. All sessions on the same binding share the learned
omissions of parameters.
"""

from collections.abc import Callable, Sequence

from actors.adapters.failure import Failure
from actors.adapters.request import Request, Settings
from actors.core.history.history import History
from actors.core.ledger import Ledger
from actors.core.log.events import OmittedParameter
from actors.core.render import attachment_names_since
from actors.core.turn.steps import MediaRefused
from actors.core.turn.turn import PARAMETER_REFUSALS
from actors.core.values.progress import Cause, RefusalKind, RefusedRequest
from actors.provider.backend import ResolvedBackend
from actors.telemetry import logger


def refused_parameters(
    failure: Failure,
    omitted: Sequence[OmittedParameter],
    refusals: int,
    build: Callable[[tuple[OmittedParameter, ...]], Request],
) -> tuple[OmittedParameter, ...]:
    """Return the rejected parameters to omit from the next request; none if omitting them would not change it.

    Args:
        failure: The failure of the request.
        omitted: The parameters that the request already omits.
        refusals: Number of earlier rejections of this request.
        build: Returns the request with the given omissions.
    """
    parameter = failure.parameter
    if parameter is None or refusals >= PARAMETER_REFUSALS:
        return ()
    known = {omission.name for omission in omitted}
    new = [OmittedParameter(name, parameter.is_value) for name in parameter.settings if name not in known]
    before, after = build(tuple(omitted)), build((*omitted, *new))
    if (before.path, before.body) == (after.path, after.body):
        return ()
    return tuple([omission for omission in new if omission.name in after.omitted])


def record_omissions(
    backend: ResolvedBackend, settings: Settings, omissions: Sequence[OmittedParameter], why: str
) -> RefusedRequest:
    """Record rejected parameters, so that later requests to the backend's binding omit them.

    Return the description of the rejected request for the ask's result.
    """
    backend.facts.learn(omissions, settings, why)
    for omission in omissions:
        logger.parameter_refused(backend.binding, omission.name, is_value=omission.only_value)
    names = tuple([omission.name for omission in omissions])
    kind: RefusalKind = "schema" if all(name.startswith("schema_") for name in names) else "parameter"
    return RefusedRequest(backend.binding, kind, why, names)


def refused_media(
    failure: Failure, cause: Cause, body: bytes, history: History, ledger: Ledger, start: int
) -> MediaRefused | None:
    """Return the attachments that the provider rejected; None if the request contains no attachments.

    Args:
        failure, cause: The failure of the request.
        body: The request's body.
        history, ledger: The inputs from which the request was rendered.
        start: Index of the first message that no answered request contained. If the failure names no attachment, the
            attachments of this message and of later messages may be the cause.
    """
    # Imported lazily, because few requests are rejected.
    from actors.adapters.refused_parts import media_parts, named_media

    parts = media_parts(body)
    if not parts:
        return None
    fresh = attachment_names_since(history, ledger, start)
    named = named_media(f"{failure.place or ''} {failure.message}", parts)
    names = dict.fromkeys(part.name for part in parts)
    others = [name for name in names if name in fresh] or list(names)
    return MediaRefused(failure.message, named, tuple([name for name in others if name not in named]), cause)
