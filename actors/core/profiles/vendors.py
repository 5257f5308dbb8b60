"""Profiles of vendors that speak OpenAI Chat Completions, each with what it does differently.

Where sources disagree, the value is the one that every source accepts: a filler costs a few tokens in the rare
conversation that needs it, a refusal costs the turn.
"""

from dataclasses import replace

from actors.core.concerns import Ids
from actors.core.dialect import ChatCaching, ChatDialect, ChatMedia, ChatReasoning, ChatRequest, ChatTurns
from actors.core.profiles.openai_chat import OPENAI_CHAT

OPENAI_COMPATIBLE = replace(
    OPENAI_CHAT,
    name="openai_compatible",
    turns=ChatTurns(),
    media=ChatMedia(user_files=True),
    reasoning=ChatReasoning(),
    caching=ChatCaching(),
    request=replace(OPENAI_CHAT.request, max_tokens_field="max_tokens", custom_tools=False),
)
"""A server of which nothing more is known."""

MISTRAL = ChatDialect(
    name="mistral",
    rules="MIS",
    ids=Ids(
        style="mistral",
        pattern=r"[a-zA-Z0-9]{9}",  # MIS-01; only the newest tokenizers are less strict
        max_len=9,
        unique_scope="message",  # MIS-04
        tool_name_pattern=r"[a-zA-Z0-9_-]{1,64}",  # MIS-14
    ),
    turns=ChatTurns(
        first_roles=frozenset({"user"}),  # MIS-13, and calls of a first message are not tracked
        user_after_tool="filler",  # MIS-21
        developer_role=False,
        system_anywhere=False,  # MIS-12
        message_keys=frozenset({"prefix"}),
        empty_calls=True,  # recorded: a client sends them with every answer
        absent_content="omit",
    ),
    media=ChatMedia(),
    reasoning=ChatReasoning(
        carrier="thinking_chunk", binding="model", first=False, alone=False, switch="effort"
    ),
    caching=ChatCaching(keyed=True),
    request=ChatRequest(
        keys=frozenset(
            """frequency_penalty guardrails max_tokens messages metadata model n parallel_tool_calls prediction
            presence_penalty prompt_cache_key prompt_mode random_seed reasoning_effort response_format safe_prompt
            stop stream temperature tool_choice tools top_p""".split()  # noqa: SIM905  as a list it is a page
        ),  # MIS-32
        stream_usage=False,  # it comes on the last chunk unasked, and `stream_options` is unknown (MIS-32)
        required_choice="any",
        overflow_rule="MIS-33",
    ),
)

KIMI = ChatDialect(
    name="kimi",
    rules="KIM",
    ids=Ids(
        style="kimi",
        pattern=r"[a-zA-Z0-9_.:-]{1,128}",  # `functions.read:0`, and `Read:0` of the coding endpoint
        max_len=128,
        tool_name_pattern=r"[a-zA-Z][a-zA-Z0-9_-]{0,63}",  # KIM-06
    ),
    turns=ChatTurns(
        developer_role=False,
        empty_answers=False,  # KIM-04
        absent_content="omit",  # KIM-05
    ),
    media=ChatMedia(),
    reasoning=ChatReasoning(
        carrier="reasoning_content",
        binding="model",
        first=False,
        alone=False,  # KIM-04
        required="with_calls",  # KIM-03
        placeholder="(No reasoning recorded.)",
        switch="type",
    ),
    caching=ChatCaching(keyed=True),
    request=ChatRequest(
        max_tools=128,
        forced_choice="no",  # KIM-10
        sampling=False,  # KIM-09
        schema_subset="moonshot",  # KIM-07
        overflow_rule="KIM-12",
    ),
)

DEEPSEEK = ChatDialect(
    name="deepseek",
    rules="DSK",
    ids=Ids(
        style="openai",
        pattern=r"[A-Za-z0-9_-]{1,64}",
        max_len=64,
        unique_scope="message",  # answering a call frees its id
        tool_name_pattern=r"[a-zA-Z0-9_-]{1,64}",
    ),
    turns=ChatTurns(developer_role=False),
    media=ChatMedia(user_kinds=frozenset()),
    reasoning=ChatReasoning(
        carrier="reasoning_content",
        binding="model",
        first=False,
        alone=False,
        required="with_calls",  # DSK-05
        placeholder="(No reasoning recorded.)",  # blanks pass there, but not at all who copy it
        switch="type",
    ),
    request=ChatRequest(
        max_tools=128,
        forced_choice="not_when_thinking",  # DSK-08
        overflow_rule="DSK-09",
    ),
)

OPENROUTER = replace(
    OPENAI_COMPATIBLE,
    name="openrouter",
    ids=replace(
        OPENAI_COMPATIBLE.ids,
        style="mistral",  # its upstreams include Mistral's (MIS-01); every other takes such ids too
        accepted=r"[A-Za-z0-9_-]{1,64}",  # it gives ids of 50 characters, and takes them back
        tool_name_pattern=r"[a-zA-Z][a-zA-Z0-9_-]{0,63}",  # what every upstream takes
    ),
    turns=ChatTurns(
        first_roles=frozenset({"user"}),  # ANT-24, BED-07, GEM-02
        user_after_tool="filler",  # MIS-21
        empty_result="(The tool returned nothing.)",  # ANT-33: a blank text takes no mark
    ),
    caching=ChatCaching(marks="part", models="~?anthropic/.*", long="ttl"),
    reasoning=ChatReasoning(
        carrier="reasoning_details", binding="upstream", first=False, alone=False, switch="reasoning"
    ),
    request=replace(OPENAI_COMPATIBLE.request, upstream_pin="provider"),
)

XAI = replace(
    OPENAI_COMPATIBLE, name="xai", reasoning=ChatReasoning(switch="effort"), caching=ChatCaching(keyed=True)
)
GROQ = replace(
    OPENAI_COMPATIBLE,
    name="groq",
    media=replace(OPENAI_COMPATIBLE.media, max_count=5),  # documented for images
    reasoning=ChatReasoning(switch="effort"),
)
MINIMAX = replace(OPENAI_COMPATIBLE, name="minimax")
QWEN = replace(
    OPENAI_COMPATIBLE,
    name="qwen",
    ids=replace(  # "Tool names are not allowed to be [search]"
        OPENAI_COMPATIBLE.ids, tool_name_pattern=r"(?!search\Z)[a-zA-Z0-9_-]{1,64}"
    ),
    # "developer is not one of ['system', 'assistant', 'user', 'tool', 'function']"
    turns=ChatTurns(developer_role=False),
)
GLM = replace(
    OPENAI_COMPATIBLE,
    name="glm",
    turns=ChatTurns(developer_role=False, absent_content="empty"),
    reasoning=ChatReasoning(switch="type"),
    request=replace(OPENAI_COMPATIBLE.request, stream_usage=False),  # it comes on the last chunk unasked
)

VLLM = replace(
    OPENAI_COMPATIBLE,
    name="vllm",
    turns=ChatTurns(  # the model's chat template judges, and many of them are strict (CMP-01)
        first_roles=frozenset({"user"}), alternation="fill", user_after_tool="filler", absent_content="empty"
    ),
)
LLAMA_CPP = replace(VLLM, name="llama_cpp")
OLLAMA = replace(VLLM, name="ollama", media=replace(VLLM.media, urls=False))

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
