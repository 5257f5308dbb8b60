"""Mistakes of a judge that remembers what it let pass."""

from tests.teeth.mutations.mutation import Mutation

READING = "actors/testing/rules/reading.py"
TESTS = ("tests/testing/test_loopback_reading.py",)

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "reading: what was refused once is let pass from then on",
        READING,
        "        yield at, values[at]\n",
        "        known[at][standard] = None\n        yield at, values[at]\n",
        TESTS,
    ),
    Mutation(
        "reading: what one walk let pass, each does",
        READING,
        "if standard not in passed]",
        "if not passed]",
        TESTS,
    ),
    Mutation(
        "reading: one walk's verdict holds under other settings",
        READING,
        "    return object()",
        "    return walk",
        TESTS,
    ),
    Mutation(
        "reading: what is made of a part does not depend on what it is made for",
        READING,
        "(make, *settings) if settings else make",
        "make",
        TESTS,
    ),
    Mutation(
        "reading: a body that is not all in its parts is taken for them",
        READING,
        'if b"{%b}" % written != body or',
        "if",
        TESTS,
    ),
    Mutation(
        "reading: a part that lies too deep is read",
        READING,
        "_DEEP = 100",
        "_DEEP = 1000",
        TESTS,
    ),
    Mutation(
        "reading: parts are kept without end",
        READING,
        "if len(_came) >= _MOST:",
        "if len(_came) < 0:",
        TESTS,
    ),
    Mutation(
        "reading: shapes are remembered whatever the model takes (OpenAI)",
        "actors/testing/rules/openai_messages.py",
        "under = context.host, context.mode, context.profile\n",
        "under = context.host, context.mode\n",
        TESTS,
    ),
    Mutation(
        "reading: ids are remembered whatever the model takes (OpenAI)",
        "actors/testing/rules/openai_messages.py",
        'standard_of("OAC identity", context.host, context.profile)',
        'standard_of("OAC identity", context.host)',
        TESTS,
    ),
    Mutation(
        "reading: shapes are remembered whatever the model takes (Anthropic)",
        "actors/testing/rules/anthropic_messages.py",
        'standard_of("ANT shape", profile)',
        'standard_of("ANT shape")',
        TESTS,
    ),
    Mutation(
        "reading: names are remembered whatever the model takes (Responses)",
        "actors/testing/rules/responses_items.py",
        'standard_of("OAR names", profile)',
        'standard_of("OAR names")',
        TESTS,
    ),
    Mutation(
        "reading: messages are remembered whatever the model takes (Bedrock)",
        "actors/testing/rules/bedrock.py",
        'standard_of("BED message", profile.media)',
        'standard_of("BED message")',
        TESTS,
    ),
    Mutation(
        "reading: contents are read as with ids where there are none (Gemini)",
        "actors/testing/rules/gemini_shape.py",
        "return came(_alone, value, kind, self._ids)",
        "return came(_alone, value, kind, True)",
        TESTS,
    ),
)
