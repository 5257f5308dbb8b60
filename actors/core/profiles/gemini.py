"""Profiles of the family `gemini`: Google's generateContent, by the Gemini API and by Vertex AI."""

from dataclasses import replace

from actors.core.concerns import Ids
from actors.core.dialect import GeminiDialect, GeminiMedia, GeminiReasoning, GeminiRequest, GeminiTurns

GEMINI = GeminiDialect(
    name="gemini",
    ids=Ids(
        style="none",  # pairing is by position and name; ids go back only to who gave them
        pattern=r"[a-zA-Z0-9_.:-]{1,64}",
        max_len=64,
        tool_name_pattern=r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}",  # GEM-17; 64 is the safe choice, newer models take 128
    ),
    turns=GeminiTurns(),
    media=GeminiMedia(max_count=3600),  # documented for images
    reasoning=GeminiReasoning(
        binding="model",  # GEM-05
        first=False,
        required="before_calls",  # GEM-04
        placeholder="skip_thought_signature_validator",
        switch="gemini",
    ),
    request=GeminiRequest(models_path="/v1beta/models", overflow_rule="GEM-12"),
)
"""The Gemini API, models of generation 3."""

VERTEX = replace(
    GEMINI,
    name="vertex",
    ids=replace(GEMINI.ids, native_passthrough=False),  # GEM-09: it gives ids and refuses them
    media=GeminiMedia(
        max_count=900
    ),  # documented for images of the first models of generation 3; others take 3,000
    # the endpoint ends in /projects/.../locations/.../publishers/google
    request=replace(GEMINI.request, models_path="/models"),
)
"""Vertex AI, models of generation 3."""

GEMINI_2 = replace(
    GEMINI,
    name="gemini_2",
    media=replace(GEMINI.media, result_kinds=frozenset()),
    reasoning=GeminiReasoning(binding="model", first=False, switch="gemini_budget"),
)
"""The Gemini API, models before generation 3: signatures are welcome, none is demanded."""
