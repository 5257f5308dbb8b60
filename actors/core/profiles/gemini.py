"""Profiles of the family `gemini`: Google's generateContent, by the Gemini API and by Vertex AI."""

from actors.core.dialect import Dialect
from actors.core.profiles.overflow import OVERFLOW

GEMINI = Dialect(
    name="gemini",
    family="gemini",
    id_style="none",  # pairing is by position and name; ids go back only to who gave them
    id_pattern=r"[a-zA-Z0-9_.:-]{1,64}",
    id_max_len=64,
    tool_name_pattern=r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}",  # GEM-17; 64 is the safe choice, newer models take 128
    result_carrier="user_block",
    result_error_flag="response_error",
    result_media=frozenset({"image"}),
    user_media=frozenset({"image", "document"}),
    media_types=frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf"}),
    max_media=3600,  # documented for images
    media_urls=False,  # only addresses of files that were uploaded there are sure to be taken
    first_roles=frozenset({"user"}),
    last_roles=frozenset({"user"}),
    alternation="merge_same",
    absent_content="omit",
    schema_subset="gemini",
    thinking_carrier="thought_signature",
    thinking_binding="model",  # GEM-05
    thinking_first=False,
    thinking_required="before_calls",  # GEM-04
    thinking_placeholder="skip_thought_signature_validator",
    thinking_switch="gemini",
    models_path="/v1beta/models",
    overflow_patterns=OVERFLOW,
    overflow_rule="GEM-12",
)
"""The Gemini API, models of generation 3."""

VERTEX = GEMINI.derive(
    name="vertex",
    native_id_passthrough=False,  # GEM-09: it gives ids and refuses them
    max_media=900,  # documented for images of the first models of generation 3; others take 3,000
    models_path="/models",  # the endpoint ends in /projects/.../locations/.../publishers/google
)
"""Vertex AI, models of generation 3."""

GEMINI_2 = GEMINI.derive(
    name="gemini_2",
    result_media=frozenset(),
    thinking_required="no",
    thinking_placeholder="",
    thinking_switch="gemini_budget",
)
"""The Gemini API, models before generation 3: signatures are welcome, none is demanded."""
