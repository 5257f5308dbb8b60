"""List the models of a strict server in the format of its API.

A server whose settings list no models accepts any model name, and returns one example.
"""

from collections.abc import Iterable

from actors.strict.rules.base import Json

_CREATED = 1_767_225_600  # seconds since 1970; constant, so that answers do not depend on the clock
_DAY = "2026-01-01T00:00:00Z"
_ANY = ("model-1",)


def openai_models(models: Iterable[str] | None) -> Json:
    """Return the answer to `GET /models` in the format of the Chat Completions family and of Responses."""
    listed = [
        {"id": name, "object": "model", "created": _CREATED, "owned_by": "actors"} for name in models or _ANY
    ]
    return {"object": "list", "data": listed}


def anthropic_models(models: Iterable[str] | None) -> Json:
    """Return the answer to `GET /v1/models` in Anthropic's format."""
    names = list(models or _ANY)
    listed = [{"type": "model", "id": name, "display_name": name, "created_at": _DAY} for name in names]
    return {"data": listed, "has_more": False, "first_id": names[0], "last_id": names[-1]}


def gemini_models(models: Iterable[str] | None) -> Json:
    """Return the answer to `GET /v1beta/models` in the Gemini API's format."""
    methods = ["generateContent", "countTokens"]
    listed = [{"name": f"models/{name}", "supportedGenerationMethods": methods} for name in models or _ANY]
    return {"models": listed}
