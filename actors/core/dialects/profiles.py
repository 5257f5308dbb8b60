"""The built-in profiles, by name: one for the maker of each wire family, and one for each compatible vendor.

Where sources disagree about a rule, the profile contains the strictest value, which every source accepts: an
unnecessary filler costs a few tokens in rare conversations, but a refused request costs the turn.
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
from actors.core.models.facts import CLAUDE_KEYS, Maker, ModelFacts
from actors.core.models.rules import Ids
from actors.errors import UnknownTarget, nearest

_MAKERS: tuple[Maker, ...] = ("openai", "anthropic", "google")

OPENAI_CHAT = ChatDialect(
    name="openai_chat",
    turns=ChatTurns(max_string=1_048_576),  # maximum characters (OAC-14)
    media=ChatMedia(max_count=500),  # documented for images; newer models accept more
    reasoning=ChatReasoning(switch="effort"),
    caching=ChatCaching(cache_key=True, long_lifetime="retention"),
    request=ChatRequest(
        custom_tools=True,
        max_tokens_field="max_completion_tokens",
        output="schema",
        output_beside_tools=True,
    ),
)

# Azure OpenAI. Its dated API versions have neither `prompt_cache_key` nor custom tools, and reject unknown parameters.
AZURE = replace(
    OPENAI_CHAT,
    name="azure",
    caching=ChatCaching(),
    request=replace(OPENAI_CHAT.request, custom_tools=False),
)

# every host that is compatible with Anthropic accepts requests that keep to these facts
_CLAUDE_LIKE = ModelFacts(sampling="without_thinking", forced_choice="without_thinking", schema_output=False)

ANTHROPIC = AnthropicDialect(
    name="anthropic",
    ids=Ids(
        style="anthropic",
        pattern=r"[a-zA-Z0-9_-]{1,64}",  # ANT-07; Anthropic documents no maximum length, and 64 is safe
        max_len=64,
        tool_name_pattern=r"[a-zA-Z0-9_-]{1,128}",  # required by ANT-08
    ),
    turns=BlockTurns(),  # the first message must be the user's (ANT-24)
    media=PartMedia(max_bytes=5 * 1024 * 1024, max_count=100),  # images and documents together (ANT-54)
    reasoning=AnthropicReasoning(
        binding="prefix",  # ANT-44: only newer models check the prefix, but the rule is safe for all models
        must_be_followed=True,  # a message must not end with thinking (ANT-52)
    ),
    # the maximum sides of images (ANT-58, ANT-59)
    model=replace(_CLAUDE_LIKE, property_keys=CLAUDE_KEYS, image_side=8000, many_images_side=2000),
    caching=AnthropicCaching(marks="block", moving=True, long_lifetime="ttl"),
    request=AnthropicRequest(
        max_temperature=1.0,
        overflow_rule="ANT-36",
        output="schema",
        output_beside_tools=True,
    ),
)

# Claude on Vertex AI. Two features are off, because no source confirms them there: media URLs, and one mark for a
# complete request.
VERTEX_ANTHROPIC = replace(
    ANTHROPIC,
    name="vertex_anthropic",
    media=replace(ANTHROPIC.media, urls=False),
    caching=replace(ANTHROPIC.caching, moving=False),
    request=replace(
        ANTHROPIC.request,
        route="raw_predict",
        output="prompt",
        unsupported_settings=frozenset({"service_tier"}),
    ),
)
# Claude on Bedrock's InvokeModel. Models are named as in `eu.anthropic.claude-sonnet-4-5-20250929-v1:0`.
BEDROCK_ANTHROPIC = replace(
    VERTEX_ANTHROPIC,
    name="bedrock_anthropic",
    request=replace(VERTEX_ANTHROPIC.request, route="invoke_model"),
)

# Everything is sent inline with `store: false`. Calls and results are paired by `call_id`, and item ids are never sent.
# So no item with an id is followed by an item without one (OAR-03, OAR-04), and the host never looks up items that it
# did not store (OAR-05).
OPENAI_RESPONSES = ResponsesDialect(
    name="openai_responses",
    ids=Ids(
        style="openai",
        pattern=r"[A-Za-z0-9_-]{1,64}",  # OAR-08 sets the length; the set of characters is our choice
        max_len=64,
        tool_name_pattern=r"[a-zA-Z0-9_-]{1,128}",
    ),
    # outputs must directly follow their calls (OAR-14)
    turns=ResponsesTurns(calls_last=True, max_string=10_485_760),
    media=PartMedia(max_count=500),  # documented for images; newer models accept more
    reasoning=ResponsesReasoning(
        binding="prefix",  # OAR-09: only the newest models check the prefix, but the rule is safe for all models
        must_be_first=False,
    ),
    caching=ResponsesCaching(cache_key=True, long_lifetime="retention"),
    request=ResponsesRequest(overflow_rule="OAR-13"),
)

# The Gemini API, with models of generation 3.
GEMINI = GeminiDialect(
    name="gemini",
    ids=Ids(
        style="none",  # calls and results are paired by position and name; only native ids are sent
        pattern=r"[a-zA-Z0-9_.:-]{1,64}",
        max_len=64,
        tool_name_pattern=r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}",  # GEM-17; newer models accept 128 characters, 64 is safe
    ),
    turns=GeminiTurns(),
    media=GeminiMedia(max_count=3600),  # Google documents this limit for images
    reasoning=GeminiReasoning(
        binding="model",  # a signature is valid only for the same model (GEM-05)
        required="before_calls",  # the first call of a content needs a signature (GEM-04)
        placeholder="skip_thought_signature_validator",
        switch="gemini",
    ),
    request=GeminiRequest(models_path="/v1beta/models", overflow_rule="GEM-12", output="schema"),
)
VERTEX = replace(
    GEMINI,
    name="vertex",
    # GEM-09: Vertex AI returns ids, but rejects them in requests
    ids=replace(GEMINI.ids, native_passthrough=False),
    # documented for images in the first models of generation 3; other models accept 3,000
    media=GeminiMedia(max_count=900),
    # the configured endpoint ends in /projects/.../locations/.../publishers/google
    request=replace(GEMINI.request, models_path="/models"),
)
# Gemini models before generation 3. They accept thought signatures, but do not require them.
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
        pattern=r"[a-zA-Z0-9_.:-]{1,64}",  # required by BED-08
        max_len=64,
        tool_name_pattern=r"[a-zA-Z0-9_-]{1,64}",  # required by BED-08
    ),
    # blank text is rejected, roles alternate, and a user message is first (BED-04, BED-06, BED-07)
    turns=ConverseTurns(empty_result="(The tool returned nothing.)"),
    media=ConverseMedia(
        max_bytes=3_750_000 * 4 // 3,  # documented for images; documents may be up to 4.5 MB
        max_count=20,  # BED-17; some models accept more, some fewer
        max_documents=5,  # the limit of BED-16
    ),
    reasoning=ConverseReasoning(
        binding="prefix",  # signatures come from the underlying model, such as Claude (ANT-44)
        must_be_followed=True,  # Claude's rule also applies on Bedrock: reasoning must not be last (ANT-52, BED-10)
    ),
    makers=("openai", "anthropic", "google", "amazon"),
    # Cache marks are rejected for a model without a prompt cache. Few models from makers other than Anthropic accept a
    # named tool choice, but some accept `any`.
    model=replace(_CLAUDE_LIKE, named_choice=False, cache="none", image_side=8000, many_images_side=2000),
    caching=ConverseCaching(marks="point", long_lifetime="ttl"),
    request=ConverseRequest(
        output="schema",
        output_beside_tools=True,
        max_temperature=1.0,
        top_p="alone",
        # few models have service tiers, and the values differ from Anthropic's
        unsupported_settings=frozenset({"service_tier"}),
        overflow_rule="BED-12",
    ),
)

MISTRAL = ChatDialect(
    name="mistral",
    rules="MIS",
    ids=Ids(
        style="mistral",
        pattern=r"[a-zA-Z0-9]{9}",  # MIS-01; only the newest tokenizers accept other ids
        max_len=9,
        unique_scope="message",  # only the calls of one message need distinct ids (MIS-04)
        tool_name_pattern=r"[a-zA-Z0-9_-]{1,64}",  # required by MIS-14
    ),
    turns=ChatTurns(
        first_roles=frozenset({"user"}),  # MIS-13; besides, Mistral does not track calls in a first message
        user_after_tool="filler",  # a user message must not follow a result (MIS-21)
        developer_role=False,
        system_anywhere=False,  # not after an assistant or tool message (MIS-12)
        message_keys=frozenset({"prefix"}),
        empty_calls=True,  # in recorded traffic, a client sends an empty list of calls with every answer
        absent_content="omit",
    ),
    media=ChatMedia(user_files=False),
    reasoning=ChatReasoning(carrier="thinking_chunk", binding="model", switch="effort"),
    caching=ChatCaching(cache_key=True),
    request=ChatRequest(
        # Mistral rejects all other keys (MIS-32)
        keys=frozenset(
            """frequency_penalty guardrails logprobs max_tokens messages metadata min_tokens model n
            parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_logprobs prompt_mode random_seed
            reasoning_effort repetition_penalty response_format safe_prompt service_tier stop stream temperature
            tool_choice tools top_k top_logprobs top_p top_prompt_logprobs""".split()  # noqa: SIM905  a list fills a page
        ),
        unsupported_settings=frozenset(),  # not needed, because `keys` lists the accepted keys
        seed_field="random_seed",
        max_tools=None,
        stream_usage=False,  # usage is always in the last chunk, and `stream_options` is rejected (MIS-32)
        required_choice="any",
        untyped_functions=True,
        output="schema",
        overflow_rule="MIS-33",
    ),
)

_REQUIRED_REASONING = ChatReasoning(
    carrier="reasoning_content",
    binding="model",
    required="with_calls",  # a message with calls needs reasoning (KIM-03)
    placeholder="(No reasoning recorded.)",  # DeepSeek accepts blank reasoning, but some compatible hosts do not
    switch="type",
)
KIMI = ChatDialect(
    name="kimi",
    rules="KIM",
    ids=Ids(
        style="kimi",
        pattern=r"[a-zA-Z0-9_.:-]{1,128}",  # such as `functions.read:0`, or `Read:0` on the coding endpoint
        max_len=128,
        tool_name_pattern=r"[a-zA-Z][a-zA-Z0-9_-]{0,63}",  # a name must begin with a letter (KIM-06)
    ),
    turns=ChatTurns(
        developer_role=False,
        empty_answers=False,  # KIM-04; so we never send a message that contains only reasoning
        absent_content="omit",  # an empty text is rejected (KIM-05)
    ),
    media=ChatMedia(user_files=False),
    makers=(*_MAKERS, "kimi"),
    model=ModelFacts(
        sampling="never", forced_choice="never", thinks_by_default=True
    ),  # required by KIM-09 and KIM-10
    reasoning=_REQUIRED_REASONING,
    caching=ChatCaching(cache_key=True),
    request=ChatRequest(
        schema_subset="moonshot",  # Moonshot's subset of JSON Schema (KIM-07)
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
        unique_scope="message",  # an id may be used again after its call was answered
        tool_name_pattern=r"[a-zA-Z0-9_-]{1,64}",
    ),
    turns=ChatTurns(developer_role=False),
    media=ChatMedia(user_kinds=frozenset(), user_files=False),
    makers=(*_MAKERS, "deepseek"),
    model=ModelFacts(forced_choice="without_thinking", thinks_by_default=True),  # required by DSK-08
    reasoning=replace(_REQUIRED_REASONING, required="every"),  # every message needs reasoning (DSK-05)
    request=ChatRequest(
        output="tool",
        # DeepSeek ignores unknown fields without an error, so these settings would be lost silently
        unsupported_settings=frozenset({"top_k", "metadata", "seed", "user", "parallel_tool_calls"}),
        overflow_rule="DSK-09",
    ),
)

OPENROUTER = ChatDialect(
    name="openrouter",
    ids=replace(
        OPENAI_CHAT.ids,
        style="mistral",  # Mistral is one of the upstreams (MIS-01), and all other upstreams accept its id format too
        accepted=r"[A-Za-z0-9_-]{1,64}",  # OpenRouter returns ids of 50 characters and accepts them in requests
        tool_name_pattern=r"[a-zA-Z][a-zA-Z0-9_-]{0,63}",  # every upstream accepts these names
    ),
    turns=ChatTurns(
        first_roles=frozenset(
            {"user"}
        ),  # some upstreams require a user message first (ANT-24, BED-07, GEM-02)
        user_after_tool="filler",  # a user message must not follow a result (MIS-21)
        empty_result="(The tool returned nothing.)",  # ANT-33: a blank text must not have a cache mark
    ),
    model=ModelFacts(cache="none"),
    caching=ChatCaching(marks="part", long_lifetime="ttl"),
    reasoning=ChatReasoning(carrier="reasoning_details", binding="upstream", switch="reasoning"),
    request=ChatRequest(upstream_pin="provider", unsupported_settings=frozenset({"metadata"})),
)
XAI = ChatDialect(
    name="xai",
    reasoning=ChatReasoning(switch="effort"),
    caching=ChatCaching(cache_key=True),
    request=ChatRequest(output="schema"),
)
QWEN = ChatDialect(
    name="qwen",
    # the host's error message: "Tool names are not allowed to be [search]"
    ids=replace(OPENAI_CHAT.ids, tool_name_pattern=r"(?!search\Z)[a-zA-Z0-9_-]{1,64}"),
    # the host's error message: "developer is not one of ['system', 'assistant', 'user', 'tool', 'function']"
    turns=ChatTurns(developer_role=False),
)
GLM = ChatDialect(
    name="glm",
    makers=(*_MAKERS, "glm"),
    turns=ChatTurns(developer_role=False, absent_content="empty"),
    reasoning=ChatReasoning(switch="type"),
    request=ChatRequest(stream_usage=False),  # usage is always in the last chunk
)
MINIMAX = ChatDialect(
    name="minimax",
    makers=(*_MAKERS, "minimax"),
    # Thinking is part of the answer's text, which is sent back unchanged. If a host separates it from the text, it is
    # sent back as `reasoning_details`.
    reasoning=ChatReasoning(carrier="reasoning_details", binding="model", switch="type"),
)
GROQ = ChatDialect(
    name="groq",
    media=ChatMedia(max_count=5),  # Groq documents this limit for images
    reasoning=ChatReasoning(switch="effort"),
    # few models accept a schema for the answer, and only without streaming
    request=ChatRequest(output="tool"),
)
VLLM = ChatDialect(
    name="vllm",
    turns=ChatTurns(  # the model's chat template checks the roles, and many templates are strict (CMP-01)
        first_roles=frozenset({"user"}), alternation="fill", user_after_tool="filler", absent_content="empty"
    ),
    # the server compiles schemas to a grammar; with a grammar for the answer, the model cannot call tools
    request=ChatRequest(output="schema", patterns="plain"),
)
# Hosts of open models. As on a self-hosted server, the model's chat template checks the roles. Reasoning is decoded,
# but not sent back.
OPEN_MODELS = ChatDialect(
    name="open_models",
    turns=VLLM.turns,
    reasoning=ChatReasoning(switch="effort"),
    request=ChatRequest(patterns="plain"),
)
# these servers treat a named tool choice like `auto`
_WITHOUT_NAMED_CHOICE = replace(VLLM.request, named_choice=False)
LLAMA_CPP = replace(VLLM, name="llama_cpp", request=_WITHOUT_NAMED_CHOICE)
OLLAMA = replace(VLLM, name="ollama", media=ChatMedia(urls=False), request=_WITHOUT_NAMED_CHOICE)

OPENAI_COMPATIBLE = ChatDialect(name="openai_compatible")

PROFILES: dict[str, Dialect] = {  # every profile above; the reference pages show them in this order
    profile.name: profile for profile in list(globals().values()) if isinstance(profile, Dialect)
}
ALIASES = {
    "openai": "openai_chat",
    "responses": "openai_responses",
    "vertex_gemini": "vertex",
    "converse": "bedrock",
}


def dialect(name: str) -> Dialect:
    """Return the profile with this name. Aliases are accepted, such as `openai` for `openai_chat`.

    Raises:
        UnknownTarget: No profile has this name.
    """
    found = PROFILES.get(ALIASES.get(name, name))
    if found is not None:
        return found
    close = nearest(name, [*PROFILES, *ALIASES])
    hint = f"did you mean {close!r}?" if close else f"known: {', '.join(PROFILES)}"
    raise UnknownTarget(f"No dialect {name!r}; {hint}")
