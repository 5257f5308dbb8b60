"""Mistakes where a program is told that what it gives is not what it must be."""

from tests.teeth.mutations.mutation import Mutation

MISUSE = "tests/test_misuse.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "misuse: no results at all are taken",
        "actors/brought.py",
        "isinstance(given, Mapping) and given and all(",
        "isinstance(given, Mapping) and all(",
        (MISUSE,),
    ),
    Mutation(
        "misuse: a decision has a reason that no log can hold",
        "actors/brought.py",
        "    if not isinstance(said, str):\n",
        "    if False:\n",
        (MISUSE,),
    ),
    Mutation(
        "misuse: a human's message may hold anything",
        "actors/words.py",
        "    for number, block in enumerate(message.blocks):\n        _part(number, block)\n",
        "",
        (MISUSE,),
    ),
    Mutation(
        "misuse: an async rule is taken, and denies every call",
        "actors/tools/options.py",
        "        if is_async(rule):\n",
        "        if False:\n",
        ("tests/test_tool_options.py",),
    ),
    Mutation(
        "misuse: a model may give what a partial gives already",
        "actors/tools/signature.py",
        "for key, each in parameters.items() if key not in function.keywords}",
        "for key, each in parameters.items()}",
        ("tests/test_tools.py",),
    ),
)
