"""Profiles of vendors that speak OpenAI Chat Completions, each with what it does differently.

Where sources disagree, the value is the one that every source accepts: a filler costs a few tokens in the rare
conversation that needs it, a refusal costs the turn.
"""

from actors.core.caching import UNASKED, Caching
from actors.core.dialect import Dialect
from actors.core.profiles.openai_chat import OPENAI_CHAT
from actors.core.profiles.overflow import OVERFLOW

OPENAI_COMPATIBLE = OPENAI_CHAT.derive(
    name="openai_compatible",
    max_tokens_field="max_tokens",
    max_media=None,
    max_string=None,
    thinking_switch="none",
    caching=UNASKED,
)
"""A server of which nothing more is known."""

MISTRAL = Dialect(
    name="mistral",
    family="openai_chat",
    rules="MIS",
    id_style="mistral",
    id_pattern=r"[a-zA-Z0-9]{9}",  # MIS-01; only the newest tokenizers are less strict
    id_max_len=9,
    id_unique_scope="message",  # MIS-04
    tool_name_pattern=r"[a-zA-Z0-9_-]{1,64}",  # MIS-14
    arguments="text",
    result_carrier="tool_message",
    result_error_flag="text",
    developer_role=False,
    request_keys=frozenset(
        """frequency_penalty guardrails max_tokens messages metadata model n parallel_tool_calls prediction
        presence_penalty prompt_cache_key prompt_mode random_seed reasoning_effort response_format safe_prompt
        stop stream temperature tool_choice tools top_p""".split()  # noqa: SIM905  as a list it is a page
    ),  # MIS-32
    message_keys=frozenset({"prefix"}),
    system_anywhere=False,  # MIS-12
    empty_calls=True,  # recorded: a client sends them with every answer
    custom_tools=False,
    first_roles=frozenset({"user"}),  # MIS-13, and calls of a first message are not tracked
    alternation="none",
    user_after_tool="filler",  # MIS-21
    absent_content="omit",
    stream_usage=False,  # it comes on the last chunk unasked, and `stream_options` is unknown (MIS-32)
    required_choice="any",
    thinking_carrier="thinking_chunk",
    thinking_binding="model",
    thinking_first=False,
    thinking_alone=False,
    thinking_switch="effort",
    overflow_patterns=OVERFLOW,
    caching=Caching(keyed=True),
    overflow_rule="MIS-33",
)

KIMI = Dialect(
    name="kimi",
    family="openai_chat",
    rules="KIM",
    id_style="kimi",
    id_pattern=r"[a-zA-Z0-9_.:-]{1,128}",  # `functions.read:0`, and `Read:0` of the coding endpoint
    id_max_len=128,
    tool_name_pattern=r"[a-zA-Z][a-zA-Z0-9_-]{0,63}",  # KIM-06
    arguments="text",
    result_carrier="tool_message",
    result_error_flag="text",
    developer_role=False,
    alternation="none",
    empty_answers=False,  # KIM-04
    custom_tools=False,  # KIM-08
    absent_content="omit",  # KIM-05
    max_tools=128,
    forced_choice="no",  # KIM-10
    sampling=False,  # KIM-09
    schema_subset="moonshot",  # KIM-07
    thinking_carrier="reasoning_content",
    thinking_binding="model",
    thinking_first=False,
    thinking_alone=False,  # KIM-04
    thinking_required="with_calls",  # KIM-03
    thinking_placeholder="(No reasoning recorded.)",
    thinking_switch="type",
    overflow_patterns=OVERFLOW,
    caching=Caching(keyed=True),
    overflow_rule="KIM-12",
)

DEEPSEEK = Dialect(
    name="deepseek",
    family="openai_chat",
    rules="DSK",
    id_style="openai",
    id_pattern=r"[A-Za-z0-9_-]{1,64}",
    id_max_len=64,
    id_unique_scope="message",  # answering a call frees its id
    tool_name_pattern=r"[a-zA-Z0-9_-]{1,64}",
    arguments="text",
    result_carrier="tool_message",
    result_error_flag="text",
    developer_role=False,
    user_media=frozenset(),
    custom_tools=False,
    alternation="none",
    max_tools=128,
    forced_choice="not_when_thinking",  # DSK-08
    thinking_carrier="reasoning_content",
    thinking_binding="model",
    thinking_first=False,
    thinking_alone=False,
    thinking_required="with_calls",  # DSK-05
    thinking_placeholder="(No reasoning recorded.)",  # blanks pass there, but not at all who copy it
    thinking_switch="type",
    overflow_patterns=OVERFLOW,
    overflow_rule="DSK-09",
)

OPENROUTER = OPENAI_COMPATIBLE.derive(
    name="openrouter",
    id_style="mistral",  # its upstreams include Mistral's (MIS-01); every other takes such ids too
    id_accepted=r"[A-Za-z0-9_-]{1,64}",  # it gives ids of 50 characters, and takes them back
    tool_name_pattern=r"[a-zA-Z][a-zA-Z0-9_-]{0,63}",  # what every upstream takes
    first_roles=frozenset({"user"}),  # ANT-24, BED-07, GEM-02
    user_after_tool="filler",  # MIS-21
    thinking_carrier="reasoning_details",
    thinking_binding="upstream",
    thinking_first=False,
    thinking_alone=False,
    thinking_switch="reasoning",
    upstream_pin="provider",
    empty_result="(The tool returned nothing.)",  # ANT-33: a blank text takes no mark
    caching=Caching(marks="part", models="~?anthropic/.*", long="ttl"),
)

XAI = OPENAI_COMPATIBLE.derive(name="xai", thinking_switch="effort", caching=Caching(keyed=True))
GROQ = OPENAI_COMPATIBLE.derive(
    name="groq", max_media=5, thinking_switch="effort"
)  # 5: documented for images
MINIMAX = OPENAI_COMPATIBLE.derive(name="minimax")
QWEN = OPENAI_COMPATIBLE.derive(
    name="qwen",
    developer_role=False,  # "developer is not one of ['system', 'assistant', 'user', 'tool', 'function']"
    tool_name_pattern=r"(?!search\Z)[a-zA-Z0-9_-]{1,64}",  # "Tool names are not allowed to be [search]"
)
GLM = OPENAI_COMPATIBLE.derive(
    name="glm",
    developer_role=False,
    absent_content="empty",
    stream_usage=False,  # it comes on the last chunk unasked
    thinking_switch="type",
)

_TEMPLATED = (
    OPENAI_COMPATIBLE.derive(  # the model's chat template judges, and many of them are strict (CMP-01)
        first_roles=frozenset({"user"}),
        alternation="fill",
        user_after_tool="filler",
        absent_content="empty",
    )
)
VLLM = _TEMPLATED.derive(name="vllm")
LLAMA_CPP = _TEMPLATED.derive(name="llama_cpp")
OLLAMA = _TEMPLATED.derive(name="ollama", media_urls=False)

VENDORS = (
    MISTRAL,
    KIMI,
    DEEPSEEK,
    OPENROUTER,
    XAI,
    QWEN,
    GLM,
    MINIMAX,
    GROQ,
    VLLM,
    LLAMA_CPP,
    OLLAMA,
    OPENAI_COMPATIBLE,
)
