"""Mutations of the strict servers: their prompt cache, their stored state, and authorization."""

from tests.teeth.mutations.mutation import Mutation

_CACHE = "actors/strict/cache.py"
_PROMPTS = "actors/strict/rules/prompts.py"
_STORE = "actors/strict/rules/responses_store.py"
_ITEMS = "actors/strict/rules/responses_items.py"
CACHED = "tests/strict/test_prompt_cache.py"
ACCOUNTS = "tests/strict/test_oauth.py"
CLIENTS = "tests/strict/test_real_clients.py"

_BLOCKS = "actors/strict/rules/anthropic_messages.py"
_SHAPES = "actors/strict/rules/anthropic_shapes.py"
_THREADS = "actors/strict/rules/anthropic_messages.py"
_GOOGLE = "actors/strict/rules/gemini.py"
SERVER_TOOLS = "tests/strict/test_anthropic_server_tools.py"
RESOURCES = "tests/strict/test_responses_resources.py"
RESPONSES_PARAMS = "tests/strict/test_sdk_params_openai_responses.py"
CHAT_PARAMS = "tests/strict/test_sdk_params_chat.py"
GOOGLE = "tests/strict/test_gemini_client.py"

MUTATIONS = (
    Mutation(
        "anthropic: a turn paused by the provider counts as a prefill",
        f"{_BLOCKS}:_check_sequence",
        "not turns[-1].uses_server_tools",
        "True",
        (f"{SERVER_TOOLS}::test_requests_that_the_real_host_accepted_are_accepted_in_both_modes",),
    ),
    Mutation(
        "anthropic: an open call of a server tool is forgotten with its turn",
        f"{_BLOCKS}:_check_server_calls",
        "_check_server_results(turn, pending)",
        "_check_server_results(turn, {})",
        (f"{SERVER_TOOLS}::test_requests_that_the_real_host_accepted_are_accepted_in_both_modes",),
    ),
    Mutation(
        "anthropic: every provider tool is known",
        f"{_SHAPES}:is_provider_tool",
        "return ...",
        "return True",
        ("tests/strict/test_sdk_params_anthropic.py::test_unknown_parameter_names_are_rejected",),
    ),
    Mutation(
        "anthropic: an answer is continued twice",
        f"{_THREADS}:ThreadStore.store_answer",
        "previous.is_continued = True",
        "pass",
        (f"{SERVER_TOOLS}::test_the_sdk_raises_the_errors_of_threads",),
    ),
    Mutation(
        "responses: the output of a shell needs no call",
        f"{_ITEMS}:_check_pairs",
        "answered not in in_container and (not allows_unknown_calls)",
        "False",
        (f"{RESPONSES_PARAMS}::test_a_malformed_or_unpaired_item_is_rejected_next_to_a_valid_item",),
    ),
    Mutation(
        "responses: a conversation does not grow",
        f"{_STORE}:ResponsesStore.store_response",
        'self.add_items(conversation, [*new, *response["output"]])',
        "pass",
        (f"{RESOURCES}::test_a_conversation_grows_with_each_response",),
    ),
    Mutation(
        "responses: a page includes the item before it",
        "actors/strict/responses_server.py:_list_page",
        'ids.index(asked["after"]) + 1',
        'ids.index(asked["after"])',
        (f"{RESOURCES}::test_the_input_of_a_response_is_listed_in_pages",),
    ),
    Mutation(
        "gemini: the pieces of a stream are separate turns",
        f"{_GOOGLE}:_merge_turns",
        'turns and content.get("role") == turns[last].get("role") == "model"',
        "False",
        (f"{GOOGLE}::test_the_vendors_client_calls_functions_automatically",),
    ),
    Mutation(
        "gemini: a response needs the id of its call",
        f"{_GOOGLE}:_pair_responses",
        'by_id.get(named) if named and call.get("id") else call',
        "by_id.get(named)",
        (
            "tests/strict/test_sdk_params_google.py::test_conversations_accepted_in_recorded_traffic_are_accepted",
        ),
    ),
    Mutation(
        "openrouter: the upstream sees the gateway's tools",
        "actors/strict/rules/openrouter.py:_to_upstream",
        "not OPENROUTER.runs_tool(tool)",
        "True",
        (f"{CHAT_PARAMS}::test_openrouter_accepts_server_tools_and_cache_marks_on_tools",),
    ),
    Mutation(
        "cache: a mark finds an entry one position too early",
        f"{_CACHE}:LOOKBACK",
        "LOOKBACK = 20",
        "LOOKBACK = 21",
        (f"{CACHED}::test_a_cache_entry_is_found_up_to_20_positions_before_a_mark",),
    ),
    Mutation(
        "cache: each call of a batch is a position",
        f"{_CACHE}:_lookup_positions",
        "not (place.piece.group and place.piece.group == behind.piece.group)",
        "1",
        (f"{CACHED}::test_consecutive_calls_or_results_count_as_one_cache_position",),
    ),
    Mutation(
        "cache: a prompt of any size is cached",
        f"{_CACHE}:PromptCache._use_marks",
        "place.tokens >= prompt.minimum",
        "place.tokens",
        (f"{CACHED}::test_a_prompt_below_the_minimum_of_its_model_is_not_cached",),
    ),
    Mutation(
        "cache: the tool choice is not part of the prefix",
        f"{_PROMPTS}:anthropic_prompt",
        "[*..., choice, *...]",
        "[*..., *...]",
        (f"{CACHED}::test_a_changed_parameter_invalidates_only_the_cached_messages",),
    ),
    Mutation(
        "cache: the parameters precede tools and system prompt",
        f"{_PROMPTS}:anthropic_prompt",
        "len(prefix)",
        "0",
        (f"{CACHED}::test_a_changed_parameter_invalidates_only_the_cached_messages",),
    ),
    Mutation(
        "cache: an entry never expires",
        f"{_CACHE}:_CacheEntries.use_entry",
        "expires <= now",
        "key not in self._known",
        (
            f"{CACHED}::test_a_cache_entry_lives_5_minutes_after_its_last_use",
            f"{CACHED}::test_a_cache_entry_may_be_kept_for_an_hour",
        ),
    ),
    Mutation(
        "cache: a use does not renew an entry",
        f"{_CACHE}:_CacheEntries.use_entry",
        "self._known[key] = (now + lifetime, lifetime)",
        "",
        (f"{CACHED}::test_reading_through_a_later_mark_extends_the_life_of_a_cache_entry",),
    ),
    Mutation(
        "cache: a mark belongs to the prompt",
        f"{_PROMPTS}:_without_marks",
        "{key: item for key, item in value.items() if key not in _MARKS}",
        "{key: item for key, item in value.items()}",
        (f"{CACHED}::test_moving_a_cache_mark_does_not_change_the_prompt",),
    ),
    Mutation(
        "cache: the ideal cache counts only marked content",
        f"{_CACHE}:PromptCache._ideal_tokens",
        "self._ideal.write_entry((lane, place.plain), now, lifetime)",
        """
        if place.piece.cache_lifetime is not None:
            self._ideal.write_entry((lane, place.plain), now, lifetime)
        """,
        (f"{CACHED}::test_without_a_cache_mark_nothing_is_read_and_the_ideal_count_shows_the_miss",),
    ),
    Mutation(
        "cache: the ideal cache depends on the parameters",
        f"{_CACHE}:_piece_positions",
        "plain.digest",
        "digest.digest",
        (f"{CACHED}::test_a_changed_parameter_invalidates_only_the_cached_messages",),
    ),
    Mutation(
        "cache: every machine is warm",
        f"{_CACHE}:PromptCache._use_steps",
        "(prompt.model, prompt.cache_key or self._turn % MACHINES)",
        "(prompt.model, prompt.cache_key)",
        (f"{CACHED}::test_a_cache_key_routes_requests_to_the_machine_with_the_warm_cache",),
    ),
    Mutation(
        "store: a response is stored although the request forbids it",
        f"{_STORE}:ResponsesStore.store_response",
        'request.get("store") is not False',
        "True",
        (f"{CLIENTS}::test_unstored_items_may_not_be_referenced",),
    ),
    Mutation(
        "store: a response is stored only on request",
        f"{_STORE}:ResponsesStore.store_response",
        'request.get("store") is not False',
        'request.get("store")',
        (f"{CLIENTS}::test_stored_items_may_be_referenced_by_id",),
    ),
    Mutation(
        "store: a chain consists of its last response",
        f"{_STORE}:ResponsesStore.history",
        "kept.previous",
        "None",
        (f"{CLIENTS}::test_a_response_continues_the_chain_of_its_previous_response",),
    ),
    Mutation(
        "store: nothing is ever forgotten",
        f"{_STORE}:ResponsesStore._remove_oldest",
        "len(held) > self._limit",
        "False",
        (f"{CLIENTS}::test_only_the_latest_responses_are_kept",),
    ),
    Mutation(
        "store: reasoning with an id may be followed by an item without one",
        f"{_ITEMS}:_check_reasoning",
        'named and (not behind.get("id")) and (not are_consecutive(item, behind))',
        "False",
        (f"{CLIENTS}::test_items_sent_back_must_all_have_ids_or_all_lack_ids",),
    ),
    Mutation(
        "oauth: a bearer token needs no beta header",
        "actors/strict/anthropic_server.py:_oauth_refusal",
        "OAUTH_BETA not in _beta_names(request)",
        "False",
        (f"{ACCOUNTS}::test_anthropic_accepts_a_bearer_token_with_its_beta_header",),
    ),
    Mutation(
        "oauth: an expired token is accepted",
        "actors/strict/credentials.py:OAuth.state",
        '"valid" if expires is None or self.clock() < expires else "expired"',
        '"""valid"""',
        (f"{ACCOUNTS}::test_an_expired_token_is_rejected_and_the_next_accepted",),
    ),
    Mutation(
        "limits: a body with a too large declared length is read",
        "actors/strict/loopback.py:_Connection.read_request",
        'int(headers.get("content-length", "0")) > max_body',
        "False",
        ("tests/strict/test_server.py::test_a_body_that_announces_too_large_a_size_is_rejected_unread",),
    ),
)
