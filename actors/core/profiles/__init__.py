"""The profiles that come with the project, by name. One module a wire family; a vendor is a few lines of data."""

from difflib import get_close_matches

from actors.core.dialect import Dialect
from actors.core.profiles.anthropic import ANTHROPIC
from actors.core.profiles.converse import BEDROCK
from actors.core.profiles.gemini import GEMINI, GEMINI_2, VERTEX
from actors.core.profiles.openai_chat import OPENAI_CHAT
from actors.core.profiles.responses import OPENAI_RESPONSES
from actors.core.profiles.vendors import VENDORS
from actors.errors import UnknownTarget

__all__ = [
    "ALIASES",
    "ANTHROPIC",
    "BEDROCK",
    "GEMINI",
    "GEMINI_2",
    "OPENAI_CHAT",
    "OPENAI_RESPONSES",
    "PROFILES",
    "VERTEX",
    "dialect",
]

_ALL = (
    OPENAI_CHAT,
    ANTHROPIC,
    OPENAI_RESPONSES,
    GEMINI,
    VERTEX,
    GEMINI_2,
    BEDROCK,
    *VENDORS,
)
PROFILES: dict[str, Dialect] = {profile.name: profile for profile in _ALL}
ALIASES = {
    "openai": "openai_chat",
    "responses": "openai_responses",
    "vertex_gemini": "vertex",
    "converse": "bedrock",
}


def dialect(name: str) -> Dialect:
    """Return the profile of this name; `openai` stands for `openai_chat`.

    Raises:
        UnknownTarget: There is no such profile.
    """
    found = PROFILES.get(ALIASES.get(name, name))
    if found is not None:
        return found
    close = get_close_matches(name, [*PROFILES, *ALIASES], n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(PROFILES)}"
    raise UnknownTarget(f"No dialect {name!r}; {hint}")
