"""Mistakes of a judge that remembers what it let pass."""

from tests.teeth.mutations.mutation import Mutation

READING = "actors/strict/rules/reading.py"
TESTS = ("tests/strict/test_reading.py",)

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "reading: what was refused once is let pass from then on",
        f"{READING}:unchecked_items",
        "yield (at, values[at])",
        """
        known[at][standard] = None
        yield (at, values[at])
        """,
        TESTS,
    ),
    Mutation(
        "reading: what one walk let pass, each does",
        f"{READING}:unchecked_items",
        "[at for at, passed in enumerate(known) if standard not in passed]",
        "[at for at, passed in enumerate(known) if not passed]",
        TESTS,
    ),
    Mutation(
        "reading: one walk's verdict holds under other settings",
        f"{READING}:standard_of",
        "object()",
        "walk",
        TESTS,
    ),
    Mutation(
        "reading: what is made of a part does not depend on what it is made for",
        f"{READING}:cached_result",
        "(kept[1], (make, *settings) if settings else make)",
        "(kept[1], make)",
        TESTS,
    ),
    Mutation(
        "reading: a body that is not all in its parts is taken for them",
        f"{READING}:_parse_parts",
        'b"{%b}" % written != body or not all(map(str.isidentifier, members))',
        "not all(map(str.isidentifier, members))",
        TESTS,
    ),
    Mutation(
        "reading: a part that lies too deep is read",
        f"{READING}:_DEEP",
        "_DEEP = 100",
        "_DEEP = 1000",
        TESTS,
    ),
    Mutation(
        "reading: parts are kept without end",
        f"{READING}:_keep",
        "len(_came) >= _MOST",
        "len(_came) < 0",
        TESTS,
    ),
    Mutation(
        "reading: shapes are remembered whatever the model takes (OpenAI)",
        "actors/strict/rules/openai_messages.py:check",
        "(*..., context.profile)",
        "(*...,)",
        TESTS,
    ),
    Mutation(
        "reading: ids are remembered whatever the model takes (OpenAI)",
        "actors/strict/rules/openai_messages.py:check_identity",
        "standard_of(*..., context.profile)",
        "standard_of(*...)",
        TESTS,
    ),
    Mutation(
        "reading: shapes are remembered whatever the model takes (Anthropic)",
        "actors/strict/rules/anthropic_messages.py:check",
        "standard_of(*..., profile)",
        "standard_of(*...)",
        TESTS,
    ),
    Mutation(
        "reading: names are remembered whatever the model takes (Responses)",
        "actors/strict/rules/responses_items.py:check",
        "standard_of(*..., profile)",
        "standard_of(*...)",
        TESTS,
    ),
    Mutation(
        "reading: messages are remembered whatever the model takes (Bedrock)",
        "actors/strict/rules/bedrock.py:validate",
        "standard_of(*..., profile.media)",
        "standard_of(*...)",
        TESTS,
    ),
    Mutation(
        "reading: contents are read as with ids where there are none (Gemini)",
        "actors/strict/rules/gemini_shape.py:_ShapeWalk._again",
        "cached_result(*..., self._ids, self._vertex)",
        "cached_result(*..., True, self._vertex)",
        TESTS,
    ),
)
