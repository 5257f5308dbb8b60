"""The profiles that come with the project, by name: the maker of each wire family, and vendors that speak like it.

Where sources disagree, the value is the one that every source accepts: a filler costs a few tokens in the rare
conversation that needs it, a refusal costs the turn.
"""

from actors.core.data.record import replace
from actors.core.dialects.dialect import (
    AnthropicCaching,
    AnthropicDialect,
    AnthropicReasoning,
    AnthropicRequest,
    BlockTurns,
    ChatCaching,
    ChatDialect,
    ChatMedia,
    ChatReasoning,
    ChatRequest,
    ChatTurns,
    ConverseCaching,
    ConverseDialect,
    ConverseMedia,
    ConverseReasoning,
    ConverseRequest,
    ConverseTurns,
    Dialect,
    GeminiDialect,
    GeminiMedia,
    GeminiReasoning,
    GeminiRequest,
    GeminiTurns,
    PartMedia,
    ResponsesCaching,
    ResponsesDialect,
    ResponsesReasoning,
    ResponsesRequest,
    ResponsesTurns,
)
from actors.core.models.facts import CLAUDE_KEYS, ModelFacts
from actors.core.models.row import Maker
from actors.core.models.rules import Ids
from actors.errors import UnknownTarget, nearest

_MAKERS: tuple[Maker, ...] = ("openai", "anthropic", "google")

OPENAI_CHAT = ChatDialect(
    name="openai_chat",
    turns=ChatTurns(max_string=1_048_576),  # OAC-14
    media=ChatMedia(max_count=500),  # documented for images; newer models take more
    reasoning=ChatReasoning(switch="effort"),
    caching=ChatCaching(cache_key=True, long_lifetime="retention"),
    request=ChatRequest(
        custom_tools=True,
        max_tokens_field="max_completion_tokens",
        output="schema",
        output_beside_tools=True,
    ),
)

# Azure OpenAI. Its dated versions have neither `prompt_cache_key` nor custom tools, and refuse unknown parameters.
AZURE = replace(
    OPENAI_CHAT,
    name="azure",
    caching=ChatCaching(),
    request=replace(OPENAI_CHAT.request, custom_tools=False),
)

_CLAUDE_LIKE = ModelFacts(
    sampling="without_thinking", forced_choice="without_thinking", schema_output=False
)  # accepted by every compatible host

ANTHROPIC = AnthropicDialect(
    name="anthropic",
    ids=Ids(
        style="anthropic",
        pattern=r"[a-zA-Z0-9_-]{1,64}",  # ANT-07; 64 is the safe choice, no cap is stated
        max_len=64,
        tool_name_pattern=r"[a-zA-Z0-9_-]{1,128}",  # ANT-08
    ),
    turns=BlockTurns(),  # ANT-24
    media=PartMedia(max_bytes=5 * 1024 * 1024, max_count=100),  # ANT-54
    reasoning=AnthropicReasoning(
        binding="prefix",  # ANT-44: treated as bound everywhere, which older models accept too
        followed=True,  # ANT-52
    ),
    model=replace(
        _CLAUDE_LIKE, property_keys=CLAUDE_KEYS, image_side=8000, many_images_side=2000
    ),  # ANT-58, ANT-59
    caching=AnthropicCaching(marks="block", moving=True, long_lifetime="ttl"),
    request=AnthropicRequest(
        max_temperature=1.0,
        overflow_rule="ANT-36",
        output="schema",
        output_beside_tools=True,
    ),
)

# Claude on Vertex AI. Features without evidence on the clouds are off: media URLs, and one mark for a request.
VERTEX_ANTHROPIC = replace(
    ANTHROPIC,
    name="vertex_anthropic",
    media=replace(ANTHROPIC.media, urls=False),
    caching=replace(ANTHROPIC.caching, moving=False),
    request=replace(
        ANTHROPIC.request, route="raw_predict", output="prompt", lacks=frozenset({"service_tier"})
    ),
)
# Claude on Bedrock's InvokeModel. Models are named as in `eu.anthropic.claude-sonnet-4-5-20250929-v1:0`.
BEDROCK_ANTHROPIC = replace(
    VERTEX_ANTHROPIC,
    name="bedrock_anthropic",
    request=replace(VERTEX_ANTHROPIC.request, route="invoke_model"),
)

# Everything is sent inline with `store: false`; calls and results pair by `call_id`, and item ids are never sent. So no
# item has an id while its follower has none (OAR-03, OAR-04), and nothing is looked up that was not stored (OAR-05).
OPENAI_RESPONSES = ResponsesDialect(
    name="openai_responses",
    ids=Ids(
        style="openai",
        pattern=r"[A-Za-z0-9_-]{1,64}",  # 64 by OAR-08; the character set is what we choose to emit
        max_len=64,
        tool_name_pattern=r"[a-zA-Z0-9_-]{1,128}",
    ),
    turns=ResponsesTurns(calls_last=True, max_string=10_485_760),  # OAR-14
    media=PartMedia(max_count=500),  # documented for images; newer models take more
    reasoning=ResponsesReasoning(
        binding="prefix",  # OAR-09: the newest models bind it to the whole prefix, and older ones accept that
        first=False,
    ),
    caching=ResponsesCaching(cache_key=True, long_lifetime="retention"),
    request=ResponsesRequest(overflow_rule="OAR-13"),
)

# The Gemini API, models of generation 3.
GEMINI = GeminiDialect(
    name="gemini",
    ids=Ids(
        style="none",  # pairing is by position and name; an id is sent only to the provider that made it
        pattern=r"[a-zA-Z0-9_.:-]{1,64}",
        max_len=64,
        tool_name_pattern=r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}",  # GEM-17; 64 is the safe choice, newer models take 128
    ),
    turns=GeminiTurns(),
    media=GeminiMedia(max_count=3600),  # documented for images
    reasoning=GeminiReasoning(
        binding="model",  # GEM-05
        required="before_calls",  # GEM-04
        placeholder="skip_thought_signature_validator",
        switch="gemini",
    ),
    request=GeminiRequest(models_path="/v1beta/models", overflow_rule="GEM-12", output="schema"),
)
VERTEX = replace(
    GEMINI,
    name="vertex",
    ids=replace(GEMINI.ids, native_passthrough=False),  # GEM-09: it gives ids and refuses them
    # documented for images of the first models of generation 3; others take 3,000
    media=GeminiMedia(max_count=900),
    # the endpoint ends in /projects/.../locations/.../publishers/google
    request=replace(GEMINI.request, models_path="/models"),
)
# Models before generation 3: signatures are welcome, none is demanded.
GEMINI_2 = replace(
    GEMINI,
    name="gemini_2",
    media=replace(GEMINI.media, result_kinds=frozenset()),
    reasoning=GeminiReasoning(binding="model", switch="gemini_budget"),
)

BEDROCK = ConverseDialect(
    name="bedrock",
    ids=Ids(
        style="bedrock",
        pattern=r"[a-zA-Z0-9_.:-]{1,64}",  # BED-08
        max_len=64,
        tool_name_pattern=r"[a-zA-Z0-9_-]{1,64}",  # BED-08
    ),
    turns=ConverseTurns(empty_result="(The tool returned nothing.)"),  # BED-04, BED-06, BED-07
    media=ConverseMedia(
        max_bytes=3_750_000 * 4 // 3,  # documented for images; documents may have 4.5 MB
        max_count=20,  # BED-17; some models take more by now, some fewer
        max_documents=5,  # BED-16
    ),
    reasoning=ConverseReasoning(
        binding="prefix",  # signatures are those of the model behind it
        followed=True,  # ANT-52, by BED-10
    ),
    makers=("openai", "anthropic", "google", "amazon"),
    # Marks for a model without a cache are rejected; of other makers' models, some take `any`.
    model=replace(_CLAUDE_LIKE, named_choice=False, cache="none", image_side=8000, many_images_side=2000),
    caching=ConverseCaching(marks="point", long_lifetime="ttl"),
    request=ConverseRequest(
        output="schema",
        output_beside_tools=True,
        max_temperature=1.0,
        top_p="alone",
        lacks=frozenset(
            {"service_tier"}
        ),  # few models have service tiers, with other values than Anthropic's
        overflow_rule="BED-12",
    ),
)

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
    media=ChatMedia(user_files=False),
    reasoning=ChatReasoning(carrier="thinking_chunk", binding="model", switch="effort"),
    caching=ChatCaching(cache_key=True),
    request=ChatRequest(
        keys=frozenset(
            """frequency_penalty guardrails logprobs max_tokens messages metadata min_tokens model n
            parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_logprobs prompt_mode random_seed
            reasoning_effort repetition_penalty response_format safe_prompt service_tier stop stream temperature
            tool_choice tools top_k top_logprobs top_p top_prompt_logprobs""".split()  # noqa: SIM905  as a list it is a page
        ),  # MIS-32
        lacks=frozenset(),  # `keys` says what it has
        seed_field="random_seed",
        max_tools=None,
        stream_usage=False,  # it comes on the last chunk unasked, and `stream_options` is unknown (MIS-32)
        required_choice="any",
        untyped_functions=True,
        output="schema",
        overflow_rule="MIS-33",
    ),
)

_DEMANDED = ChatReasoning(
    carrier="reasoning_content",
    binding="model",
    required="with_calls",  # KIM-03
    placeholder="(No reasoning recorded.)",  # blanks pass at DeepSeek, but not at all who copy it
    switch="type",
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
        empty_answers=False,  # KIM-04; so we never send a message that contains only reasoning
        absent_content="omit",  # KIM-05
    ),
    media=ChatMedia(user_files=False),
    makers=(*_MAKERS, "kimi"),
    model=ModelFacts(sampling="never", forced_choice="never", thinks=True),  # KIM-09, KIM-10
    reasoning=_DEMANDED,
    caching=ChatCaching(cache_key=True),
    request=ChatRequest(
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
    media=ChatMedia(user_kinds=frozenset(), user_files=False),
    makers=(*_MAKERS, "deepseek"),
    model=ModelFacts(forced_choice="without_thinking", thinks=True),  # DSK-08
    reasoning=replace(_DEMANDED, required="every"),  # DSK-05
    request=ChatRequest(
        output="tool",
        lacks=frozenset(
            {"top_k", "metadata", "seed", "user", "parallel_tool_calls"}
        ),  # it ignores unknown fields
        overflow_rule="DSK-09",
    ),
)

OPENROUTER = ChatDialect(
    name="openrouter",
    ids=replace(
        OPENAI_CHAT.ids,
        style="mistral",  # its upstreams include Mistral's (MIS-01); every other takes such ids too
        accepted=r"[A-Za-z0-9_-]{1,64}",  # it gives ids of 50 characters, and takes them back
        tool_name_pattern=r"[a-zA-Z][a-zA-Z0-9_-]{0,63}",  # what every upstream takes
    ),
    turns=ChatTurns(
        first_roles=frozenset({"user"}),  # ANT-24, BED-07, GEM-02
        user_after_tool="filler",  # MIS-21
        empty_result="(The tool returned nothing.)",  # ANT-33: a blank text takes no mark
    ),
    model=ModelFacts(cache="none"),
    caching=ChatCaching(marks="part", long_lifetime="ttl"),
    reasoning=ChatReasoning(carrier="reasoning_details", binding="upstream", switch="reasoning"),
    request=ChatRequest(upstream_pin="provider", lacks=frozenset({"metadata"})),
)
XAI = ChatDialect(
    name="xai",
    reasoning=ChatReasoning(switch="effort"),
    caching=ChatCaching(cache_key=True),
    request=ChatRequest(output="schema"),
)
QWEN = ChatDialect(
    name="qwen",
    # "Tool names are not allowed to be [search]"
    ids=replace(OPENAI_CHAT.ids, tool_name_pattern=r"(?!search\Z)[a-zA-Z0-9_-]{1,64}"),
    # "developer is not one of ['system', 'assistant', 'user', 'tool', 'function']"
    turns=ChatTurns(developer_role=False),
)
GLM = ChatDialect(
    name="glm",
    makers=(*_MAKERS, "glm"),
    turns=ChatTurns(developer_role=False, absent_content="empty"),
    reasoning=ChatReasoning(switch="type"),
    request=ChatRequest(stream_usage=False),  # it comes on the last chunk unasked
)
MINIMAX = ChatDialect(
    name="minimax",
    makers=(*_MAKERS, "minimax"),
    # Thinking stands in the text, which goes back as it is; where a host splits it off, its details go back.
    reasoning=ChatReasoning(carrier="reasoning_details", binding="model", switch="type"),
)
GROQ = ChatDialect(
    name="groq",
    media=ChatMedia(max_count=5),  # documented for images
    reasoning=ChatReasoning(switch="effort"),
    request=ChatRequest(output="tool"),  # a schema of the answer is taken by a few models, and not in streams
)
VLLM = ChatDialect(
    name="vllm",
    turns=ChatTurns(  # the model's chat template judges, and many of them are strict (CMP-01)
        first_roles=frozenset({"user"}), alternation="fill", user_after_tool="filler", absent_content="empty"
    ),
    # a grammar is made of schemas, and that of an answer leaves no room for calls
    request=ChatRequest(output="schema", patterns="plain"),
)
# Hosts of open models, whose chat templates judge as those of one's own server do. What they reason is only read.
OPEN_MODELS = ChatDialect(
    name="open_models",
    turns=VLLM.turns,
    reasoning=ChatReasoning(switch="effort"),
    request=ChatRequest(patterns="plain"),
)
_WORDS_ALONE = replace(VLLM.request, named_choice=False)  # a tool choice that is no word is taken for `auto`
LLAMA_CPP = replace(VLLM, name="llama_cpp", request=_WORDS_ALONE)
OLLAMA = replace(VLLM, name="ollama", media=ChatMedia(urls=False), request=_WORDS_ALONE)

OPENAI_COMPATIBLE = ChatDialect(name="openai_compatible")

PROFILES: dict[str, Dialect] = {  # all of the above, in the order of the pages that show them
    profile.name: profile for profile in list(globals().values()) if isinstance(profile, Dialect)
}
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
    close = nearest(name, [*PROFILES, *ALIASES])
    hint = f"did you mean {close!r}?" if close else f"known: {', '.join(PROFILES)}"
    raise UnknownTarget(f"No dialect {name!r}; {hint}")
