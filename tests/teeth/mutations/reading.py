"""Mutations of the judge's memory of accepted content."""

from tests.teeth.mutations.mutation import Mutation

READING = "actors/strict/rules/reading.py"
TESTS = ("tests/strict/test_reading.py",)

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "reading: refused content is accepted the second time",
        f"{READING}:unchecked_items",
        "yield (at, values[at])",
        """
        known[at][check_key] = None
        yield (at, values[at])
        """,
        TESTS,
    ),
    Mutation(
        "reading: content accepted in one walk is accepted in every walk",
        f"{READING}:unchecked_items",
        "[at for at, passed in enumerate(known) if check_key not in passed]",
        "[at for at, passed in enumerate(known) if not passed]",
        TESTS,
    ),
    Mutation(
        "reading: a verdict of one walk applies under other settings",
        f"{READING}:key_of_check",
        "object()",
        "check_name",
        TESTS,
    ),
    Mutation(
        "reading: a cached part ignores the purpose of the cache",
        f"{READING}:cached_result",
        "(kept[1], (compute, *settings) if settings else compute)",
        "(kept[1], compute)",
        TESTS,
    ),
    Mutation(
        "reading: a body that is only partly cached counts as cached",
        f"{READING}:_parse_parts",
        'b"{%b}" % written != body or not all(map(str.isidentifier, members))',
        "not all(map(str.isidentifier, members))",
        TESTS,
    ),
    Mutation(
        "reading: a too deeply nested part is read",
        f"{READING}:_MAX_BRACKETS",
        "_MAX_BRACKETS = 100",
        "_MAX_BRACKETS = 1000",
        TESTS,
    ),
    Mutation(
        "reading: cached parts are unbounded",
        f"{READING}:_cache_part",
        "len(_part_results) >= _MAX_PARTS",
        "len(_part_results) < 0",
        TESTS,
    ),
    Mutation(
        "reading: shapes are cached independently of the model (OpenAI)",
        "actors/strict/rules/openai_messages.py:check",
        "(*..., context.profile)",
        "(*...,)",
        TESTS,
    ),
    Mutation(
        "reading: ids are cached independently of the model (OpenAI)",
        "actors/strict/rules/openai_messages.py:check_identity",
        "key_of_check(*..., context.profile)",
        "key_of_check(*...)",
        TESTS,
    ),
    Mutation(
        "reading: shapes are cached independently of the model (Anthropic)",
        "actors/strict/rules/anthropic_messages.py:check",
        "key_of_check(*..., profile)",
        "key_of_check(*...)",
        TESTS,
    ),
    Mutation(
        "reading: names are cached independently of the model (Responses)",
        "actors/strict/rules/responses_items.py:check",
        "key_of_check(*..., profile)",
        "key_of_check(*...)",
        TESTS,
    ),
    Mutation(
        "reading: messages are cached independently of the model (Bedrock)",
        "actors/strict/rules/bedrock.py:validate",
        "key_of_check(*..., profile.media)",
        "key_of_check(*...)",
        TESTS,
    ),
    Mutation(
        "reading: contents without ids are read as if they had ids (Gemini)",
        "actors/strict/rules/gemini_shape.py:_RequestParser._parse_repeated",
        "cached_result(*..., self._ids, self._vertex)",
        "cached_result(*..., True, self._vertex)",
        TESTS,
    ),
)
