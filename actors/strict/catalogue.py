"""List the models of a strict server in the format of its API. A server without named models accepts any name."""

from collections.abc import Iterable

from actors.strict.rules.base import Json

_CREATED = 1_767_225_600  # seconds since 1970, fixed
_DAY = "2026-01-01T00:00:00Z"
_ANY = ("model-1",)


def openai_models(models: Iterable[str] | None) -> Json:
    """Return `GET /models` of the Chat Completions family and of Responses."""
    listed = [
        {"id": name, "object": "model", "created": _CREATED, "owned_by": "actors"} for name in models or _ANY
    ]
    return {"object": "list", "data": listed}


def anthropic_models(models: Iterable[str] | None) -> Json:
    """Return `GET /v1/models` of Anthropic."""
    names = list(models or _ANY)
    listed = [{"type": "model", "id": name, "display_name": name, "created_at": _DAY} for name in names]
    return {"data": listed, "has_more": False, "first_id": names[0], "last_id": names[-1]}


def gemini_models(models: Iterable[str] | None) -> Json:
    """Return `GET /v1beta/models` of the Gemini API."""
    methods = ["generateContent", "countTokens"]
    listed = [{"name": f"models/{name}", "supportedGenerationMethods": methods} for name in models or _ANY]
    return {"models": listed}
