"""What to try when a server of one's own gave no answer: most often its base URL is a little wrong."""

from urllib.parse import urlsplit

from actors.adapters.adapter import adapter
from actors.adapters.request import Settings
from actors.core.identity import Binding
from actors.core.profiles import PROFILES, dialect
from actors.core.progress import Attempt
from actors.core.segments import Segments

_NO_SUCH_PLACE = (404, 405, 501)
_ELSEWHERE = range(300, 400)
_UNREADABLE = ("without its end marker", "not JSON", "no message")


def advice(attempt: Attempt) -> str:
    """Return what may be said behind the reason of a failed attempt: the URL that was tried and a likely fix.

    Empty where the failure has nothing to do with the address, or the dialect is one of the operator's own.
    """
    if attempt.binding.dialect not in PROFILES or not (fix := _fix(attempt)):
        return ""
    url = tried(attempt.binding)
    return f"; {fix}" if url in attempt.why else f"; tried POST {url}; {fix}"


def tried(binding: Binding) -> str:
    """Return the URL that a request of this binding goes to."""
    request = adapter(dialect(binding.dialect)).request(Segments(), Settings(model=binding.model))
    return binding.endpoint.rstrip("/") + request.path


def _fix(attempt: Attempt) -> str:
    binding, why = attempt.binding, attempt.why
    status = attempt.cause.status if attempt.cause else None
    if status in _NO_SUCH_PLACE or (status is None and any(sign in why for sign in _UNREADABLE)):
        return _other_path(binding)
    if status in _ELSEWHERE:
        return "it redirects, and a redirect is not followed: give the address it redirects to"
    if status is not None:
        return ""
    host = urlsplit(binding.endpoint).netloc
    if "WRONG_VERSION_NUMBER" in why or "record layer failure" in why:
        return f"the server speaks plain HTTP: try http://{host}"
    if "name" in why.lower() and ("not known" in why or "resolution" in why or "resolve" in why):
        return f"no such host: is {host} spelt right?"
    return f"is the server running at {host}?" if "connect" in why.lower() else ""


def _other_path(binding: Binding) -> str:
    """Return which base URL was probably meant."""
    base, path = binding.endpoint.rstrip("/"), urlsplit(tried(binding)).path
    request = path.removeprefix(urlsplit(base).path)
    if base.endswith(request):
        return f"the base URL goes without {request}: try {base.removesuffix(request)}"
    if request.startswith("/v1/") and base.endswith("/v1"):
        return f"the base URL goes without /v1: try {base.removesuffix('/v1')}"
    if not request.startswith("/v1") and not urlsplit(base).path:
        return f"most such servers want a base URL that ends in /v1: try {base}/v1"
    return f"is this the base URL of a server that speaks {binding.dialect}?"
