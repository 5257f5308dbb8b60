"""Mutations of hosts: the choice of a dialect, queries of base URLs, and Claude on clouds."""

from tests.teeth.mutations.mutation import Mutation

CLAUDE = "tests/adapters/test_claude_hosts.py"
NAMED = "tests/config/test_named_hosts.py"
OWN = "tests/session/test_openai_hosts.py"
QUERIES = "tests/provider/test_queries.py"
PRICES = "tests/core/test_list_prices.py"
TOOLS = "tests/provider/test_tools_on_chat.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "hosts: a host name with a vendor's suffix counts as the vendor's host",
        "actors/config/providers.py:OwnHost.serves",
        'host.endswith(f".{self.domain}")',
        "host.endswith(self.domain)",
        (f"{OWN}::test_the_openai_provider_uses_responses_at_official_hosts_and_chat_at_other_hosts",),
    ),
    Mutation(
        "hosts: an open turn continues in the current dialect",
        "actors/session/driver.py:TurnDriver._resume_turn",
        "self._create_steps(member, self.ask.log.state.turns, binding.dialect)",
        "self._create_steps(member, self.ask.log.state.turns)",
        (f"{OWN}::test_an_open_turn_keeps_its_dialect_after_a_change_of_base_url",),
    ),
    Mutation(
        "hosts: an open turn continues in a dialect of another family",
        "actors/config/__init__.py:Config.with_dialect",
        "known is None or known.family not in spoken",
        "known is None",
        (f"{OWN}::test_an_open_turn_fails_clearly_after_a_change_of_family",),
    ),
    Mutation(
        "hosts: answers of an open turn are read in the current dialect",
        "actors/provider/providers.py:Providers.provider",
        "config.dialect_of(binding)",
        "config.dialect_of(backend.binding)",
        (f"{OWN}::test_an_open_turn_keeps_its_dialect_after_a_change_of_base_url",),
    ),
    Mutation(
        "hosts: a session with an open turn is refused by the current limits of its target",
        "actors/runtime/opening.py:SessionOpener._resume",
        "self._open_tools(opened, config, check_count=state.pause is None)",
        "self._open_tools(opened, config, check_count=True)",
        (f"{OWN}::test_an_open_turn_continues_on_a_host_that_rejects_new_turns",),
    ),
    Mutation(
        "hosts: a pool uses a member without tool support",
        "actors/provider/resolver.py:Resolver.pool",
        "not reasons[name]",
        "True",
        (f"{TOOLS}::test_a_pool_skips_and_reports_members_that_do_not_support_tools",),
    ),
    Mutation(
        "hosts: a pool without a member with tool support is accepted",
        "actors/provider/resolver.py:Resolver.pool",
        "must_fit and not usable",
        "False",
        (f"{TOOLS}::test_errors_raised_by_open_or_switch_or_configure_name_the_api_that_supports_tools",),
    ),
    Mutation(
        "hosts: a skipped member is reported in every turn",
        "actors/session/inflight.py:AskTotals.unreported_skips",
        "self.skipped[self._reported_skips:]",
        "()",
        (f"{TOOLS}::test_a_pool_skips_and_reports_members_that_do_not_support_tools",),
    ),
    Mutation(
        "hosts: a query replaces the one of the path",
        "actors/provider/credentials.py:with_query",
        "'&' if '?' in url else '?'",
        "'?'",
        (f"{QUERIES}::test_a_configured_query_is_sent_in_addition_to_the_query_of_the_dialect",),
    ),
    Mutation(
        "hosts: a query is part of the binding",
        "actors/config/backend.py:split_query",
        "return place, ...",
        "return url, ...",
        (f"{QUERIES}::test_a_query_is_not_part_of_the_binding_or_any_repr",),
    ),
    Mutation(
        "hosts: a query repeated by a server is shown",
        "actors/provider/credentials.py:query_secrets",
        "name.lower() not in _VERSIONS",
        "name.lower() in _VERSIONS",
        (f"{QUERIES}::test_no_error_log_or_journal_shows_a_query",),
    ),
    Mutation(
        "hosts: a cloud receives the model in the body too",
        "actors/adapters/anthropic/encode.py:Route.first_fields",
        "{'anthropic_version': self.version}",
        "{'anthropic_version': self.version, 'model': settings.model}",
        (f"{CLAUDE}::test_a_conversation_with_thinking_and_tools_is_accepted",),
    ),
    Mutation(
        "hosts: Bedrock receives the stream setting in the body too",
        "actors/adapters/anthropic/encode.py:request_head",
        "settings.stream and route.has_stream_field",
        "settings.stream",
        (f"{CLAUDE}::test_a_conversation_with_thinking_and_tools_is_accepted",),
    ),
    Mutation(
        "hosts: a fault in a binary stream loses the text before it",
        "actors/adapters/framing.py:ChunkParser.feed",
        "not events",
        "True",
        (f"{CLAUDE}::test_a_frame_without_a_chunk_is_reported_as_a_fault_and_earlier_text_is_kept",),
    ),
    Mutation(
        "hosts: a cloud may receive any version",
        "actors/core/check/anthropic.py:Anthropic._check_route_fields",
        "(version := body.get('anthropic_version')) not in _VERSIONS[route]",
        "(version := body.get('anthropic_version')) is None",
        (
            f"{CLAUDE}::test_the_strict_server_and_the_checker_reject_requests_that_the_cloud_provider_rejects",
        ),
    ),
    Mutation(
        "prices: the list precedes the user's prices",
        "actors/provider/pricing.py:Pricing._price",
        "self._listing_of(binding).price if given is None else given",
        "self._listing_of(binding).price or given",
        (f"{PRICES}::test_a_configured_price_takes_precedence_over_the_listed_price",),
    ),
    Mutation(
        "prices: a listed context window triggers compaction",
        "actors/provider/pricing.py:Pricing.window",
        "self._windows == 'listed'",
        "True",
        (f"{PRICES}::test_a_listed_context_window_is_displayed_but_triggers_no_compaction",),
    ),
    Mutation(
        "prices: a cache read without a listed price is free",
        "actors/provider/pricing.py:find_listing",
        "plain if written is None else written",
        "written",
        (
            f"{PRICES}::test_the_listed_price_is_the_price_of_the_first_tier_and_unlisted_models_have_no_price",
        ),
    ),
)
