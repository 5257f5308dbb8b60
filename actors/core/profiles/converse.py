"""Profiles of the family `converse`: AWS Bedrock, whatever model is behind it."""

from actors.core.caching import Caching
from actors.core.dialect import Dialect
from actors.core.profiles.overflow import OVERFLOW

BEDROCK = Dialect(
    name="bedrock",
    family="converse",
    id_style="bedrock",
    id_pattern=r"[a-zA-Z0-9_.:-]{1,64}",  # BED-08
    id_max_len=64,
    tool_name_pattern=r"[a-zA-Z0-9_-]{1,64}",  # BED-08
    result_carrier="user_block",
    result_error_flag="status",
    result_media=frozenset({"image", "document"}),
    user_media=frozenset({"image", "document"}),
    media_types=frozenset(
        {
            "image/png",
            "image/jpeg",
            "image/gif",
            "image/webp",
            "application/pdf",
            "text/csv",
            "text/html",
            "text/markdown",
            "text/plain",
        }
    ),
    media_urls=False,
    media_bytes=3_750_000 * 4 // 3,  # documented for images; documents may have 4.5 MB
    max_media=20,  # BED-17; some models take more by now, some fewer
    max_documents=5,  # BED-16
    named_documents=True,  # BED-15
    empty_result="(The tool returned nothing.)",  # BED-04
    first_roles=frozenset({"user"}),  # BED-07
    last_roles=frozenset({"user"}),
    alternation="merge_same",  # BED-06
    tools_required=True,  # BED-03
    forced_choice="not_when_thinking",
    required_choice="any",
    max_temperature=1.0,
    thinking_carrier="bedrock_reasoning",
    thinking_followed=True,  # ANT-52, by BED-10
    thinking_switch="anthropic",
    thinking_binding="prefix",  # signatures are those of the model behind it
    # Claude's, from 3.5 Haiku and 3.7 on; requests with marks to a model without a cache are refused.
    caching=Caching(
        marks="point",
        models=r".*anthropic\.claude-(?!v\d|instant|3-haiku|3-opus|3-sonnet|3-5-sonnet).*",
        long="ttl",
    ),
    overflow_patterns=OVERFLOW,
    overflow_rule="BED-12",
)
